/* prepare.c - stage 3: the site, the cells with its copies, and the way it will be run.
 *
 * The cheapest way that is right: boost (one trap) for everything that a copy can do,
 * emulate (one trap) for what depends on its place, step (two traps) only where somebody
 * wants to be told afterwards.
 */
#include "kernel/base/err.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/life.h"
#include "probes/recover.h"
#include "probes/text/insn_slot.h"

/* copy_insn - append @insn to @code as it must look at @slot + *@len. */
static int copy_insn(uint8_t *code, size_t *len, const uint8_t *slot,
                     const struct insn *insn, struct probe_reject *why)
{
    size_t copied;
    int err = insn_relocate(code + *len, INSN_SLOT_CODE_MAX - *len, insn,
                            (uintptr_t)slot + *len, &copied);

    if (err == -ERANGE)
        return probe_refuse(why, PROBE_OUT_OF_REACH, insn->addr);
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

static void fill(uint8_t *slot, struct site *site, const uint8_t *code, size_t len)
{
    plat_lock(PLAT_TEXT);
    insn_slot_fill(slot, site, code, len);
    plat_unlock(PLAT_TEXT);
}

/* make_boost_slot - the copies of @count successive instructions, then the jump back. */
static int make_boost_slot(struct site *site, uint8_t **slot, const struct insn *insns,
                           size_t count, struct probe_reject *why)
{
    uint8_t code[INSN_SLOT_CODE_MAX];
    size_t len = 0;
    int err = 0;

    *slot = insn_slot_reserve();
    if (!*slot)
        return probe_refuse(why, PROBE_NO_SLOT, site->addr);
    for (size_t i = 0; i < count && !err; i++)
        err = copy_insn(code, &len, *slot, &insns[i], why);
    if (!err)
        err = append_jmp(code, &len, *slot, insn_next(&insns[count - 1]), why);
    if (!err)
        fill(*slot, site, code, len);
    return err;
}

/* May it stand behind STI in a copy? A branch out of the copy does not come to the jump
 * back, which is as good.
 */
static bool can_end_pair(const struct insn *insn)
{
    return insn_can_boost(insn) || (insn_is_branch(insn) && insn_can_move(insn));
}

/* make_pair_slot - STI with its successor, where the two can run as one. */
static int make_pair_slot(struct site *site, const struct insn *sti,
                          struct probe_reject *why)
{
    struct insn pair[2] = { *sti };
    uint8_t bytes[INSN_MAX_LEN];
    struct plat_symbol function;
    size_t left;

    if (plat_symbol_at(insn_next(sti), &function))
        return 0;
    left = function.start + function.size - insn_next(sti);
    if (left > sizeof(bytes))
        left = sizeof(bytes);
    if (recover_bytes(bytes, insn_next(sti), left) ||
        insn_decode(&pair[1], bytes, left, insn_next(sti)) || !can_end_pair(&pair[1]))
        return 0;
    return make_boost_slot(site, &site->pair_slot, pair, 2, why);
}

static int make_slots(struct site *site, const struct insn *insn,
                      struct probe_reject *why)
{
    int err = make_boost_slot(site, &site->boost_slot, insn, 1, why);

    if (err || insn->kind != INSN_STI)
        return err;
    return make_pair_slot(site, insn, why);
}

/* fill_step_slot - the copy; behind it the cell is int3. */
static int fill_step_slot(uint8_t *slot, struct site *site, struct probe_reject *why)
{
    uint8_t code[INSN_SLOT_CODE_MAX];
    struct insn insn;
    size_t len = 0;
    int err = insn_decode(&insn, site->bytes, site->len, site->addr);

    if (!err)
        err = copy_insn(code, &len, slot, &insn, why);
    if (!err)
        fill(slot, site, code, len);
    return err;
}

static void put(uint8_t *slot)
{
    if (!slot)
        return;
    plat_lock(PLAT_TEXT);
    insn_slot_put(slot);
    plat_unlock(PLAT_TEXT);
}

int prepare_step(struct site *site, struct probe_reject *why)
{
    uint8_t *slot;
    int err;

    if (site->way == WAY_EMULATE || site->step_slot)
        return 0;
    slot = insn_slot_reserve();
    if (!slot)
        return probe_refuse(why, PROBE_NO_SLOT, site->addr);
    err = fill_step_slot(slot, site, why);
    if (err) {
        put(slot);
        return err;
    }
    if (site->state == SITE_ARMED)
        plat_sync_cores(); /* where it is not, arming synchronises before the int3 */
    site->step_slot = slot;
    return 0;
}

void prepare_way(struct site *site)
{
    WRITE_ONCE(site->has_post, aggr_wants_post(site));
    if (site->way != WAY_EMULATE)
        WRITE_ONCE(site->way, site->has_post ? WAY_STEP : WAY_BOOST);
}

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

static struct site *site_new(const struct insn *insn)
{
    struct site *site = plat_alloc(sizeof(*site));

    if (!site)
        return NULL;
    site->addr = insn->addr;
    site->len = insn->len;
    site->class = (uint8_t)insn->class;
    site->repeats = repeats(insn);
    site->in_engine = plat_is_engine(insn->addr);
    for (size_t i = 0; i < insn->len; i++)
        site->bytes[i] = insn->bytes[i];
    return site;
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
    put(site->boost_slot);
    put(site->step_slot);
    put(site->pair_slot);
    plat_free(site);
}
