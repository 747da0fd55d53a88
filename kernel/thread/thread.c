/* thread.c - makes, starts, ends, joins and frees threads.
 *
 * A thread cannot free the stack that it runs on. So the next thread on its CPU makes it
 * THREAD_DEAD, and then its joiner frees it, or the reaper thread if it is detached.
 * Joiners and the reaper wait in `mourners`, a queue that no thread owns, so it stays.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/marker.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/stack.h"
#include "kernel/sync/wait.h"
#include "kernel/sync/wait_check.h"
#include "kernel/thread/sched.h"
#include "kernel/time/clock.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BOOT_TID 1
#define FLAGS_AT_START FLAGS_FIXED /* interrupts off: sched_lock is handed over */

static struct thread boot_thread;
static struct wait_queue mourners = WAIT_QUEUE_INIT(mourners);
static struct list reapable = LIST_INIT(reapable); /* [sched_lock] dead and detached */
static int last_tid = BOOT_TID;                    /* [sched_lock] */
static uint64_t births;                            /* [sched_lock] */
/* set at boot */
void (*thread_birth_hook)(struct thread *t);
void (*thread_burial_hook)(struct thread *t, bool is_listed);

int thread_tid(void)
{
    return thread_current()->tid;
}

const char *thread_state_name(enum thread_state state)
{
    static const char *const names[] = {
        [THREAD_READY] = "ready",     [THREAD_RUNNING] = "running",
        [THREAD_WAITING] = "waiting", [THREAD_EXITING] = "exiting",
        [THREAD_DEAD] = "dead",
    };

    return names[state];
}

/* ---- making ---------------------------------------------------------------------------- */

static void links_init(struct thread *t)
{
    list_init(&t->all_link);
    list_init(&t->queue_link);
    list_init(&t->sleeper_link);
}

INIT void thread_init(void *stack_top, size_t stack_len)
{
    struct thread *t = &boot_thread;
    struct percpu *cpu = this_cpu();

    t->tid = BOOT_TID;
    snprintf(t->name, sizeof(t->name), "boot");
    t->state = THREAD_RUNNING;
    t->cpus = UINT64_MAX;
    t->stack_top = stack_top;
    t->stack_len = stack_len;
    t->detached = true;
    links_init(t);
    list_append(&sched_all, &t->all_link);
    cpu->stack_base = (uintptr_t)stack_top - stack_len;
    cpu->current = t;
    cpu->tid = t->tid;
}

/* stack_prepare - make the stack look as if thread_entry had called switch_to(). 16 bytes
 * above the frame stay free, and rsp is a multiple of 16 in thread_entry, as its call
 * requires.
 */
static void stack_prepare(struct thread *t)
{
    struct switch_frame *frame =
        (struct switch_frame *)((uintptr_t)t->stack_top - 16) - 1;

    *frame =
        (struct switch_frame){ .flags = FLAGS_AT_START, .ip = (uintptr_t)thread_entry };
    t->sp = (uintptr_t)frame;
}

static void fields_init(struct thread *t, const struct clone_args *args)
{
    t->state = THREAD_READY;
    t->left_by = SWITCH_VOLUNTARY;
    t->cpus = args->cpus ? args->cpus : UINT64_MAX;
    t->fn = args->fn;
    t->arg = args->arg;
    t->detached = args->detached;
    t->stack_len = args->stack_len ? args->stack_len : THREAD_STACK_LEN;
    snprintf(t->name, sizeof(t->name), "%s", args->name ? args->name : "thread");
    links_init(t);
}

struct thread *thread_create(const struct clone_args *args)
{
    struct thread *t = kzalloc(sizeof(*t));

    if (!t)
        return NULL;
    fields_init(t, args);
    t->stack_top = stack_alloc(t->stack_len);
    if (!t->stack_top) {
        kfree(t);
        return NULL;
    }
    stack_prepare(t);
    return t;
}

/* thread_find - Locks: sched_lock held. Return: NULL when there is none with this tid. */
static struct thread *thread_find(int tid)
{
    struct thread *t;

    list_for_each(t, &sched_all, all_link)
        if (t->tid == tid)
            return t;
    return NULL;
}

/* tid_next - find the first free number after the last one. Locks: sched_lock held. */
static int tid_next(void)
{
    do {
        last_tid = last_tid == INT_MAX ? BOOT_TID + 1 : last_tid + 1;
    } while (thread_find(last_tid));
    return last_tid;
}

/* thread_publish - put @t into the list of all threads. If a quiesce() is under way, no way
 * leads into the code that it is about, so the new thread is outside.
 * Locks: sched_lock held.
 */
static void thread_publish(struct thread *t)
{
    t->quiesce_seen = quiesce_epoch;
    t->born = ++births;
    list_append(&sched_all, &t->all_link);
}

static uint64_t online_mask(void)
{
    return UINT64_MAX >> (64 - cpu_count());
}

static bool args_are_valid(const struct clone_args *args)
{
    return args->fn && is_aligned(args->stack_len, PAGE_SIZE) &&
           (!args->cpus || args->cpus & online_mask());
}

/* thread_enlist - give @t its tid, and publish it. Return: the tid. */
static int thread_enlist(struct thread *t)
{
    unsigned long flags = sched_enter();
    int tid = tid_next();

    t->tid = tid;
    thread_publish(t);
    sched_leave(flags);
    return tid;
}

static void thread_let_run(struct thread *t)
{
    unsigned long flags = sched_enter();

    sched_make_ready(t);
    sched_leave(flags);
}

bool thread_set_own_work(bool is_own)
{
    bool was = thread_current()->own_work;

    preempt_disable();
    thread_current()->own_work = is_own;
    own_work_set_task(is_own);
    preempt_enable();
    return was;
}

int kernel_clone(const struct clone_args *args)
{
    struct thread *t;
    int tid;

    if (!args_are_valid(args))
        return -EINVAL;
    t = thread_create(args);
    if (!t)
        return -ENOMEM;
    tid = thread_enlist(t);
    MARK(thread_new, "tid %d name %s", tid, t->name);
    if (thread_birth_hook)
        thread_birth_hook(t);
    thread_let_run(t);
    return tid;
}

static int idle_main(void *arg)
{
    (void)arg;
    sched_idle();
}

INIT struct thread *thread_create_idle(unsigned cpu)
{
    char name[THREAD_NAME_LEN];
    struct clone_args args = { .fn = idle_main, .name = name, .cpus = BIT(cpu) };
    struct thread *t;
    unsigned long flags;

    snprintf(name, sizeof(name), "idle/%u", cpu);
    t = thread_create(&args);
    if (!t)
        return NULL;
    t->cpu = cpu;
    flags = sched_enter();
    thread_publish(t);
    sched_leave(flags);
    sched_idle_threads[cpu] = t;
    return t;
}

/* ---- running and ending ---------------------------------------------------------------- */

/* thread_start - run a new thread: its first C code; called by thread_entry. */
_Noreturn void thread_start(struct thread *left);
void thread_start(struct thread *left)
{
    struct thread *self = thread_current();

    sched_arrive(left);
    preempt_enable_no_resched();
    sti();
    do_exit(self->fn(self->arg));
}

/* A probe in it sees the end of each thread, so it is nowhere inline. */
NOINLINE void do_exit(int code)
{
    struct thread *self = thread_current();

    MARK(thread_exit, "tid %d code %d", self->tid, code);
    self->exit_code = code;
    sched_exit();
}

void thread_died(struct thread *t)
{
    t->state = THREAD_DEAD;
    if (t->detached)
        list_append(&reapable, &t->queue_link);
}

void thread_bury(void)
{
    wake_all(&mourners);
}

int thread_set_affinity(uint64_t mask)
{
    int err = wait_check(__func__);
    unsigned long flags;
    bool stays;

    if (err)
        return err;
    if (!(mask & online_mask()))
        return -EINVAL;
    flags = sched_enter();
    thread_current()->cpus = mask;
    stays = mask & BIT(cpu_id());
    sched_leave(flags);
    if (!stays)
        schedule();
    return 0;
}

/* ---- freeing --------------------------------------------------------------------------- */

/* is_free_to_go - may @t be freed? No CPU is on its stack then, and no pin holds it.
 * Locks: sched_lock held.
 */
static bool is_free_to_go(const struct thread *t)
{
    return t->state == THREAD_DEAD && t->pins == 0;
}

/* thread_forget - take @t out of the lists if it is free to go. Return: was it? */
static bool thread_forget(struct thread *t)
{
    unsigned long flags = sched_enter();
    bool is_free = is_free_to_go(t);

    if (is_free) {
        list_remove(&t->all_link);
        list_remove(&t->queue_link);
    }
    sched_leave(flags);
    return is_free;
}

/* thread_free - free @t, which is dead. Only the caller frees it. Return: false: a walk has
 * pinned @t, and mourners are woken when it is free to go.
 */
static bool thread_free(struct thread *t)
{
    if (thread_burial_hook)
        thread_burial_hook(t, true);
    if (!thread_forget(t))
        return false;
    if (thread_burial_hook)
        thread_burial_hook(t, false);
    if (t == &boot_thread)
        return true;
    stack_free(t->stack_top, t->stack_len);
    kfree(t);
    return true;
}

/* joiner_claim - let only the caller join thread @tid. Return: as thread_join(). */
static int joiner_claim(int tid, struct thread **out)
{
    unsigned long flags = sched_enter();
    struct thread *t = tid > 0 ? thread_find(tid) : NULL;
    int err = 0;

    if (!t || t->detached || t->joined)
        err = -ENOENT;
    else if (t == thread_current())
        err = -EDEADLK;
    if (!err) {
        t->joined = true;
        *out = t;
    }
    sched_leave(flags);
    return err;
}

int thread_join(int tid, int *code)
{
    int err = wait_check(__func__);
    struct thread *t;

    if (!err)
        err = joiner_claim(tid, &t);
    if (err)
        return err;
    wait_event(&mourners, READ_ONCE(t->state) == THREAD_DEAD);
    if (code)
        *code = t->exit_code;
    while (!thread_free(t))
        wait_event(&mourners, READ_ONCE(t->pins) == 0);
    return 0;
}

/* reaper_next - find the next detached thread that is free to go. NULL: there is none. */
static struct thread *reaper_next(void)
{
    unsigned long flags = sched_enter();
    struct thread *t, *found = NULL;

    list_for_each(t, &reapable, queue_link) {
        if (!is_free_to_go(t))
            continue;
        found = t;
        break;
    }
    sched_leave(flags);
    return found;
}

/* reap_next - free the next detached thread. If a walk has pinned it meanwhile, it stays in
 * the list: the function that the walk calls may sleep for long, and other threads wait.
 */
static void reap_next(void)
{
    struct thread *t;

    wait_event(&mourners, (t = reaper_next()) != NULL);
    thread_free(t);
}

static _Noreturn int reaper_main(void *arg)
{
    (void)arg;
    for (;;)
        reap_next();
}

/* ---- looking at all -------------------------------------------------------------------- */

/* A walk through the list of all threads. It ends with the last thread that existed when
 * the walk began: else it would never end if threads are made too fast.
 */
struct thread_walk {
    struct thread *at; /* pinned, so it stays in the list; NULL: not begun */
    uint64_t last_born;
};

/* follower - get the thread behind the thread that the walk is at; NULL: the walk ends.
 * Locks: sched_lock held.
 */
static struct thread *follower(const struct thread_walk *w)
{
    struct list *next = w->at ? w->at->all_link.next : sched_all.next;
    struct thread *t = list_entry(next, struct thread, all_link);

    return next == &sched_all || t->born > w->last_born ? NULL : t;
}

/* walk_on - unpin the thread that the walk is at, and pin the next thread.
 * Return: false: there is no next thread.
 */
static bool walk_on(struct thread_walk *w)
{
    unsigned long flags = sched_enter();
    struct thread *next = follower(w);
    bool let_go = false;

    if (next)
        next->pins++;
    if (w->at) {
        w->at->pins--;
        let_go = is_free_to_go(w->at);
    }
    sched_leave(flags);
    if (let_go)
        thread_bury();
    w->at = next;
    return next;
}

static uint64_t births_so_far(void)
{
    unsigned long flags = sched_enter();
    uint64_t n = births;

    sched_leave(flags);
    return n;
}

void thread_for_each(void (*fn)(struct thread *t, void *arg), void *arg)
{
    struct thread_walk w = { .last_born = births_so_far() };

    while (walk_on(&w))
        fn(w.at, arg);
}

/* ---- start ----------------------------------------------------------------------------- */

INIT void sched_start(unsigned hz)
{
    const struct clone_args reaper = { .fn = reaper_main,
                                       .name = "reaper",
                                       .detached = true };

    if (!thread_create_idle(0) || kernel_clone(&reaper) < 0)
        panic("no memory for the first threads");
    sched_timer_start(hz);
    preempt_enable_no_resched();
}
