/* inside.c - finds out whether a thread is still in the text of a module. This is asked
 * when there is no new way in, and after quiescence.
 *
 * A thread is inside if its ip is in the text, or if it will return there. In the second
 * case an address of the text, or of a copy of a part of it, is on the stack of the
 * thread; or a return probe has taken the address off the stack, and it is in a shadow.
 * So each word of each stack in use is compared. The registers that an interrupt has
 * saved lie on a stack, too. The machine is stopped meanwhile and nothing changes. So an
 * address cannot move from a word that has not been compared yet to a word that has.
 *
 * A word that is left over on a stack looks the same as a return address. Then the module
 * stays until the thread has run on.
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

/* text_of - return the address in the program that @addr stands for, if it is in the
 * text; else 0.
 */
static uintptr_t text_of(const struct module *m, uintptr_t addr)
{
    if (exec_contains(addr))
        addr = module_watch->original(addr);
    return addr >= m->facts.text + ELF_TEXT_GAP && addr < m->facts.text_end ? addr : 0;
}

/* look_at - note @addr, which @t has in a register or on its stack, if it is in the text.
 */
static void look_at(struct search *s, const struct thread *t, uintptr_t addr)
{
    addr = text_of(s->m, addr);
    if (!addr)
        return;
    s->found = addr;
    s->tid = t->tid;
    memcpy(s->name, t->name, sizeof(s->name));
    s->runs = t->state == THREAD_RUNNING;
}

static void look_at_words(struct search *s, const struct thread *t, uintptr_t sp)
{
    uintptr_t top = (uintptr_t)t->stack_top;

    if (sp < top - t->stack_len || sp >= top)
        sp = top - t->stack_len; /* it is on the stack of an NMI or the like: take all */
    for (const uintptr_t *word = (const uintptr_t *)(sp & ~7ul);
         (uintptr_t)word < top && !s->found; word++)
        look_at(s, t, *word);
}

static void look_at_thread(struct thread *t, void *arg)
{
    struct search *s = arg;
    const struct pt_regs *regs;

    if (s->found || t == s->self || t->state == THREAD_DEAD || !t->stack_len)
        return;
    regs = t->state == THREAD_RUNNING ? stop_machine_regs(t->cpu) : NULL;
    if (regs)
        look_at(s, t, regs->ip);
    if (s->found)
        return;
    if (t->state != THREAD_RUNNING)
        look_at_words(s, t, t->sp);
    else
        look_at_words(s, t, regs ? regs->sp : 0);
    if (!s->found && t->state != THREAD_EXITING)
        look_at(s, t, (uintptr_t)t->fn); /* maybe it has not begun yet */
}

static void look_at_all(void *arg)
{
    struct search *s = arg;

    thread_for_each(look_at_thread, s);
    if (s->found)
        return;
    s->found = module_watch->returns_to(s->m->facts.text, s->m->facts.text_end);
    s->tid = -1;
}

static bool calls_itself(const struct module *m)
{
    uintptr_t frames[32];
    size_t count = backtrace_collect(NULL, frames, 32);

    for (size_t i = 0; i < count; i++)
        if (text_of(m, frames[i]))
            return true;
    return false;
}

static int look_once(const struct module *m, char *why)
{
    struct search s = { .m = m, .self = thread_current() };
    struct ksym sym;

    if (calls_itself(m)) {
        snprintf(why, MODULE_WHY_MAX, "it is called from its own text");
        return -EDEADLK;
    }
    stop_machine(look_at_all, &s);
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
    return -EBUSY;
}

#define LOOKS 5
#define LOOK_AGAIN_NS 1000000

/* inside_look - look several times. A word that is left over looks like a return address:
 * it is in a register that an interrupt has saved, or in a part of a stack that is not in
 * use any more. When the thread has run on for a while, the word is gone.
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
