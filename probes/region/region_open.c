/* region_open.c - the copies of a region take the place of the originals, and give it back.
 *
 * All that brings a program behind the probed instruction passes here:
 *
 *   the boosted copy      leads back to the originals, so region_boost() takes the one in the
 *                         region's cell, which has all copies in a row
 *   a detour              ends with a jump to region_behind()
 *   a step, an emulation, a handler that sets ip: by the image, which region_redirect() looks
 *                         at before it is resumed
 *
 * While the region is open no CPU enters its originals behind the first. The cell stays for
 * a while when it is closed, for threads that are still inside. The struct stays as long as
 * the site, since any hit may look at it: a CPU that finds it published, or open, sees all
 * that was written before that.
 */
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"

static uint8_t *copies_reserve(size_t len)
{
    return insn_slot_reserve(len <= INSN_SLOT_CODE_MAX ? INSN_SLOT_LEN
                                                       : INSN_SLOT_LARGE_LEN);
}

static void copies_put(uint8_t *cell)
{
    plat_lock(PLAT_TEXT);
    insn_slot_put(cell);
    plat_unlock(PLAT_TEXT);
}

/* copies_fill - reserve a cell for the copies, and fill it. Their length decides which
 * cell, and is measured first: it does not depend on the address, so the copies are made
 * for r->addr, from where every target is in reach.
 */
static int copies_fill(struct region *r, struct site *site, struct probe_reject *why)
{
    uint8_t code[REGION_COPY_MAX];
    size_t len;
    int err = region_copy(r, r->addr, code, &len, why);

    if (err)
        return err;
    WRITE_ONCE(r->cell, copies_reserve(len));
    if (!r->cell)
        return probe_refuse(why, PROBE_NO_SLOT, r->addr);
    err = region_copy(r, (uintptr_t)r->cell, code, &len, why);
    if (err)
        return err;
    plat_lock(PLAT_TEXT);
    insn_slot_fill(r->cell, site, code, len);
    plat_unlock(PLAT_TEXT);
    return 0;
}

static int copies_make(struct region *r, struct site *site, struct probe_reject *why)
{
    int err = region_plan(site->addr, r, why);

    if (err || r->count == 1)
        return err;
    return copies_fill(r, site, why);
}

/* struct_get - the struct region that @site had before; a new one if it had none. */
static struct region *struct_get(struct site *site, struct probe_reject *why)
{
    struct region *r = jump_site(site)->region;

    if (r || (r = plat_alloc(sizeof(*r))))
        return r;
    probe_refuse(why, PROBE_NO_MEMORY, site->addr);
    return NULL;
}

int region_prepare(struct site *site, struct probe_reject *why)
{
    struct region *r;
    int err;

    if (site_detour(site) || region_is_open(site) || region_has_copies(site))
        plat_bug("a region is prepared where something leads to originals", site->addr);
    r = struct_get(site, why);
    if (!r)
        return why ? why->err : -ENOMEM;
    err = copies_make(r, site, why);
    __atomic_store_n(&jump_site(site)->region, r, __ATOMIC_RELEASE);
    __atomic_store_n(&site->asks_resume, true, __ATOMIC_RELEASE);
    if (err)
        region_release(site);
    return err;
}

void region_open(struct site *site)
{
    __atomic_store_n(&jump_site(site)->region->is_open, true, __ATOMIC_RELEASE);
}

void region_close(struct site *site)
{
    WRITE_ONCE(jump_site(site)->region->is_open, false);
}

void region_release(struct site *site)
{
    struct region *r = jump_site(site)->region;

    if (region_is_open(site))
        plat_bug("a region is given up that is open", site->addr);
    if (!r)
        return;
    copies_put(r->cell);
    WRITE_ONCE(r->cell, NULL);
}

void region_free(struct site *site)
{
    region_release(site);
    site->asks_resume = false;
    plat_free(jump_site(site)->region);
    jump_site(site)->region = NULL;
}

bool region_has_copies(const struct site *site)
{
    return jump_site(site)->region && jump_site(site)->region->cell;
}

bool region_is_open(const struct site *site)
{
    return jump_site(site)->region && jump_site(site)->region->is_open;
}

uintptr_t region_behind(const struct site *site)
{
    const struct region *r = jump_site(site)->region;

    if (!region_is_open(site) || !r->cell)
        return site->addr + site->len;
    return (uintptr_t)r->cell + r->copies[1];
}

uint8_t *region_boosted(const struct site *site)
{
    uint8_t *own = site_boost_slot(site);

    return own && region_is_open(site) && jump_site(site)->region->cell
               ? jump_site(site)->region->cell
               : own;
}

/* open_region - with copies, or NULL. */
NOKPROBE_INLINE const struct region *open_region(const struct site *site)
{
    const struct region *r = __atomic_load_n(&jump_site(site)->region, __ATOMIC_ACQUIRE);

    return __atomic_load_n(&r->is_open, __ATOMIC_ACQUIRE) && r->cell ? r : NULL;
}

void region_redirect(const struct site *site, struct pt_regs *regs)
{
    const struct region *r = open_region(site);

    if (r)
        regs->ip = region_enter(r, regs->ip);
}
NOKPROBE(region_redirect);

void region_boost(const struct site *site, struct pt_regs *regs)
{
    const struct region *r = open_region(site);

    if (r)
        regs->ip = (uintptr_t)r->cell;
}
NOKPROBE(region_boost);

bool region_has_cell(const struct site *site, uintptr_t cell)
{
    const struct region *r = __atomic_load_n(&jump_site(site)->region, __ATOMIC_ACQUIRE);

    return r && cell == (uintptr_t)READ_ONCE(r->cell);
}
NOKPROBE(region_has_cell);

/* is_start - does a copy begin at @off, or end the last one? */
NOKPROBE_INLINE bool is_start(const struct region *r, size_t off)
{
    for (size_t i = 0; i <= r->count; i++)
        if (off == r->copies[i])
            return true;
    return false;
}

bool region_step(const struct site *site, size_t off, struct pt_regs *regs)
{
    const struct region *r = jump_site(site)->region;

    if (regs->ip - off != (uintptr_t)r->cell || off <= r->copies[1])
        return false;
    if (!is_start(r, off))
        return true; /* in the middle of what stands for one */
    regs->ip = region_original(r, off);
    plat_raise_step(regs);
    region_redirect(site, regs);
    return true;
}
NOKPROBE(region_step);
