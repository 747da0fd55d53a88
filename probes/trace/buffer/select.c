/* select.c - keeps the lists of wanted and unwanted threads, and the wanted CPUs. */
#include "probes/trace/buffer/select.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/quiesce.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <string.h>

#define PID_MAX (1u << 30) /* numbers of threads are smaller on Linux */

/* Locks:  a replaced as a whole, with the trace lock held */
static struct pids *lists[SELECT_LISTS]; /* [a] */
static int hidden; /* [a] the thread that serves the host; 0: none */

bool select_is_needed;

/* select_again - compute select_is_needed, after a list or the CPUs have changed. Locks: the
 * trace lock held.
 */
static void select_again(void)
{
    bool selective = lists[SELECT_WANTED] || lists[SELECT_UNWANTED] || hidden;

    for (unsigned i = 0; i < cpu_count(); i++)
        selective |= !buffer_takes_cpu(i);
    WRITE_ONCE(select_is_needed, selective);
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
    const struct pids *only = READ_ONCE(lists[SELECT_WANTED]);
    const struct pids *not = READ_ONCE(lists[SELECT_UNWANTED]);
    int tid = thread_current()->tid;

    return tid != READ_ONCE(hidden) && (!only || has_pid(only, tid)) &&
           (!not || !has_pid(not, tid));
}

bool select_takes_hit(void)
{
    return buffer_takes() && takes_thread();
}

bool select_hides_thread(void)
{
    return READ_ONCE(hidden);
}

void select_hide_thread(void)
{
    WRITE_ONCE(hidden, thread_current()->tid);
    thread_set_own_work(true);
    select_again();
}

static void pids_exchange(enum select_list which, struct pids *new)
{
    struct pids *old = __atomic_exchange_n(&lists[which], new, __ATOMIC_ACQ_REL);

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

/* add_pids - add the numbers of @text. Return: as select_add_pids(). */
static int add_pids(struct pids *pids, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *word = text;
        uint64_t pid;

        while (text < end && !isspace((unsigned char)*text))
            text++;
        word += text > word && *word == '+';
        if (text > word && fetch_number(word, (size_t)(text - word), &pid))
            return -EINVAL;
        if (text > word && (uint32_t)pid >= PID_MAX)
            return -EPERM;
        if (text > word)
            add_pid(pids, (int)pid);
        text++;
    }
    return 0;
}

const struct pids *select_pids(enum select_list which)
{
    return lists[which];
}

int select_add_pids(enum select_list which, const char *text, size_t len)
{
    const struct pids *old = lists[which];
    size_t count = old ? old->count : 0;
    struct pids *new;
    int err;

    new = kzalloc(sizeof(*new) + (count + len / 2 + 1) * sizeof(new->pid[0]));
    if (!new)
        return -ENOMEM;
    new->count = count;
    if (count)
        memcpy(new->pid, old->pid, count * sizeof(new->pid[0]));
    err = add_pids(new, text, len);
    if (err || !new->count)
        kfree(new);
    else
        pids_exchange(which, new);
    return err;
}

void select_drop_pids(enum select_list which)
{
    pids_exchange(which, NULL);
}

void select_cpus(uint64_t mask)
{
    for (unsigned i = 0; i < cpu_count(); i++)
        buffer_take_cpu(i, mask >> i & 1);
    select_again();
}
