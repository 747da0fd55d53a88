/* inside.c - finds out whether a thread is still in the text of a module. This is asked
 * when there is no new way in, and after quiescence.
 *
 * A thread is inside if its ip is in the text, or if it will return there. If a thread has
 * given its CPU up, the chain of its frames tells all places to which it will return. Its
 * stack may also hold the address of a function that the thread is about to call; so each
 * word is compared with the starts of functions.
 *
 * An interrupt may come at any instruction, also where a function has no frame yet. So if
 * a thread was interrupted, each register in the image counts that is an address of the
 * text, or of a copy of a part of it, and each such word above the image's stack pointer. A
 * word there that is left over looks the same as a return address. Then the module stays
 * until the thread has run on. The words below are of the interrupt: a thread that is
 * preempted again and again would never overwrite an old one among them.
 *
 * If a return probe has taken a return address off a stack, it is in a shadow.
 *
 * The machine is stopped meanwhile and nothing changes. So an address cannot move from a
 * word that has not been compared yet to a word that has.
 *
 * For the thread that asks, the chain of frames is followed instead: its own stack holds
 * the bounds of the text as words.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/smp.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/exec.h"
#include "kernel/module/parts.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/thread/thread.h"

#include <stdio.h>
#include <string.h>

struct search {
    const struct module *m;
    const struct thread *self;
    uintptr_t found; /* an address in the text, or 0 */
    int tid;
    char name[THREAD_NAME_LEN];
    bool runs;
};

/* module_text_of - return the address in the program that @addr stands for, if it is in the
 * text; else 0.
 */
static uintptr_t module_text_of(const struct module *m, uintptr_t addr)
{
    if (exec_contains(addr))
        addr = module_watch->original(addr);
    return addr >= m->facts.text + ELF_TEXT_GAP && addr < m->facts.text_end ? addr : 0;
}

/* look_at - note @addr, which @t has in a register or on its stack, if it is in the text.
 */
static void look_at(struct search *s, const struct thread *t, uintptr_t addr)
{
    addr = module_text_of(s->m, addr);
    if (!addr)
        return;
    s->found = addr;
    s->tid = t->tid;
    memcpy(s->name, t->name, sizeof(s->name));
    s->runs = t->state == THREAD_RUNNING;
}

/* is_function_of - is @addr the start of a function of the text? */
static bool is_function_of(const struct search *s, uintptr_t addr)
{
    struct ksym sym;

    addr = module_text_of(s->m, addr);
    return addr && !ksyms_at(addr, &sym) && sym.start == addr;
}

static void look_at_words(struct search *s, const struct thread *t, uintptr_t from,
                          uintptr_t to, bool functions_only)
{
    for (const uintptr_t *word = (const uintptr_t *)(from & ~7ul);
         (uintptr_t)word < to && !s->found; word++)
        if (!functions_only || is_function_of(s, *word))
            look_at(s, t, *word);
}

#define CALLS_MAX 64

/* look_at_calls - look at the addresses to which a thread will return that is off its CPU.
 * Return: false: they are not known.
 */
static bool look_at_calls(struct search *s, const struct thread *t)
{
    uintptr_t calls[CALLS_MAX];
    size_t count =
        backtrace_calls(((const struct switch_frame *)t->sp)->bp, calls, CALLS_MAX);

    for (size_t i = 0; i < count && !s->found; i++)
        look_at(s, t, calls[i]);
    return count;
}

static void look_at_thread(struct thread *t, void *arg)
{
    struct search *s = arg;
    uintptr_t sp = 0, top = (uintptr_t)t->stack_top;
    bool functions_only = false;
    const struct pt_regs *regs;

    if (s->found || t == s->self || t->state == THREAD_DEAD || !t->stack_len)
        return;
    regs = t->state == THREAD_RUNNING ? stop_machine_regs(t->cpu) : t->preempted_regs;
    if (regs) {
        look_at_words(s, t, (uintptr_t)regs, (uintptr_t)(regs + 1), false);
        sp = regs->sp;
    } else if (t->state != THREAD_RUNNING) {
        functions_only = look_at_calls(s, t);
        sp = t->sp;
    }
    if (sp < top - t->stack_len || sp >= top)
        sp = top - t->stack_len; /* it is on the stack of an NMI or the like: take all */
    look_at_words(s, t, sp, top, functions_only);
    if (!s->found && t->state != THREAD_EXITING)
        look_at(s, t, (uintptr_t)t->fn); /* maybe it has not begun yet */
}

static void look_at_threads(void *arg)
{
    struct search *s = arg;

    thread_for_each(look_at_thread, s);
    if (s->found)
        return;
    s->found = module_watch->returns_to(s->m->facts.text, s->m->facts.text_end);
    s->tid = -1;
}

/* calls_itself - will the calling thread return to the text? The chain of its frames is as
 * long as its stack lets it be; so it is followed frame by frame, to where the thread has
 * begun. There is no image on the way, see wait_check(). A chain that does not lead there
 * proves nothing.
 */
static bool calls_itself(const struct module *m)
{
    const uintptr_t *frame = __builtin_frame_address(0), *outer;

    for (;; frame = outer) {
        outer = (const uintptr_t *)frame[0];
        if (module_text_of(m, backtrace_original(frame[1], &frame[1], 0)))
            return true;
        if (outer <= frame)
            return outer != NULL;
    }
}

static int look_once(const struct module *m, char *why)
{
    struct search s = { .m = m, .self = thread_current() };
    struct ksym sym;

    if (calls_itself(m)) {
        snprintf(why, MODULE_WHY_MAX, "it is called from its own text");
        return -EDEADLK;
    }
    stop_machine(look_at_threads, &s);
    if (!s.found)
        return 0;
    if (s.tid < 0)
        snprintf(why, MODULE_WHY_MAX,
                 "a call that a return probe follows returns to 0x%lx", s.found);
    else if (ksyms_at(s.found, &sym))
        snprintf(why, MODULE_WHY_MAX, "thread %d (%s) %s in its text at 0x%lx", s.tid,
                 s.name, s.runs ? "runs" : "sleeps", s.found);
    else
        snprintf(why, MODULE_WHY_MAX, "thread %d (%s) %s in %s:%s+0x%lx", s.tid, s.name,
                 s.runs ? "runs" : "sleeps", m->facts.name, sym.name,
                 s.found - sym.start);
    strlcat(why, ": try again when it has left", MODULE_WHY_MAX);
    return -EBUSY;
}

#define LOOKS 5
#define LOOK_AGAIN_NS 1000000

/* inside_look - look several times. On the stack of a thread that was interrupted a word
 * that is left over looks like a return address: it is in a register that the interrupt has
 * saved, or in a part of a frame that is not in use. When the thread has run on for a
 * while, the word is gone.
 */
int inside_look(const struct module *m, char *why)
{
    int err = look_once(m, why);

    for (unsigned i = 1; i < LOOKS && err == -EBUSY; i++) {
        thread_sleep_ns(LOOK_AGAIN_NS);
        err = look_once(m, why);
    }
    return err;
}
