/* kretprobe_register.c - stage 1 of return probes: check them, make their holders, and
 * register their kprobes at the entries of the functions; and the same backwards.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/returns/holder.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"

/* ---- check ---- */

/* The place is checked when the probe joins a site: that may be later. */
static int check_kretprobe(const struct kretprobe *rp, struct probe_reject *why)
{
    if (rp->data_size > KRETPROBE_DATA_MAX)
        return probe_refuse(why, PROBE_DATA_TOO_BIG, 0);
    if (rp->holder || rp->kp.site)
        return probe_refuse(why, PROBE_REGISTERED, rp->kp.addr);
    return 0;
}

/* ---- register ---- */

/* Locks: preparing and registering each take PLAT_PROBES for themselves. The lock may be
 * released in between, because no hit uses the holders before the kprobes are registered.
 */
static void holders_free(struct kretprobe **rps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        plat_free(rps[i]->holder);
        rps[i]->holder = NULL;
        rps[i]->kp.kind = KPROBE_KIND_PROBE;
    }
}

/* prepare_one - check @rp and make its holder. Return: 0; a reason's errno. */
static int prepare_one(struct kretprobe *rp, struct probe_reject *why)
{
    int err = check_kretprobe(rp, why);

    if (err)
        return err;
    rp->holder = holder_new(rp);
    if (!rp->holder)
        return probe_refuse(why, PROBE_NO_MEMORY, 0);
    rp->kp.pre_handler = kretprobe_entry;
    rp->kp.kind = KPROBE_KIND_RETURN;
    rp->kp.post_handler = NULL;
    return 0;
}

static int prepare_all(struct kretprobe **rps, size_t count, struct probe_reject *why)
{
    bool with_data = false;

    for (size_t i = 0; i < count; i++) {
        int err = prepare_one(rps[i], why);

        if (err) {
            if (why)
                why->index = i;
            holders_free(rps, i);
            return err;
        }
        with_data |= rps[i]->data_size > 0;
    }
    if (!plat_shadow_make(with_data))
        return 0;
    holders_free(rps, count);
    return probe_refuse(why, PROBE_NO_MEMORY, 0);
}

static int prepare_locked(struct kretprobe **rps, size_t count, struct probe_reject *why)
{
    int err;

    plat_lock(PLAT_PROBES);
    holder_sweep();
    err = prepare_all(rps, count, why);
    plat_unlock(PLAT_PROBES);
    return err;
}

/* kprobes_of - make an array of the kprobes of @rps. The caller frees it. Return: NULL
 * without memory.
 */
static struct kprobe **kprobes_of(struct kretprobe **rps, size_t count)
{
    struct kprobe **ps = plat_alloc((count + 1) * sizeof(ps[0]));

    for (size_t i = 0; ps && i < count; i++)
        ps[i] = &rps[i]->kp;
    return ps;
}

int register_kretprobes_why(struct kretprobe **rps, size_t count,
                            struct probe_reject *why)
{
    int err = register_check_caller("register_kretprobes", why);
    struct kprobe **ps;

    if (err)
        return err;
    ps = kprobes_of(rps, count);
    if (!ps)
        return probe_refuse(why, PROBE_NO_MEMORY, 0);
    err = prepare_locked(rps, count, why);
    if (!err) {
        err = register_kprobes_why(ps, count, why);
        if (err)
            holders_free(rps, count);
    }
    plat_free(ps);
    return err;
}

/* ---- unregister ---- */

/* holders_set - let the holders point at their kretprobes (@on), or at none. A return finds
 * its handler by that pointer. Unregistering the kprobes waits until no handler runs. So
 * the pointer must be cleared before, or else a return could start a handler during the
 * wait.
 */
static void holders_set(struct kretprobe **rps, size_t count, bool on)
{
    for (size_t i = 0; i < count; i++)
        if (rps[i]->holder)
            WRITE_ONCE(rps[i]->holder->rp, on ? rps[i] : NULL);
}

static void holders_retire(struct kretprobe **rps, size_t count)
{
    plat_lock(PLAT_PROBES);
    for (size_t i = 0; i < count; i++) {
        if (rps[i]->holder) /* NULL: @rps has it twice, and this is the second time */
            holder_retire(rps[i]->holder);
        rps[i]->holder = NULL;
    }
    holder_sweep();
    plat_unlock(PLAT_PROBES);
}

static bool all_registered(struct kretprobe **rps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!rps[i]->holder)
            return false;
    return true;
}

static int unregister_locked(struct kretprobe **rps, struct kprobe **ps, size_t count)
{
    int err;

    holders_set(rps, count, false);
    err = unregister_kprobes(ps, count);
    if (err)
        holders_set(rps, count, true);
    else
        holders_retire(rps, count);
    return err;
}

static int unregister_in_turn(struct kretprobe **rps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct kprobe *p = &rps[i]->kp;
        int err = rps[i]->holder ? unregister_locked(&rps[i], &p, 1) : 0;

        if (err)
            return err;
    }
    return 0;
}

int unregister_kretprobes(struct kretprobe **rps, size_t count)
{
    int err = register_check_caller(__func__, NULL);
    struct kprobe **ps;

    if (err)
        return err;
    if (!all_registered(rps, count))
        return -EINVAL;
    ps = count > 1 ? kprobes_of(rps, count) : NULL;
    err = ps ? unregister_locked(rps, ps, count) : unregister_in_turn(rps, count);
    plat_free(ps);
    return err;
}
