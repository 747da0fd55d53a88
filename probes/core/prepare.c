/* prepare.c - stage 3: makes the site and its copies, and chooses the way in which the
 * instruction is run.
 *
 * It chooses the cheapest way that is right: emulate (one trap) if emulate.c can do it;
 * boost (one trap) for every other instruction; step (two traps) only if a post-handler
 * must run.
 */
#include "kernel/base/err.h"
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"

/* ---- the site ---- */

static bool repeats(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_STRING:
    case INSN_IN:
    case INSN_OUT:
        return insn->rep != INSN_PREFIX_NONE;
    default:
        return false;
    }
}

/* is_undone_by_step - would a single step by TF undo the effect of @insn? The trap ends
 * the wait of HLT. And #DB changes DR6 and DR7, which a MOV to a debug register has just
 * written.
 */
static bool is_undone_by_step(const struct insn *insn)
{
    return insn->kind == INSN_HLT || insn->kind == INSN_MOV_TO_DR;
}

/* site_new - allocate a site and fill in what does not depend on its way. */
static struct site *site_new(const struct insn *insn)
{
    size_t front = insn->kind == INSN_STI ? sizeof(struct sti_pair) : 0;
    uint8_t *block = plat_alloc(front + ext_site_size());
    struct site *site;

    if (!block)
        return NULL;
    site = (struct site *)(block + front);
    site->addr = insn->addr;
    site->len = insn->len;
    site->class = (uint8_t)insn->class;
    site->repeats = repeats(insn);
    site->is_sti = insn->kind == INSN_STI;
    site->never_by_tf = is_undone_by_step(insn);
    site->in_engine = plat_is_engine(insn->addr);
    for (size_t i = 0; i < insn->len; i++)
        site->bytes[i] = insn->bytes[i];
    return site;
}

static void site_free(struct site *site)
{
    void *block = site;

    if (site && site->is_sti)
        block = site_pair(site);
    plat_free(block);
}

/* ---- cells ---- */

#define COPIES_MAX INSN_SLOT_COUNTED_CODE_MAX /* bytes of code in a cell of this file */

/* copy_insn - append a copy of @insn to @code, as the copy must look at @slot + *@len. */
static int copy_insn(uint8_t *code, size_t *len, const uint8_t *slot,
                     const struct insn *insn, struct probe_reject *why)
{
    size_t copied;
    int err = insn_relocate(code + *len, COPIES_MAX - *len, insn, (uintptr_t)slot + *len,
                            &copied);

    if (err == -E2BIG || err == -ERANGE)
        return probe_refuse(why, err == -E2BIG ? PROBE_NO_ROOM : PROBE_OUT_OF_REACH,
                            insn->addr);
    if (err)
        return probe_refuse(why, PROBE_CANNOT_MOVE, insn->addr);
    *len += copied;
    return 0;
}

static int append_jmp(uint8_t *code, size_t *len, const uint8_t *slot, uintptr_t target,
                      struct probe_reject *why)
{
    if (insn_encode_jmp32(code + *len, (uintptr_t)slot + *len, target))
        return probe_refuse(why, PROBE_OUT_OF_REACH, target);
    *len += INSN_JMP32_LEN;
    return 0;
}

/* make_copies - fill a new cell with the copies of @count successive instructions, and
 * then the jump back.
 * @slot: receives the address of the first copy: @front bytes of int3 lie in front of it.
 *        It is set also on error, so that kprobe_unprepare() gives the cell back
 */
static int make_copies(struct site *site, uint8_t **slot, size_t front,
                       const struct insn *insns, size_t count, struct probe_reject *why)
{
    uint8_t code[COPIES_MAX], *cell;
    size_t len = front + INSN_JMP32_LEN;
    int err = 0;

    for (size_t i = 0; i < count; i++)
        len += insn_relocated_len(&insns[i]);
    cell = insn_slot_reserve(insn_slot_len(len));
    if (!cell)
        return probe_refuse(why, PROBE_NO_SLOT, site->addr);
    *slot = cell + front;
    len = insn_encode_int3s(code, front);
    for (size_t i = 0; i < count && !err; i++)
        err = copy_insn(code, &len, cell, &insns[i], why);
    if (!err)
        err = append_jmp(code, &len, cell, insn_next(&insns[count - 1]), why);
    if (!err)
        insn_slot_fill(cell, site, code, len);
    return err;
}

/* successor_get - decode the instruction behind @insn. Return: false: that is not
 * possible.
 */
static bool successor_get(const struct insn *insn, struct insn *successor)
{
    uintptr_t addr = insn_next(insn);
    uint8_t bytes[INSN_MAX_LEN];
    struct plat_symbol function;
    size_t left;

    if (plat_symbol_at(addr, &function))
        return false;
    left = function.start + function.size - addr;
    if (left > sizeof(bytes))
        left = sizeof(bytes);
    return !recover_bytes(bytes, addr, left) &&
           !insn_decode(successor, bytes, left, addr);
}

/* can_end_pair - may a copy of @insn stand behind STI? A branch may, too: it leads out of
 * the cell by itself, so it does not need the jump back.
 */
static bool can_end_pair(const struct insn *insn)
{
    return insn_can_boost(insn) || (insn_is_branch(insn) && insn_can_move(insn));
}

/* make_pair - prepare STI and its successor to run together, if that is possible: by
 * copies of both, or by a site by which the successor is emulated.
 */
static int make_pair(struct site *site, const struct insn *sti, struct probe_reject *why)
{
    struct sti_pair *both = site_pair(site);
    struct insn pair[2] = { *sti };

    if (!successor_get(sti, &pair[1]))
        return 0;
    both->len = sti->len + pair[1].len;
    if (!can_end_pair(&pair[1]) && !emulate_supports(&pair[1]))
        return 0;
    if (can_end_pair(&pair[1]))
        return make_copies(site, &both->slot, 0, pair, 2, why);
    both->site = site_new(&pair[1]);
    if (!both->site)
        return probe_refuse(why, PROBE_NO_MEMORY, site->addr);
    emulate_prepare(&both->site->emul, &pair[1]);
    return 0;
}

static int make_slots(struct site *site, const struct insn *insn,
                      struct probe_reject *why)
{
    int err = make_copies(site, &site->boost_slot, ext_front_len(insn), insn, 1, why);

    if (err || !site->is_sti)
        return err;
    return make_pair(site, insn, why);
}

/* redirects_traps - does @insn change where traps lead? Then the trap behind its copy
 * would not come to the engine.
 */
static bool redirects_traps(const struct insn *insn)
{
    return insn->kind == INSN_LGDT || insn->kind == INSN_LIDT;
}

static void pair_release(struct sti_pair *pair)
{
    insn_slot_put(pair->slot);
    site_free(pair->site);
}

/* The rest of the cell behind the copy is int3: the trap that ends the step. */
int prepare_step(struct site *site, struct probe_reject *why)
{
    uint8_t code[COPIES_MAX], *slot;
    struct insn insn;
    size_t len = 0;
    int err;

    if (site->way == WAY_EMULATE || site->step_slot)
        return 0;
    if (insn_decode(&insn, site->bytes, site->len, site->addr))
        plat_bug("a registered instruction does not decode", site->addr);
    if (redirects_traps(&insn))
        return probe_refuse(why, PROBE_NO_STEP, site->addr);
    slot = insn_slot_reserve(INSN_SLOT_LEN);
    if (!slot)
        return probe_refuse(why, PROBE_NO_SLOT, site->addr);
    err = copy_insn(code, &len, slot, &insn, why);
    if (err) {
        insn_slot_put(slot);
        return err;
    }
    insn_slot_fill(slot, site, code, len);
    if (site_is_armed(site))
        plat_sync_cores(); /* else kprobe_guard() synchronises before it writes int3s */
    site->step_slot = slot;
    return 0;
}

void prepare_way(struct site *site)
{
    WRITE_ONCE(site->has_post, aggr_wants_post(site));
    if (site->way != WAY_EMULATE)
        WRITE_ONCE(site->way, site->has_post ? WAY_STEP : WAY_BOOST);
}

struct site *kprobe_prepare(const struct insn *insn, struct probe_reject *why)
{
    struct site *site = site_new(insn);
    int err = 0;

    if (!site) {
        probe_refuse(why, PROBE_NO_MEMORY, insn->addr);
        return NULL;
    }
    if (emulate_supports(insn)) {
        site->way = WAY_EMULATE;
        emulate_prepare(&site->emul, insn);
    } else {
        site->way = WAY_BOOST;
        err = make_slots(site, insn, why);
    }
    if (err) {
        kprobe_unprepare(site);
        return NULL;
    }
    site_move(site, SITE_PREPARED);
    return site;
}

void kprobe_unprepare(struct site *site)
{
    site_move(site, SITE_DEAD);
    insn_slot_put(site_boost_slot(site));
    insn_slot_put(site_step_slot(site));
    if (site->is_sti)
        pair_release(site_pair(site));
    site_free(site);
}
