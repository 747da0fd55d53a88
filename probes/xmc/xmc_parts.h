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
    struct insn old, new;        /* the first ones */
    size_t old_count, new_count; /* how many there are */
    uintptr_t old_end;           /* behind the last old one */
    uintptr_t call_inside;       /* a call that is not the last old one; or 0 */
    struct site *under;          /* that carries the old one now, or NULL */
    struct site *site;           /* that carries the new one */
    bool stays_armed;            /* there is an int3, and it is to stay */
};

static inline uintptr_t exchange_start(const struct exchange *x)
{
    return x->ruling.addr;
}

static inline uintptr_t exchange_end(const struct exchange *x)
{
    return exchange_start(x) + x->len;
}

/* exchange_check - ask the rules, which fill in what the old and the new instructions are.
 * Locks: PLAT_PROBES held.  Return: 0; a reason's errno.
 */
int exchange_check(struct exchange *x, struct probe_reject *why);

/* exchange_is_one - do the new ones as much as the first of them? Context: any.
 * exchange_can_trap - can a CPU that traps be made to run @insn? Context: any.
 */
bool exchange_is_one(const struct exchange *x);
bool exchange_can_trap(const struct insn *insn);

/* exchange_lead - make known where the new ones lead.
 * exchange_unlead - forget where the old ones have led; or, if it is not done, the new ones.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM, and all is as before.
 */
int exchange_lead(struct exchange *x, struct probe_reject *why);
void exchange_unlead(struct exchange *x, bool is_done);
