/* xmc_parts.h - private to probes/xmc. */
#pragma once

#include "probes/core/life.h"
#include "probes/core/rules.h"
#include "probes/xmc/xmc.h"

/* An exchange: what is asked for, and what the rules have found out about it. */
struct exchange {
    struct ruling ruling;
    const uint8_t *bytes;
    size_t len;
    enum xmc_mode mode;
    uint8_t old_bytes[INSN_MAX_LEN];
    struct insn old, new;        /* the first old and the first new instruction */
    size_t old_count, new_count; /* how many instructions there are */
    uintptr_t old_end;           /* the end of the last old instruction */
    uintptr_t call_inside;       /* a call that is not the last old instruction; or 0 */
    struct site *under;          /* the old instruction's site; NULL: it has none */
    struct site *site;           /* the site that step 2 has made */
    bool stays_armed;            /* @under is armed, and its int3 must stay */
};

static inline uintptr_t exchange_start(const struct exchange *x)
{
    return x->ruling.addr;
}

static inline uintptr_t exchange_end(const struct exchange *x)
{
    return exchange_start(x) + x->len;
}

/* exchange_check - check the rules. They fill in the fields about the old and the new
 * instructions. Locks: PLAT_PROBES held.  Return: 0; a reason's errno.
 */
int exchange_check(struct exchange *x, struct probe_reject *why);

/* exchange_is_one - is only the first new instruction ever executed: is it the only one, or
 * does the program never go on behind it? Context: any.
 * exchange_can_trap - can a CPU that traps be made to run @insn? Context: any.
 */
bool exchange_is_one(const struct exchange *x);
bool exchange_can_trap(const struct insn *insn);

/* exchange_lead - tell the planner of regions the addresses that the new instructions lead
 * to.
 * exchange_unlead - let it forget those of the old instructions (@is_done), or, if the
 * exchange is not made, those of the new ones (!@is_done).
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM, and nothing has changed.
 */
int exchange_lead(struct exchange *x, struct probe_reject *why);
void exchange_unlead(struct exchange *x, bool is_done);
