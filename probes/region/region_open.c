/* region_open.c - let the program run the copies of a region in place of the originals,
 * and end that again.
 *
 * After the probed instruction, a program goes on in one of three ways. Each way is led
 * to the copies here:
 *
 *   by the boosted copy   the site's own copy ends with a jump back to the originals.
 *                         region_boost() takes the first copy in the region's cell
 *                         instead, and the other copies follow it there
 *   by a detour           the detour ends with a jump to region_behind()
 *   by the image          after a step or an emulation, or if a handler has set ip.
 *                         region_redirect() changes ip before the program goes on
 *
 * While the region is open, no CPU enters the originals behind the first one. When it is
 * closed, threads may still be in the cell, so the cell is freed later. The struct region
 * stays as long as its site, because any hit may read it. The pointer to the struct, and
 * is_open, are written with release and read with acquire semantics. So a CPU that sees
 * them set also sees everything that was written before.
 */
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"

/* copies_fill - reserve a cell for the copies, and fill it. The length of the copies
 * decides the size of the cell, so the copies are made twice. The length does not depend
 * on the address: the first time they are made for r->addr, from where every target is in
 * reach.
 */
static int copies_fill(struct region *r, struct site *site, struct probe_reject *why)
{
    uint8_t code[REGION_COPY_MAX];
    size_t len;
    int err = region_copy(r, r->addr, code, &len, why);

    if (err)
        return err;
    WRITE_ONCE(r->cell, insn_slot_reserve(insn_slot_len(len)));
    if (!r->cell)
        return probe_refuse(why, PROBE_NO_SLOT, r->addr);
    err = region_copy(r, (uintptr_t)r->cell, code, &len, why);
    if (err)
        return err;
    insn_slot_fill(r->cell, site, code, len);
    return 0;
}

static int copies_make(struct region *r, struct site *site, struct probe_reject *why)
{
    int err = region_plan(site->addr, r, why);

    if (err || r->count == 1)
        return err;
    return copies_fill(r, site, why);
}

/* struct_get - the struct region of @site; a new one if it has none.
 * Return: NULL: there is no memory.
 */
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

size_t ext_regions; /* PLAT_PROBES to write */

void region_open(struct site *site)
{
    WRITE_ONCE(ext_regions, ext_regions + 1);
    __atomic_store_n(&jump_site(site)->region->is_open, true, __ATOMIC_RELEASE);
}

void region_close(struct site *site)
{
    WRITE_ONCE(ext_regions, ext_regions - 1);
    WRITE_ONCE(jump_site(site)->region->is_open, false);
}

void region_release(struct site *site)
{
    struct region *r = jump_site(site)->region;

    if (region_is_open(site))
        plat_bug("a region is given up that is open", site->addr);
    if (!r)
        return;
    insn_slot_put(r->cell);
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

/* open_region - the region of @site, if it is open and has copies; otherwise NULL. */
NOKPROBE_INLINE const struct region *open_region(const struct site *site)
{
    const struct region *r = __atomic_load_n(&jump_site(site)->region, __ATOMIC_ACQUIRE);

    return __atomic_load_n(&r->is_open, __ATOMIC_ACQUIRE) && r->cell ? r : NULL;
}

NOKPROBE_INLINE void redirect_under(const struct site *site, struct pt_regs *regs)
{
    const struct region *r = open_region(site);

    if (r)
        regs->ip = region_enter(r, regs->ip);
}

void region_redirect(const struct site *site, struct pt_regs *regs)
{
    uintptr_t ip = regs->ip;

    if (site)
        redirect_under(site, regs);
    for (uintptr_t off = 1; !site && off < REGION_JUMP_LEN; off++) {
        const struct site *around = registry_find(ip - off);

        if (around && READ_ONCE(jump_site(around)->region))
            redirect_under(around, regs);
    }
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

/* is_start - does a copy begin at @off, or does the last copy end there? */
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
        return true; /* in the middle of a copy that is several instructions */
    regs->ip = region_original(r, off);
    plat_raise_step(regs);
    region_redirect(site, regs);
    return true;
}
NOKPROBE(region_step);
