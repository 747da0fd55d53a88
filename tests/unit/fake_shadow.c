/* fake_shadow.c - port_fake's stacks and returns: a shadow for the one stack, and another
 * shadow for the stack of NMIs. The engine asks for both by plat_shadow_make().
 */
#include "tests/unit/port_fake.h"

#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"

const char kretprobe_trampoline[1] = { (char)0xcc };

static struct shadow *shadows[2]; /* of the stack, and of the NMI stack */
static uintptr_t switching;

static int make(unsigned i, bool with_data)
{
    uintptr_t top;
    size_t len = fake_stack_area(i, &top);

    if (!shadows[i])
        shadows[i] = shadow_new(top, len);
    if (!shadows[i])
        return -ENOMEM;
    for (unsigned cpu = 0; cpu < FAKE_CPUS; cpu++) {
        plat_probe_cpu(cpu)->plat.shadow = &shadows[0];
        plat_probe_cpu(cpu)->plat.nmi_shadow = shadows[1];
    }
    return with_data ? shadow_add_data(shadows[i]) : 0;
}

int plat_shadow_make(bool with_data)
{
    int err = make(0, with_data);

    return err ? err : make(1, with_data);
}

void fake_shadow_end(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (shadows[i])
            shadow_unwind(shadows[i], 0);
        shadow_free(shadows[i]);
        shadows[i] = NULL;
    }
    switching = 0;
}

void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg)
{
    for (unsigned i = 0; i < 2; i++)
        if (shadows[i])
            fn(shadows[i], arg);
}

const struct shadow *plat_shadow_of(uintptr_t at)
{
    for (unsigned i = 0; i < 2; i++)
        if (shadows[i] && shadow_covers(shadows[i], at))
            return shadows[i];
    return NULL;
}

void fake_switches_stack(uintptr_t addr)
{
    switching = addr;
}

bool plat_switches_stack(uintptr_t addr)
{
    return addr == switching;
}

/* ---- jprobes ---- */

/* plat_jprobe_call - call @fn with the six arguments in registers. The arguments on the
 * stack, @words of them, are only counted.
 */
void plat_jprobe_call(uintptr_t fn, const struct pt_regs *regs, size_t words,
                      uintptr_t *save_sp)
{
    jmp_buf here;

    fake.jprobe_words = words;
    *save_sp = (uintptr_t)&here;
    if (!setjmp(here))
        ((void (*)(long, long, long, long, long, long))fn)(
            (long)regs->di, (long)regs->si, (long)regs->dx, (long)regs->cx,
            (long)regs->r8, (long)regs->r9);
}

void plat_jprobe_leave(uintptr_t sp)
{
    longjmp(*(jmp_buf *)sp, 1);
}
