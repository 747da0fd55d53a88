/* reject.c - the table of reasons. */
#include "probes/core/reject.h"

#include "kernel/base/err.h"

#define REASON_ROW(name, err, why) [PROBE_##name] = { #name, -err, why },
static const struct {
    const char *name;
    int err;
    const char *why;
} reasons[] = { PROBE_REASONS(REASON_ROW) };

int probe_refuse(struct probe_reject *out, enum probe_reason reason, uintptr_t at)
{
    if (out)
        *out = (struct probe_reject){
            .err = reasons[reason].err,
            .reason = reason,
            .at = at,
            .why = reasons[reason].why,
        };
    return reasons[reason].err;
}

const char *probe_reason_name(enum probe_reason reason)
{
    return reason < PROBE_REASON_COUNT ? reasons[reason].name : "?";
}

const char *probe_reason_text(enum probe_reason reason)
{
    return reason < PROBE_REASON_COUNT ? reasons[reason].why : "?";
}
