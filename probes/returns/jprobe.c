/* jprobe.c - jprobes: calls a handler that has the probed function's own signature.
 *
 * An ordinary pre-handler, jprobe_entry(), calls the jprobe's handler inside the hit. It
 * loads the argument registers from the image, and copies arguments from the program's
 * stack to the handler's stack. The handler may change its arguments on the stack; it
 * then changes only the copy. The handler ends with jprobe_return(), which may be
 * called from any depth of calls, and drops the stack frames of all these calls. A plain
 * return from the handler has the same effect.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"

#define WORD sizeof(uint64_t)
#define PAGE_LEN 4096ul

/* ---- the call ---- */

/* stack_words - count the words above the return address at @sp that can be read, up to
 * JPROBE_STACK_LEN bytes.
 */
static size_t stack_words(uintptr_t sp)
{
    uintptr_t first = sp + WORD, last = sp + JPROBE_STACK_LEN;
    uint64_t word;

    if (first / PAGE_LEN == last / PAGE_LEN || !plat_read(&word, last))
        return JPROBE_STACK_LEN / WORD;
    return (PAGE_LEN - first % PAGE_LEN) / WORD;
}

int jprobe_entry(struct kprobe *p, struct pt_regs *regs)
{
    const struct jprobe *jp = CONTAINER_OF(p, struct jprobe, kp);
    struct probe_cpu *cpu = plat_this_cpu();

    plat_jprobe_call((uintptr_t)jp->entry, regs, stack_words(regs->sp),
                     &cpu->hits[cpu->depth - 1].jprobe_sp);
    kretprobe_unwind(cpu, (uintptr_t)regs); /* calls that jprobe_return() has dropped */
    return 0;
}

void jprobe_return(void)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    const struct probe_hit *hit = cpu && cpu->depth ? &cpu->hits[cpu->depth - 1] : NULL;

    if (!hit || !hit->running || hit->running->kind != KPROBE_KIND_JPROBE)
        plat_bug("jprobe_return() outside of a jprobe's handler",
                 (uintptr_t)__builtin_return_address(0));
    plat_jprobe_leave(hit->jprobe_sp);
}

/* ---- in and out ---- */

/* check_jprobe - check @jp. *@addr receives its address; 0: nothing has its name, and
 * register_kprobes_why() decides whether it may wait.
 */
static int check_jprobe(struct jprobe *jp, uintptr_t *addr, struct probe_reject *why)
{
    int err;

    *addr = 0;
    if (!jp->entry)
        return probe_refuse(why, PROBE_NO_HANDLER, 0);
    if (jp->kp.site)
        return probe_refuse(why, PROBE_REGISTERED, jp->kp.addr);
    err = register_resolve(&jp->kp, addr, why);
    return err == -ENOENT && jp->kp.flags & KPROBE_FLAG_PENDING ? 0 : err;
}

/* check_all - check each of @jps, and that no two of them are at the same address.
 * @addrs: receives the address of each
 */
static int check_all(struct jprobe **jps, uintptr_t *addrs, size_t count,
                     struct probe_reject *why)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++) {
        err = check_jprobe(jps[i], &addrs[i], why);
        for (size_t j = 0; j < i && !err; j++)
            if (addrs[i] && addrs[j] == addrs[i])
                err = probe_refuse(why, PROBE_HAS_JPROBE, addrs[i]);
        if (err && why)
            why->index = i;
    }
    return err;
}

/* make_jprobes - make the kprobes of @jps, @ps, jprobes, if the checks accept all of them.
 * They may be registered as probes, and their sites change meanwhile, so PLAT_PROBES is
 * needed.
 */
static int make_jprobes(struct jprobe **jps, struct kprobe **ps, uintptr_t *addrs,
                        size_t count, struct probe_reject *why)
{
    int err;

    plat_lock(PLAT_PROBES);
    err = check_all(jps, addrs, count, why);
    for (size_t i = 0; i < count && !err; i++) {
        ps[i] = &jps[i]->kp;
        ps[i]->pre_handler = jprobe_entry;
        ps[i]->kind = KPROBE_KIND_JPROBE;
    }
    plat_unlock(PLAT_PROBES);
    return err;
}

static int register_with(struct jprobe **jps, struct kprobe **ps, uintptr_t *addrs,
                         size_t count, struct probe_reject *why)
{
    int err = make_jprobes(jps, ps, addrs, count, why);

    if (err)
        return err;
    err = register_kprobes_why(ps, count, why);
    for (size_t i = 0; err && i < count; i++)
        ps[i]->kind = KPROBE_KIND_PROBE;
    return err;
}

COLD int register_jprobes_why(struct jprobe **jps, size_t count, struct probe_reject *why)
{
    int err = register_check_caller("register_jprobes", why);
    struct kprobe **ps;

    if (err)
        return err;
    ps = plat_alloc((count + 1) * (sizeof(ps[0]) + sizeof(uintptr_t)));
    if (!ps)
        return probe_refuse(why, PROBE_NO_MEMORY, 0);
    err = register_with(jps, ps, (uintptr_t *)(ps + count), count, why);
    plat_free(ps);
    return err;
}
