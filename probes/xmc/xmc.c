/* xmc.c - replace instructions that CPUs may be executing.
 *
 *   1. may they be? The rules are a table, see rules.h
 *   2. a site without probes, for the CPUs that will trap: its copy is the new instruction,
 *      if there is only one, else the old one. Either is whole, and goes on behind the last
 *      byte
 *   3. the site is armed: int3 over the first byte
 *   4. of several old instructions: wait until no thread is behind the first. Since 3 no
 *      CPU comes in by the front, and by the rules none comes in by the side
 *   5. the new bytes, behind the int3 and then over it
 *   6. quiescence: no thread is in the copy; the site goes
 *
 * From 3 on nothing can fail.
 */
#include "probes/xmc/xmc.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/core/rules.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"
#include "probes/region/targets.h"

#define STORE_MAX 8

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
};

static struct exchange *exchange_of(struct ruling *r)
{
    return CONTAINER_OF(r, struct exchange, ruling);
}

static uintptr_t exchange_start(const struct exchange *x)
{
    return x->ruling.addr;
}

static uintptr_t exchange_end(const struct exchange *x)
{
    return exchange_start(x) + x->len;
}

/* ---- 1: what is there ------------------------------------------------------------------ */

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

/* replaces_protected - also goes through them. */
static bool replaces_protected(struct ruling *r)
{
    struct exchange *x = exchange_of(r);
    struct probe_reject why;
    struct insn insn;

    for (x->old_end = r->addr; x->old_end < exchange_end(x);
         x->old_end = insn_next(&insn)) {
        if (kprobe_check(x->old_end, &insn, &why))
            return rules_refuse(r, why.reason, why.at);
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

/* ---- 1: what is to come ---------------------------------------------------------------- */

/* for_each_in - Return: false when @fn, or decoding, has failed at x->ruling.at. */
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
    return for_each_in(x, x->bytes, x->len, fn);
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

/* is_one - the new ones do as much as the first of them. */
static bool is_one(const struct exchange *x)
{
    return x->new_count == 1 || !insn_falls_through(&x->new);
}

/* can_trap - can a CPU that traps be made to run @insn? */
static bool can_trap(const struct insn *insn)
{
    if (insn_is_near_branch(insn) && insn->opsize66)
        return false;
    return emulate_supports(insn) || insn_can_boost(insn);
}

static bool are_too_many(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);

    if (x->old_count == 1)
        return false;
    return x->mode == XMC_STORE || !is_one(x) || !can_trap(&x->new);
}

/* ---- 1: the sites that share its bytes --------------------------------------------- */

/* sti_before - an STI runs together with the instruction behind it. */
static const struct site *sti_before(uintptr_t addr)
{
    const struct site *site;
    struct plat_symbol function;
    struct insn before;

    if (plat_symbol_at(addr, &function) || boundary_before(addr, &function, &before))
        return NULL;
    site = registry_find(before.addr);
    return site && site->is_sti ? site : NULL;
}

static bool replaces_probed(struct ruling *r)
{
    const struct exchange *x = exchange_of(r);
    const struct site *site;

    for (uintptr_t at = r->addr; at < exchange_end(x); at++)
        if (registry_find(at))
            return rules_refuse(r, r->reason, at);
    site = sti_before(r->addr);
    if (!site)
        site = unoptimize_reader(r->addr); /* a jump that extends over them */
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

/* ---- 1: where they lead ---------------------------------------------------------------- */

#define LEADS_MAX 3

/* leads_of - places in the text that @insn leads to, or may lead to later: its target, and
 * addresses it takes. Return: how many.
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

/* give_up_region - if a jump has displaced the instruction at @addr, that must not be. */
static void give_up_region(uintptr_t addr)
{
    struct site *site = unoptimize_reader(addr);

    if (site && region_is_open(site))
        unoptimize_around(&site, 1);
}

static int know_leads(struct exchange *x, const struct insn *insn)
{
    uintptr_t leads[LEADS_MAX];
    size_t count = leads_of(insn, leads);

    (void)x;
    for (size_t i = 0; i < count; i++) {
        give_up_region(leads[i]);
        if (!targets_add(insn->addr, leads[i]))
            continue;
        while (i--)
            targets_remove(insn->addr, leads[i]);
        return -ENOMEM;
    }
    return 0;
}

/* forget_leads - regions that something led to may be possible now. */
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

/* ---- 2 to 6 ---------------------------------------------------------------------------- */

static struct {
    uintptr_t start, end; /* written under PLAT_PROBES, read by any CPU */
} middle;

bool xmc_is_inside(uintptr_t ip)
{
    return ip >= READ_ONCE(middle.start) && ip < READ_ONCE(middle.end);
}

static struct site *site_make(struct exchange *x, struct probe_reject *why)
{
    bool is_new = is_one(x) && can_trap(&x->new);
    struct site *site = kprobe_prepare(is_new ? &x->new : &x->old, why);

    if (!site || !registry_insert(site))
        return site;
    kprobe_unprepare(site);
    probe_refuse(why, PROBE_NO_MEMORY, exchange_start(x));
    return NULL;
}

static void wait_until_outside(const struct exchange *x)
{
    WRITE_ONCE(middle.start, exchange_start(x) + 1);
    WRITE_ONCE(middle.end, exchange_end(x));
    plat_quiesce();
    WRITE_ONCE(middle.end, 0);
}

static struct text_poke poke_for(const struct exchange *x)
{
    struct text_poke poke = { .addr = exchange_start(x), .len = (uint8_t)x->len };

    for (size_t i = 0; i < x->len; i++)
        poke.bytes[i] = x->bytes[i];
    return poke;
}

static void poke(const struct exchange *x)
{
    struct text_poke poke = poke_for(x);

    plat_lock(PLAT_TEXT);
    text_poke_batch(&poke, 1);
    plat_unlock(PLAT_TEXT);
}

static int exchange_by_int3(struct exchange *x, struct probe_reject *why)
{
    struct site *site = site_make(x, why);

    if (!site)
        return why->err;
    kprobe_arm(&site, 1);
    if (x->old_count > 1)
        wait_until_outside(x);
    poke(x);
    site_move(site, SITE_DISARMED);
    kprobe_reclaim(&site, 1);
    return 0;
}

static void store_word(const struct exchange *x)
{
    struct text_poke poke = poke_for(x);

    plat_lock(PLAT_TEXT);
    if (plat_text_write(exchange_start(x), x->bytes, x->len))
        plat_bug("text that is to be exchanged is not writable", exchange_start(x));
    plat_sync_cores();
    ext_poked(&poke, 1);
    plat_unlock(PLAT_TEXT);
}

static int exchange_locked(struct exchange *x, struct probe_reject *why)
{
    int err = rules_check(rules, ARRAY_LEN(rules), &x->ruling, why);

    if (err)
        return err;
    if (!for_each_new(x, know_leads)) {
        probe_refuse(why, PROBE_NO_MEMORY, x->ruling.at);
        for_each_in(x, x->bytes, x->ruling.at - exchange_start(x), forget_leads);
        return why->err;
    }
    if (x->mode == XMC_STORE)
        store_word(x);
    else
        err = exchange_by_int3(x, why);
    for_each_in(x, err ? x->bytes : x->old_bytes, x->len, forget_leads);
    return err;
}

int xmc_why(uintptr_t addr, const uint8_t *bytes, size_t len, enum xmc_mode mode,
            struct probe_reject *why)
{
    struct exchange x = { .ruling.addr = addr, .bytes = bytes, .len = len, .mode = mode };
    int err = register_check_caller(why);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = exchange_locked(&x, why);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return err;
}

int xmc(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    struct probe_reject why;

    return xmc_why(addr, bytes, len, XMC_INT3, &why);
}
