/* xmc.c - replace instructions that CPUs may be executing.
 *
 *   1. Check that the instructions may be replaced: xmc_rules.c.
 *   2. Make a site for each place, for the CPUs that will trap there. If the new bytes are
 *      one instruction, the site has a copy of it; if they are several, a copy of the old
 *      instruction. The copy is a whole instruction, and the program goes on behind it.
 *   3. Turn the jumps that use these bytes into breakpoints. After that, a CPU can come to
 *      the instructions only through their first bytes.
 *   4. Write an int3 over each first byte, where there is none yet. If probes are there that
 *      are not armed, the new site stands in for the old one, without the probes.
 *   5. If several old instructions are replaced by one, wait until no thread is behind the
 *      first of them. Since step 4 no CPU can come in through the first one, and the rules
 *      make sure that nothing jumps into the middle.
 *   6. If the instruction has armed probes, put the new site in the place of the old one.
 *      From here on a CPU that traps runs the copy of the new instruction.
 *   7. Write the new bytes behind the int3, and then the new first byte, where there are no
 *      armed probes; where there are, the int3 stays. Probes that are not armed move to the
 *      new site now, when no CPU can trap there.
 *   8. Wait for quiescence. Now no thread is in the copies of step 2, or in the copies,
 *      detours and cells of the old sites, and these are freed. Plan the jumps of step 3
 *      again, with the new bytes.
 *
 * Steps 1 and 2 change no text. From step 3 on nothing can fail.
 *
 * Why no hit is lost in step 6: the entry of the registry is one pointer. It changes from
 * the old site to the new site, both have the same probes, and the text is an int3 before
 * and after. A CPU that has found the old site uses it to the end: it calls the handlers
 * and runs the old instruction, because its hit came before the change. Interrupts are off
 * while a hit looks for its site. So after a synchronisation of the CPUs, all hits find the
 * new site in the registry. But a CPU may have put the old site into its cache before that.
 * So the caches are emptied after the synchronisation, not before.
 */
#include "probes/xmc/xmc.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/cache.h"
#include "probes/core/extend.h"
#include "probes/core/registry.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/jump_stage.h"
#include "probes/jump/optimize.h"
#include "probes/text/text_whole.h"
#include "probes/xmc/xmc_parts.h"

/* ---- 2 --------------------------------------------------------------------------------- */

static struct site *site_make(struct exchange *x, struct probe_reject *why)
{
    bool is_new = exchange_is_one(x) && exchange_can_trap(&x->new);
    struct site *site = kprobe_prepare(is_new ? &x->new : &x->old, why);

    if (!site)
        return NULL;
    if (x->under && (!aggr_wants_post(x->under) || !prepare_step(site, why)))
        return site;
    if (!x->under && !registry_insert(site))
        return site;
    if (!x->under)
        probe_refuse(why, PROBE_NO_MEMORY, exchange_start(x));
    kprobe_unprepare(site);
    return NULL;
}

/* exchange_ready - steps 1 and 2. */
static int exchange_ready(struct exchange *x, struct probe_reject *why)
{
    int err = exchange_check(x, why);

    if (!err)
        err = exchange_lead(x, why);
    if (err || x->mode == XMC_STORE)
        return err;
    x->site = site_make(x, why);
    if (x->site)
        return 0;
    exchange_unlead(x, false);
    return why->err;
}

static void exchange_drop(struct exchange *x)
{
    if (x->under)
        kprobe_unprepare(x->site);
    else
        reclaim_unreached(&x->site, 1);
    exchange_unlead(x, false);
}

/* ---- 3 to 8 ---------------------------------------------------------------------------- */

/* Locks: all PLAT_PROBES. The three arrays lie in one piece of memory, which begins with
 * @all.
 */
struct batch {
    struct exchange *all;
    size_t count;
    struct site **sites; /* has room for one site of each exchange */
    struct text_poke *pokes;
};

static struct {
    uintptr_t start, end; /* written under PLAT_PROBES, read by any CPU */
} middle;

bool xmc_is_inside(uintptr_t ip)
{
    return ip >= READ_ONCE(middle.start) && ip < READ_ONCE(middle.end);
}

/* stand_in - while @x changes the text of an old site that is not armed, the new site
 * stands there without probes: if kprobes are off as a whole, no handler may run. No CPU can
 * trap there, so no sync is needed before the caches forget the old site.
 */
static void stand_in(const struct exchange *x)
{
    registry_replace(x->under, x->site);
    cache_forget(x->under);
}

static void guard(struct batch *b)
{
    size_t count = 0;

    for (size_t i = 0; i < b->count; i++) {
        struct exchange *x = &b->all[i];

        x->stays_armed = x->under && site_is_armed(x->under);
        if (x->under && !x->stays_armed)
            stand_in(x);
        b->sites[i] = x->stays_armed ? x->under : x->site;
    }
    unoptimize_around(b->sites, b->count); /* 3 */
    for (size_t i = 0; i < b->count; i++)
        if (!b->all[i].stays_armed)
            b->sites[count++] = b->all[i].site;
    kprobe_guard(b->sites, count); /* 4 */
}

static void wait_until_outside(const struct exchange *x)
{
    WRITE_ONCE(middle.start, exchange_start(x) + 1);
    WRITE_ONCE(middle.end, exchange_end(x));
    plat_quiesce();
    WRITE_ONCE(middle.end, 0);
}

/* move_in - move the probes from x->under to x->site. Hits read the list of probes without
 * locks; they find the same list through both sites.
 */
static void move_in(const struct exchange *x)
{
    struct site *site = x->site;

    site->probes = x->under->probes;
    prepare_way(site);
    if (x->stays_armed) {
        site_move(site, SITE_ARMED);
        if (!jump_is_at(x->under, STAGE_NONE))
            jump_wait(site);
        registry_replace(x->under, site);
    }
    for (struct kprobe *p = site->probes; p; p = p->next)
        WRITE_ONCE(p->site, site);
}

/* move_all_in - step 6. */
static void move_all_in(struct batch *b)
{
    bool any = false;

    for (size_t i = 0; i < b->count; i++) {
        if (!b->all[i].stays_armed)
            continue;
        move_in(&b->all[i]);
        any = true;
    }
    if (any)
        plat_sync_cores();
    for (size_t i = 0; i < b->count; i++)
        if (b->all[i].stays_armed)
            cache_forget(b->all[i].under);
}

static struct text_poke poke_for(const struct exchange *x)
{
    struct text_poke poke = { .addr = exchange_start(x), .len = (uint8_t)x->len };

    for (size_t i = 0; i < x->len; i++)
        poke.bytes[i] = x->bytes[i];
    if (x->stays_armed)
        poke.bytes[0] = INSN_INT3;
    return poke;
}

/* write_all - step 7. */
static void write_all(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->pokes[i] = poke_for(&b->all[i]);
    plat_lock(PLAT_TEXT);
    text_poke_batch(b->pokes, b->count);
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < b->count; i++) {
        if (b->all[i].stays_armed)
            continue;
        site_move(b->all[i].site, SITE_DISARMED);
        if (b->all[i].under)
            move_in(&b->all[i]);
    }
}

/* release_replaced - free the old sites, which are no longer in the registry. Step 6 has
 * removed them from the caches. But after that, a CPU may have come to the int3 in an old
 * step slot, and found the site by this slot. Since the quiescence no CPU is in the slot.
 */
static void release_replaced(struct site **sites, size_t count)
{
    if (count)
        ext_release(sites, count);
    for (size_t i = 0; i < count; i++) {
        cache_forget(sites[i]);
        kprobe_unprepare(sites[i]);
    }
    reclaim_rest();
}

/* clean_up - step 8. */
static void clean_up(struct batch *b)
{
    size_t under = 0, own = b->count;

    for (size_t i = 0; i < b->count; i++) {
        if (!b->all[i].under) {
            b->sites[--own] = b->all[i].site;
            continue;
        }
        if (b->all[i].stays_armed)
            site_move(b->all[i].under, SITE_DISARMED);
        b->sites[under++] = b->all[i].under;
    }
    kprobe_reclaim(b->sites + own, b->count - own); /* it waits even if there are none */
    release_replaced(b->sites, under);
    optimize_kick();
}

static void exchange_all(struct batch *b)
{
    guard(b);
    for (size_t i = 0; i < b->count; i++)
        if (b->all[i].old_count > 1)
            wait_until_outside(&b->all[i]); /* 5 */
    move_all_in(b);
    write_all(b);
    clean_up(b);
    for (size_t i = 0; i < b->count; i++)
        exchange_unlead(&b->all[i], true);
}

/* ---- all at once ----------------------------------------------------------------------- */

static int batch_make(struct batch *b, const struct xmc_change *changes, size_t count)
{
    b->all =
        plat_alloc(count * (sizeof(*b->all) + sizeof(*b->sites) + sizeof(*b->pokes)));
    if (!b->all)
        return -ENOMEM;
    b->sites = (struct site **)(b->all + count);
    b->pokes = (struct text_poke *)(b->sites + count);
    b->count = 0;
    for (size_t i = 0; i < count; i++)
        b->all[i] = (struct exchange){ .ruling.addr = changes[i].addr,
                                       .bytes = changes[i].bytes,
                                       .len = changes[i].len };
    return 0;
}

static int batch_ready(struct batch *b, size_t count, struct probe_reject *why)
{
    int err = 0;

    for (; b->count < count && !err; b->count += !err) {
        const struct exchange *last = b->count ? &b->all[b->count - 1] : NULL;

        if (last && exchange_start(&b->all[b->count]) < exchange_end(last))
            err = probe_refuse(why, PROBE_XMC_PROBED, exchange_start(last));
        else
            err = exchange_ready(&b->all[b->count], why);
    }
    while (err && b->count)
        exchange_drop(&b->all[--b->count]);
    return err;
}

int xmc_batch(const struct xmc_change *changes, size_t count, struct probe_reject *why)
{
    struct batch b;
    int err = register_check_caller(__func__, why);

    if (err || !count)
        return err;
    plat_lock(PLAT_PROBES);
    err = batch_make(&b, changes, count);
    if (err)
        probe_refuse(why, PROBE_NO_MEMORY, changes->addr);
    else
        err = batch_ready(&b, count, why);
    if (!err)
        exchange_all(&b);
    plat_free(b.all);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return err;
}

/* ---- one, by a store ------------------------------------------------------------------- */

static void store_word(const struct exchange *x)
{
    struct text_poke poke = poke_for(x);

    plat_lock(PLAT_TEXT);
    text_poke_whole(&poke);
    plat_unlock(PLAT_TEXT);
}

static int exchange_by_store(uintptr_t addr, const uint8_t *bytes, size_t len,
                             struct probe_reject *why)
{
    struct exchange x = {
        .ruling.addr = addr, .bytes = bytes, .len = len, .mode = XMC_STORE
    };
    int err = register_check_caller("xmc_why", why);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = exchange_ready(&x, why);
    if (!err) {
        store_word(&x);
        exchange_unlead(&x, true);
    }
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return err;
}

int xmc_why(uintptr_t addr, const uint8_t *bytes, size_t len, enum xmc_mode mode,
            struct probe_reject *why)
{
    struct xmc_change change = { .addr = addr, .bytes = bytes, .len = len };

    if (mode == XMC_STORE)
        return exchange_by_store(addr, bytes, len, why);
    return xmc_batch(&change, 1, why);
}

int xmc(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    struct probe_reject why;

    return xmc_why(addr, bytes, len, XMC_INT3, &why);
}
