/* control.c - selects the threads and CPUs that are recorded, by the files set_event_pid,
 * set_event_notrace_pid and tracing_cpumask; and makes timestamp_mode.
 *
 * A hit reads the lists without a lock. A list never changes: a new list replaces it, and
 * the old list is freed after quiescence.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/quiesce.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <string.h>

/* ---- threads ---- */

#define PID_MAX (1u << 30) /* numbers of threads are smaller on Linux */

/* Locks:  I immutable once a hit may see it */
struct pids {
    size_t count; /* [I] */
    int pid[];    /* [I] sorted, without duplicates */
};

/* Locks:  a replaced as a whole, with the trace lock held */
static struct pids *wanted;   /* [a] NULL: all threads are wanted */
static struct pids *unwanted; /* [a] NULL: no thread is unwanted */

/* There is a list, or an unwanted CPU. While this is false, hits check nothing else. */
static bool is_selective;

/* select_again - compute is_selective, after a list or the CPUs have changed. Locks: the
 * trace lock held.
 */
static void select_again(void)
{
    bool selective = wanted || unwanted;

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

    return (!only || has_pid(only, thread_current()->tid)) &&
           (!not || !has_pid(not, thread_current()->tid));
}

bool trace_takes_hit(void)
{
    if (likely(!READ_ONCE(is_selective)))
        return buffer_is_on();
    return buffer_takes() && takes_thread();
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

static int pids_show(struct seq *s, void *priv)
{
    struct pids *const *list = priv;

    trace_lock();
    for (size_t i = 0; *list && i < (*list)->count; i++)
        seq_printf(s, "%d\n", (*list)->pid[i]);
    trace_unlock();
    return 0;
}

/* pids_write - add numbers to a list. If a word is not a number, nothing changes. */
static long pids_write(void *priv, const char *text, size_t len)
{
    struct pids **list = priv, *new;
    int err = -ENOMEM;
    size_t count;

    trace_lock();
    count = *list ? (*list)->count : 0;
    new = kzalloc(sizeof(*new) + (count + len / 2 + 1) * sizeof(new->pid[0]));
    if (new) {
        new->count = count;
        if (count)
            memcpy(new->pid, (*list)->pid, count * sizeof(new->pid[0]));
        err = add_pids(new, text, len);
    }
    if (new && !err &&new->count) {
        pids_exchange(list, new);
        new = NULL;
    }
    trace_unlock();
    kfree(new);
    return err ? err : (long)len;
}

static int pids_truncate(void *priv)
{
    trace_lock();
    pids_exchange(priv, NULL);
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
    for (unsigned i = 0; i < cpu_count(); i++)
        buffer_take_cpu(i, mask >> i & 1);
    select_again();
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
      .priv = &wanted },
    { .name = "set_event_notrace_pid",
      .mode = 0640,
      .show = pids_show,
      .write = pids_write,
      .truncate = pids_truncate,
      .priv = &unwanted },
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
