/* mass.c - registers, disables and unregisters very many probes, in portions. */
#include "probes/many/mass.h"

#include "kernel/base/err.h"

#define PORTION 4096u /* probes; a portion takes a fraction of a second */

static size_t portion(size_t left)
{
    return left < PORTION ? left : PORTION;
}

/* ---- register ---- */

/* move_to_front - move the @count probes that begin at index @from, so that they begin at
 * index @in.
 */
static void move_to_front(struct kprobe **ps, size_t in, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct kprobe *p = ps[in + i];

        ps[in + i] = ps[from + i];
        ps[from + i] = p;
    }
}

/* register_off - register the probes disabled, so that none is armed yet.
 * @in: is increased by the number of registered probes
 */
static int register_off(struct shell *sh, struct kprobe **ps, size_t count,
                        void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                        void *arg),
                        void *arg, size_t *in)
{
    for (size_t at = 0, some; at < count; at += some) {
        long accepted;

        if (shell_interrupted(sh))
            return -EINTR;
        some = portion(count - at);
        for (size_t i = at; i < at + some; i++)
            ps[i]->flags |= KPROBE_FLAG_DISABLED;
        accepted = register_kprobes_some(ps + at, some, refused, arg);
        if (accepted < 0)
            return (int)accepted;
        move_to_front(ps, *in, at, (size_t)accepted);
        *in += (size_t)accepted;
        shell_progress(sh, "%zu of %zu probes", at + some, count);
    }
    return shell_interrupted(sh) ? -EINTR : 0;
}

/* take_back - unregister the first @in probes: only these are registered. */
static void take_back(struct shell *sh, struct kprobe **ps, size_t in)
{
    shell_progress(sh, "%zu probes are taken away again", in);
    unregister_kprobes(ps, in);
}

long mass_register(struct shell *sh, struct kprobe **ps, size_t count,
                   void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg),
                   void *arg)
{
    size_t in = 0;
    int err = register_off(sh, ps, count, refused, arg, &in);

    for (size_t i = in; i < count; i++)
        ps[i]->flags &= ~KPROBE_FLAG_DISABLED;
    if (!err) {
        shell_progress(sh, "%zu probes are being armed", in);
        err = enable_kprobes(ps, in);
    }
    if (!err && shell_interrupted(sh))
        err = -EINTR;
    if (err)
        take_back(sh, ps, in);
    shell_progress(sh, NULL);
    return err ? err : (long)in;
}

/* ---- disable, unregister ---- */

/* The lowest addresses are those of the engine's own code. Its probes are disabled first.
 * Otherwise the engine would hit its own probes while it disables all others.
 */
int mass_disable(struct shell *sh, struct kprobe **ps, size_t count)
{
    int err = 0;

    for (size_t at = 0, some; at < count && !err; at += some) {
        some = portion(count - at);
        if (at)
            shell_progress(sh, "%zu of %zu probes are off", at, count);
        err = shell_interrupted(sh) ? -EINTR : disable_kprobes(ps + at, some);
    }
    shell_progress(sh, NULL);
    return err;
}

static int unregister_portions(struct shell *sh, struct kprobe **ps, size_t *count)
{
    while (*count) {
        size_t some = portion(*count);
        int err = shell_interrupted(sh) ? -EINTR : 0;

        if (!err)
            err = unregister_kprobes(ps + *count - some, some);
        if (err)
            return err;
        *count -= some;
        if (*count)
            shell_progress(sh, "%zu probes are left", *count);
    }
    return 0;
}

int mass_unregister(struct shell *sh, struct kprobe **ps, size_t *count)
{
    int err = *count > PORTION ? mass_disable(sh, ps, *count) : 0;

    if (!err)
        err = unregister_portions(sh, ps, count);
    shell_progress(sh, NULL);
    return err;
}
