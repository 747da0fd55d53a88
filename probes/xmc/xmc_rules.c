/* xmc_rules.c - may the old instructions be exchanged for the new ones? To which addresses
 * do the new ones lead?
 *
 * The rules are a table, see rules.h.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"
#include "probes/region/targets.h"
#include "probes/xmc/xmc_parts.h"

#define STORE_MAX 8
#define OPCODE_STI 0xfb

static struct exchange *exchange_of(struct ruling *r)
{
    return CONTAINER_OF(r, struct exchange, ruling);
}

/* ---- 1: the old instructions ----------------------------------------------------------- */

static bool is_no_length(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    return !x->len || x->len > INSN_MAX_LEN;
}

static bool is_no_store(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    return x->mode == XMC_STORE &&
           (x->len > STORE_MAX || (x->len & (x->len - 1)) || r->addr % x->len);
}

static bool leaves_text(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    return !plat_text_contains(r->addr, x->len);
}

static void take_old(struct exchange *x, const struct insn *insn)
{
    size_t off = insn->addr - exchange_start(x);

    for (size_t i = 0; i < insn->len && off + i < x->len; i++)
        x->old_bytes[off + i] = insn->bytes[i];
    if (!x->old_count++)
        x->old = *insn;
    if (insn_is_call(insn) && insn_next(insn) < exchange_end(x))
        x->call_inside = insn->addr;
}

/* replaces_protected - is there an old instruction that must not carry a probe? This
 * also fills in the fields about the old instructions.
 */
static bool replaces_protected(struct ruling *r)
{
    struct exchange *x = exchange_of(r);
    struct probe_reject why;
    struct insn insn;

    for (x->old_end = r->addr; x->old_end < exchange_end(x);
         x->old_end = insn_next(&insn)) {
        if (kprobe_check(x->old_end, &insn, &why))
            return rules_refuse_as(r, &why);
        take_old(x, &insn);
    }
    return false;
}

static bool ends_elsewhere(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);
    struct plat_symbol function;

    r->at = exchange_end(x);
    return x->old_end != exchange_end(x) || plat_symbol_at(r->addr, &function) ||
           exchange_end(x) > function.start + function.size;
}

/* ---- 1: the new instructions ----------------------------------------------------------- */

/* for_each_in - decode @bytes and call @fn for each instruction. Return: false: decoding or
 * @fn has failed at x->ruling.at.
 */
static bool for_each_in(struct exchange *x, const uint8_t *bytes, size_t len,
                        int (*fn)(struct exchange *x, const struct insn *insn))
{
    struct insn insn;

    for (size_t off = 0; off < len; off += insn.len) {
        x->ruling.at = exchange_start(x) + off;
        if (insn_decode(&insn, bytes + off, len - off, x->ruling.at) || fn(x, &insn))
            return false;
    }
    return true;
}

static bool for_each_new(struct exchange *x,
                         int (*fn)(struct exchange *x, const struct insn *insn))
{
    x->ruling.at = exchange_start(x);
    if (x->new_count == 1)
        return !fn(x, &x->new);
    return for_each_in(x, x->bytes, x->len, fn);
}

static bool for_each_old(struct exchange *x,
                         int (*fn)(struct exchange *x, const struct insn *insn))
{
    if (x->old_count == 1)
        return !fn(x, &x->old);
    return for_each_in(x, x->old_bytes, x->len, fn);
}

static int count_new(struct exchange *x, const struct insn *insn)
{
    if (!x->new_count++)
        x->new = *insn;
    return 0;
}

static bool is_no_code(struct ruling *r)
{
    return !for_each_new(exchange_of(r), count_new);
}

bool exchange_is_one(const struct exchange *x)
{
    return x->new_count == 1 || !insn_falls_through(&x->new);
}

bool exchange_can_trap(const struct insn *insn)
{
    if (insn_is_ambiguous(insn))
        return false;
    return emulate_supports(insn) || insn_can_boost(insn);
}

static bool are_too_many(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    if (x->old_count == 1)
        return false;
    return x->mode == XMC_STORE || !exchange_is_one(x) || !exchange_can_trap(&x->new);
}

/* ---- 1: the sites that use the same bytes ------------------------------------------ */

/* sti_before - the site of an STI that ends at @addr, or NULL. An STI runs together with
 * the instruction behind it, so that instruction cannot be exchanged alone. The last byte
 * of an STI is its opcode; most other instructions end with another byte. An STI may have
 * prefixes, so the site may begin at any of the addresses in front.
 */
static const struct site *sti_before(uintptr_t addr)
{
    uint8_t last;

    if (recover_bytes(&last, addr - 1, 1) || last != OPCODE_STI)
        return NULL;
    for (uintptr_t at = addr - 1; at >= addr - INSN_MAX_LEN; at--) {
        const struct site *site = registry_find(at);

        if (site && site->is_sti && at + site->len == addr)
            return site;
    }
    return NULL;
}

/* can_change_under - may probes stay where they are while their instruction changes? */
static bool can_change_under(const struct exchange *x, const struct site *site)
{
    return x->mode == XMC_INT3 && x->old_count == 1 && x->new_count == 1 &&
           exchange_can_trap(&x->new) && !site->is_sti && x->new.kind != INSN_STI;
}

static bool replaces_probed(struct ruling *r)
{
    struct exchange *x = exchange_of(r);
    const struct site *site;

    x->under = registry_find(r->addr);
    if (x->under && !can_change_under(x, x->under))
        return rules_refuse(r, r->reason, r->addr);
    for (uintptr_t at = r->addr + 1; at < exchange_end(x); at++)
        if (registry_find(at))
            return rules_refuse(r, r->reason, at);
    site = sti_before(r->addr);
    if (!site && x->mode == XMC_STORE)
        site = unoptimize_reader(r->addr); /* a jump that reads these bytes */
    return site && rules_refuse(r, r->reason, site->addr);
}

static bool is_entered(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    r->at = x->old_count > 1 ? targets_find(r->addr + 1, exchange_end(x)) : 0;
    return r->at;
}

static bool replaces_call(struct ruling *r)
{
    r->at = exchange_of(r)->call_inside;
    return r->at;
}

static const struct rule rules[] = {
    { PROBE_XMC_LENGTH, is_no_length, true },
    { PROBE_XMC_STORE, is_no_store, true },
    { PROBE_NOT_TEXT, leaves_text, true },
    { PROBE_NOT_BOUNDARY, replaces_protected, true },
    { PROBE_XMC_CUT, ends_elsewhere, true },
    { PROBE_XMC_CODE, is_no_code, true },
    { PROBE_XMC_SEVERAL, are_too_many, true },
    { PROBE_XMC_PROBED, replaces_probed, true },
    { PROBE_XMC_ENTERED, is_entered, true },
    { PROBE_XMC_ENTERED, replaces_call, true },
};

int exchange_check(struct exchange *x, struct probe_reject *why)
{
    return rules_check(rules, ARRAY_LEN(rules), &x->ruling, why);
}

/* ---- 1: the addresses that they lead to ------------------------------------------------ */

#define LEADS_MAX 3

/* leads_of - the addresses in the text that @insn leads to, or may lead to later: the
 * target of a branch, and addresses in operands. Return: how many.
 */
static size_t leads_of(const struct insn *insn, uintptr_t out[LEADS_MAX])
{
    const uintptr_t places[LEADS_MAX] = {
        insn->target,
        insn->rip_relative ? insn->mem : 0,
        insn->imm_len && !insn->target ? (uintptr_t)insn->imm : 0,
    };
    size_t count = 0;

    for (size_t i = 0; i < LEADS_MAX; i++)
        if (plat_text_contains(places[i], 1))
            out[count++] = places[i];
    return count;
}

static int know_leads(struct exchange *x, const struct insn *insn)
{
    uintptr_t leads[LEADS_MAX];
    size_t count = leads_of(insn, leads);

    (void)x;
    for (size_t i = 0; i < count; i++) {
        unoptimize_region(leads[i]);
        if (!targets_add(insn->addr, leads[i]))
            continue;
        while (i--)
            targets_remove(insn->addr, leads[i]);
        return -ENOMEM;
    }
    return 0;
}

/* forget_leads - forget the addresses that @insn leads to. Regions that contain them may be
 * possible now, so the optimizer looks at the sites again.
 */
static int forget_leads(struct exchange *x, const struct insn *insn)
{
    uintptr_t leads[LEADS_MAX];
    size_t count = leads_of(insn, leads);

    (void)x;
    for (size_t i = 0; i < count; i++)
        if (targets_remove(insn->addr, leads[i]))
            optimize_retry();
    return 0;
}

int exchange_lead(struct exchange *x, struct probe_reject *why)
{
    if (for_each_new(x, know_leads))
        return 0;
    for_each_in(x, x->bytes, x->ruling.at - exchange_start(x), forget_leads);
    return probe_refuse(why, PROBE_NO_MEMORY, x->ruling.at);
}

void exchange_unlead(struct exchange *x, bool is_done)
{
    if (is_done)
        for_each_old(x, forget_leads);
    else
        for_each_new(x, forget_leads);
}
