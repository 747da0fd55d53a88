/* detour_own.c - stage 11: a pattern of the platform's becomes a site's own code. */
#include "probes/detour_own.h"

#include "kernel/base/err.h"
#include "probes/aggr.h"
#include "probes/life.h"
#include "probes/text/insn_slot.h"

bool detour_own_fits(const struct site *site)
{
    const struct kprobe *p = site->probes;

    return plat_detour_own(true) && !copy_is_called(site) && p && !p->next &&
           p->pre_handler && !aggr_is_off(p) && !(p->flags & KPROBE_FLAG_IRQS_OFF);
}

size_t detour_own_entry(bool flags_live)
{
    return plat_detour_own(flags_live)->entry;
}

/* put - the low @len bytes of @value, in front of @end. */
static void put(uint8_t *end, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        end[i - len] = (uint8_t)(value >> (8 * i));
}

/* put_signed - Return: 0; -ERANGE it is not what its low 4 bytes extend to. */
static int put_signed(uint8_t *end, uint64_t value)
{
    if ((int64_t)value != (int32_t)value)
        return -ERANGE;
    put(end, value, sizeof(int32_t));
    return 0;
}

/* put_moved - what led from @from to somewhere leads there from @to. */
static int put_moved(uint8_t *end, uintptr_t from, uintptr_t to)
{
    uint32_t disp = 0;

    for (size_t i = 0; i < sizeof(disp); i++)
        disp |= (uint32_t)end[i - sizeof(disp)] << (8 * i);
    return put_signed(end, (uint64_t)(int32_t)disp + from - to);
}

/* fill - the hole in front of @end, which is to be at @at and was made for @from. */
static int fill(enum plat_hole what, uint8_t *end, uintptr_t at, uintptr_t from,
                const struct site *site)
{
    const struct kprobe *p = site->probes;

    switch (what) {
    case PLAT_HOLE_SITE:
        put(end, (uintptr_t)site, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_IP:
        return put_signed(end, site->addr + 1);
    case PLAT_HOLE_PROBE:
        put(end, (uintptr_t)p, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_COUNTER:
        put(end, (uint32_t)plat_counter_disp(p->counter), sizeof(uint32_t));
        return 0;
    case PLAT_HOLE_HANDLER:
        return put_signed(end, (uintptr_t)p->pre_handler - at);
    case PLAT_HOLE_MOVED:
        return put_moved(end, from, at);
    default:
        plat_bug("a pattern has an unknown hole", from);
    }
}

int detour_own_put(uint8_t *out, uintptr_t at, const struct site *site, bool flags_live,
                   size_t *len)
{
    const struct plat_pattern *pattern = plat_detour_own(flags_live);
    int err = 0;

    *len = pattern->len;
    for (size_t i = 0; i < pattern->len; i++)
        out[i] = pattern->code[i];
    for (size_t i = 0; i < pattern->hole_count && !err; i++) {
        size_t end = pattern->holes[i].end;

        err = fill((enum plat_hole)pattern->holes[i].what, out + end, at + end,
                   (uintptr_t)pattern->code + end, site);
    }
    return err;
}

bool detour_own_is_current(const struct site *site)
{
    uint8_t code[INSN_SLOT_OWN_CODE_MAX];
    const uint8_t *cell = site->detour - detour_own_entry(site->detour_saves);
    size_t len;
    bool same = detour_own_fits(site) &&
                !detour_own_put(code, (uintptr_t)cell, site, site->detour_saves, &len);

    for (size_t i = 0; same && i < len; i++)
        same = code[i] == cell[i];
    return same;
}
