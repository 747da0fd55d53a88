/* mass.c - registers, disables and unregisters very many probes, in portions. */
#include "probes/many/mass.h"

#include "kernel/base/err.h"

#include <stdarg.h>
#include <stdio.h>

#define PORTION 4096u /* probes; a portion takes a fraction of a second */

static size_t portion(size_t left)
{
    return left < PORTION ? left : PORTION;
}

PRINTF(2, 3)
static void tell_progress(const struct mass_caller *caller, const char *fmt, ...)
{
    char text[64];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    caller->progress(caller->arg, text);
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
static int register_off(const struct mass_caller *caller, struct kprobe **ps,
                        size_t count,
                        void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                        void *arg),
                        void *arg, size_t *in)
{
    for (size_t at = 0, some; at < count; at += some) {
        long accepted;

        if (caller->stop(caller->arg))
            return -EINTR;
        some = portion(count - at);
        for (size_t i = at; i < at + some; i++)
            ps[i]->flags |= KPROBE_FLAG_DISABLED;
        accepted = register_kprobes_some(ps + at, some, refused, arg);
        if (accepted < 0)
            return (int)accepted;
        move_to_front(ps, *in, at, (size_t)accepted);
        *in += (size_t)accepted;
        tell_progress(caller, "%zu of %zu probes", at + some, count);
    }
    return caller->stop(caller->arg) ? -EINTR : 0;
}

/* take_back - unregister the first @in probes: only these are registered. */
static void take_back(const struct mass_caller *caller, struct kprobe **ps, size_t in)
{
    tell_progress(caller, "%zu probes are taken away again", in);
    unregister_kprobes(ps, in);
}

long mass_register(const struct mass_caller *caller, struct kprobe **ps, size_t count,
                   void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg),
                   void *arg)
{
    size_t in = 0;
    int err = register_off(caller, ps, count, refused, arg, &in);

    for (size_t i = in; i < count; i++)
        ps[i]->flags &= ~KPROBE_FLAG_DISABLED;
    if (!err) {
        tell_progress(caller, "%zu probes are being armed", in);
        err = enable_kprobes(ps, in);
    }
    if (!err && caller->stop(caller->arg))
        err = -EINTR;
    if (err)
        take_back(caller, ps, in);
    caller->progress(caller->arg, NULL);
    return err ? err : (long)in;
}

/* ---- disable, unregister ---- */

/* The lowest addresses are those of the engine's own code. Its probes are disabled first.
 * Otherwise the engine would hit its own probes while it disables all others.
 */
int mass_disable(const struct mass_caller *caller, struct kprobe **ps, size_t count)
{
    int err = 0;

    for (size_t at = 0, some; at < count && !err; at += some) {
        some = portion(count - at);
        if (at)
            tell_progress(caller, "%zu of %zu probes are off", at, count);
        err = caller->stop(caller->arg) ? -EINTR : disable_kprobes(ps + at, some);
    }
    caller->progress(caller->arg, NULL);
    return err;
}

static int unregister_portions(const struct mass_caller *caller, struct kprobe **ps,
                               size_t *count)
{
    while (*count) {
        size_t some = portion(*count);
        int err = caller->stop(caller->arg) ? -EINTR : 0;

        if (!err)
            err = unregister_kprobes(ps + *count - some, some);
        if (err)
            return err;
        *count -= some;
        if (*count)
            tell_progress(caller, "%zu probes are left", *count);
    }
    return 0;
}

int mass_unregister(const struct mass_caller *caller, struct kprobe **ps, size_t *count)
{
    int err = *count > PORTION ? mass_disable(caller, ps, *count) : 0;

    if (!err)
        err = unregister_portions(caller, ps, count);
    caller->progress(caller->arg, NULL);
    return err;
}
