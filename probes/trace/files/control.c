/* control.c - selects the threads and CPUs that are recorded, by the files set_event_pid,
 * set_event_notrace_pid and tracing_cpumask; and makes timestamp_mode.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/select.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

#include <ctype.h>

/* ---- threads ---- */

<<<<<<< HEAD
=======
#define PID_MAX (1u << 30) /* numbers of threads are smaller on Linux */

/* Locks:  I immutable once a hit may see it */
struct pids {
    size_t count; /* [I] */
    int pid[];    /* [I] sorted, without duplicates */
};

/* Locks:  a replaced as a whole, with the trace lock held */
static struct pids *wanted;   /* [a] NULL: all threads are wanted */
static struct pids *unwanted; /* [a] NULL: no thread is unwanted */
static int hidden;            /* [a] the thread that serves the host; 0: none */

/* There is a list, or an unwanted CPU. While this is false, hits check nothing else. */
static bool is_selective;

/* select_again - compute is_selective, after a list or the CPUs have changed. Locks: the
 * trace lock held.
 */
static void select_again(void)
{
    bool selective = wanted || unwanted || hidden;

    for (unsigned i = 0; i < cpu_count(); i++)
        selective |= !buffer_takes_cpu(i);
    WRITE_ONCE(is_selective, selective);
}

/* pid_place - return the index of @pid in the list, or the index to insert it at. */
static size_t pid_place(const struct pids *pids, int pid)
{
    size_t first = 0, last = pids->count;

    while (first < last) {
        size_t middle = (first + last) / 2;

        if (pids->pid[middle] < pid)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static bool has_pid(const struct pids *pids, int pid)
{
    size_t place = pid_place(pids, pid);

    return place < pids->count && pids->pid[place] == pid;
}

static bool takes_thread(void)
{
    const struct pids *only = READ_ONCE(wanted), *not = READ_ONCE(unwanted);
    int tid = thread_current()->tid;

    return tid != READ_ONCE(hidden) && (!only || has_pid(only, tid)) &&
           (!not || !has_pid(not, tid));
}

bool trace_takes_hit(void)
{
    if (likely(!READ_ONCE(is_selective)))
        return buffer_is_on();
    return buffer_takes() && takes_thread();
}

void trace_hide_thread(void)
{
    WRITE_ONCE(hidden, thread_current()->tid);
    select_again();
}

static void pids_exchange(struct pids **list, struct pids *new)
{
    struct pids *old = __atomic_exchange_n(list, new, __ATOMIC_ACQ_REL);

    select_again();
    if (!old)
        return;
    quiesce();
    kfree(old);
}

static void add_pid(struct pids *pids, int pid)
{
    size_t place = pid_place(pids, pid);

    if (has_pid(pids, pid))
        return;
    memmove(&pids->pid[place + 1], &pids->pid[place],
            (pids->count - place) * sizeof(pids->pid[0]));
    pids->pid[place] = pid;
    pids->count++;
}

/* add_pids - add the numbers of @text. Return: 0; -EINVAL. */
static int add_pids(struct pids *pids, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *word = text;
        uint64_t pid;

        while (text < end && !isspace((unsigned char)*text))
            text++;
        word += text > word && *word == '+';
        if (text > word &&
            (fetch_number(word, (size_t)(text - word), &pid) || pid >= PID_MAX))
            return -EINVAL;
        if (text > word)
            add_pid(pids, (int)pid);
        text++;
    }
    return 0;
}

>>>>>>> aa1a600a (trace/host: the bridge to Linux's tools has all records, and no way to the host)
static int pids_show(struct seq *s, void *priv)
{
    const struct pids *pids;

    trace_lock();
    pids = select_pids((enum select_list)(uintptr_t)priv);
    for (size_t i = 0; pids && i < pids->count; i++)
        seq_printf(s, "%d\n", pids->pid[i]);
    trace_unlock();
    return 0;
}

static long pids_write(void *priv, const char *text, size_t len)
{
    int err;

    trace_lock();
    err = select_add_pids((enum select_list)(uintptr_t)priv, text, len);
    trace_unlock();
    return err ? err : (long)len;
}

static int pids_truncate(void *priv)
{
    trace_lock();
    select_drop_pids((enum select_list)(uintptr_t)priv);
    trace_unlock();
    return 0;
}

/* ---- CPUs ---- */

/* mask_parse - read a mask of CPUs: hexadecimal digits, maybe with commas between them,
 * as mask_show() prints it.
 * Return: 0; -EINVAL: a character is not a digit, or a CPU does not exist.
 */
static int mask_parse(const char *text, size_t len, uint64_t *mask)
{
    *mask = 0;
    for (; len; text++, len--) {
        unsigned char c = (unsigned char)*text;

        if (c == ',')
            continue;
        if (!isxdigit(c) || *mask >> 60)
            return -EINVAL;
        *mask = *mask << 4 | (unsigned)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return cpu_count() < 64 && *mask >> cpu_count() ? -EINVAL : 0;
}

static int mask_show(struct seq *s, void *priv UNUSED)
{
    for (unsigned digit = (cpu_count() + 3) / 4; digit--;) {
        unsigned value = 0;

        for (unsigned i = 0; i < 4 && 4 * digit + i < cpu_count(); i++)
            value |= (unsigned)buffer_takes_cpu(4 * digit + i) << i;
        seq_printf(s, "%x%s", value, digit && digit % 8 == 0 ? "," : "");
    }
    seq_puts(s, "\n");
    return 0;
}

static long mask_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word_len = len;
    const char *word = trace_word(text, &word_len);
    uint64_t mask;
    int err = mask_parse(word, word_len, &mask);

    if (err)
        return err;
    trace_lock();
    select_cpus(mask);
    trace_unlock();
    return (long)len;
}

/* ---- times ---- */

/* timestamp_show - always "delta": a record holds the time since the record before it. On
 * Linux a histogram can change that.
 */
static int timestamp_show(struct seq *s, void *priv UNUSED)
{
    seq_puts(s, "[delta] absolute\n");
    return 0;
}

/* ---- the tree ---- */

static const struct vfs_file files[] = {
    { .name = "set_event_pid",
      .mode = 0640,
      .show = pids_show,
      .write = pids_write,
      .truncate = pids_truncate,
      .priv = (void *)(uintptr_t)SELECT_WANTED },
    { .name = "set_event_notrace_pid",
      .mode = 0640,
      .show = pids_show,
      .write = pids_write,
      .truncate = pids_truncate,
      .priv = (void *)(uintptr_t)SELECT_UNWANTED },
    { .name = "tracing_cpumask", .mode = 0640, .show = mask_show, .write = mask_write },
    { .name = "timestamp_mode",
      .mode = 0440,
      .show = timestamp_show,
      .write = tracefs_read_only },
};

INIT int trace_add_control(void)
{
    return tracefs_add(NULL, files, ARRAY_LEN(files));
}
