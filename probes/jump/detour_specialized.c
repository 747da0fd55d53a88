/* detour_specialized.c - stage 11: makes the code of a specialized detour from a pattern
 * of the platform.
 */
#include "probes/jump/detour_specialized.h"

#include "kernel/base/err.h"
#include "probes/core/aggr.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/jump/detour.h"
#include "probes/jump/handler.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/stores.h"

bool detour_specialized_fits(const struct site *site)
{
    const struct kprobe *p = site->probes;

    if (!p || p->next || aggr_is_off(p) || p->flags & KPROBE_FLAG_IRQS_OFF ||
        !plat_detour_specialized(PLAT_SPECIALIZED_CALL, true))
        return false;
    return p->light_handler || stores_of(site) || (p->pre_handler && !site_is_call(site));
}

bool detour_specialized_is_denied(const struct site *site)
{
    bool may =
        jump_site(site)->kind == DETOUR_CALL || jump_site(site)->kind == DETOUR_LIGHT;

    return site_detour(site) && !jump_site(site)->specialized && may &&
           detour_specialized_fits(site);
}

bool detour_specialized_keeps(const struct site *site)
{
    const struct kprobe *p = site->probes;

    /* A fault handler runs inside the fault, and may fault itself. */
    return p->light_handler &&
           (p->fault_handler || !handler_keeps_callee_saved((uintptr_t)p->light_handler));
}

const struct plat_pattern *detour_specialized_pattern(const struct site *site, bool keeps,
                                                      bool flags_live)
{
    enum plat_specialized which = PLAT_SPECIALIZED_CALL;

    if (stores_of(site))
        which = PLAT_SPECIALIZED_LIGHT;
    else if (site->probes->light_handler)
        which = keeps ? PLAT_SPECIALIZED_LIGHT_KEEP : PLAT_SPECIALIZED_LIGHT;
    return plat_detour_specialized(which, flags_live);
}

/* put - write the low @len bytes of @value in front of @end. */
static void put(uint8_t *end, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        end[i - len] = (uint8_t)(value >> (8 * i));
}

/* put_signed - write 4 bytes, which the CPU extends to @value by their sign.
 * Return: 0; -ERANGE @value does not fit.
 */
static int put_signed(uint8_t *end, uint64_t value)
{
    if ((int64_t)value != (int32_t)value)
        return -ERANGE;
    put(end, value, sizeof(int32_t));
    return 0;
}

/* put_moved - the displacement in front of @end is right for code whose hole ends at
 * @from: change it so that it leads to the same address from @to.
 */
static int put_moved(uint8_t *end, uintptr_t from, uintptr_t to)
{
    uint32_t disp = 0;

    for (size_t i = 0; i < sizeof(disp); i++)
        disp |= (uint32_t)end[i - sizeof(disp)] << (8 * i);
    return put_signed(end, (uint64_t)(int32_t)disp + from - to);
}

static uintptr_t handler_of(const struct kprobe *p)
{
    return p->light_handler ? (uintptr_t)p->light_handler : (uintptr_t)p->pre_handler;
}

/* fill_hole - fill in the hole in front of @end.
 * @at: the address of its end where it will be executed; @from: the same in the pattern
 */
static int fill_hole(enum plat_hole what, uint8_t *end, uintptr_t at, uintptr_t from,
                     const struct site *site)
{
    const struct kprobe *p = site->probes;

    switch (what) {
    case PLAT_HOLE_SITE:
        put(end, (uintptr_t)site, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_ADDR:
        return put_signed(end, site->addr);
    case PLAT_HOLE_IP:
        return put_signed(end, site->addr + 1);
    case PLAT_HOLE_PROBE:
        put(end, (uintptr_t)p, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_COUNTER:
        put(end, (uint32_t)plat_counter_disp(p->counter), sizeof(uint32_t));
        return 0;
    case PLAT_HOLE_HANDLER:
        return put_signed(end, handler_of(p) - at);
    case PLAT_HOLE_SHARED:
        if (site_is_call(site))
            return put_signed(end, plat_detour(PLAT_DETOUR_CALLED) - at);
        return put_moved(end, from, at);
    case PLAT_HOLE_MOVED:
        return put_moved(end, from, at);
    default:
        plat_bug("a pattern has an unknown hole", from);
    }
}

#define COPY_MAX (INSN_RELOCATED_MAX_LEN + INSN_JMP32_LEN) /* with the jump back */

/* A pattern and its body. The body takes the place of the call of the handler. */
struct composed {
    const struct plat_pattern *pattern;
    size_t body;  /* offset of the body; the length of the pattern: there is none */
    size_t grows; /* by how many bytes the code behind the body moves on */
};

static size_t place_of(const struct composed *c, size_t off)
{
    return off <= c->body ? off : off + c->grows;
}

static void body_find(struct composed *c)
{
    c->body = c->pattern->len;
    for (size_t i = 0; i < c->pattern->hole_count; i++)
        if (c->pattern->holes[i].what == PLAT_HOLE_HANDLER)
            c->body = c->pattern->holes[i].end - INSN_CALL32_LEN;
}

/* body_put - write the body, if there is one. Return: 0; -ERANGE. */
static int body_put(struct composed *c, uint8_t *out, uintptr_t at,
                    const struct site *site, bool flags_live)
{
    size_t len;
    int err;

    if (!stores_of(site))
        return 0;
    body_find(c);
    err = stores_put(out + c->body, at + c->body, site, flags_live, &len);
    c->grows = len - INSN_CALL32_LEN;
    if (c->pattern->len + c->grows > INSN_SLOT_DETOUR_CODE_MAX - COPY_MAX)
        plat_bug("a pattern leaves no room for a body and a copy", at);
    return err;
}

/* hole_put - fill in hole @i of the pattern. */
static int hole_put(const struct composed *c, size_t i, uint8_t *out, uintptr_t at,
                    const struct site *site)
{
    enum plat_hole what = (enum plat_hole)c->pattern->holes[i].what;
    size_t from = c->pattern->holes[i].end, end = place_of(c, from);

    if (what == PLAT_HOLE_COPY)
        return put_signed(out + end, c->pattern->len + c->grows - end);
    if (what == PLAT_HOLE_HANDLER && c->grows)
        return 0;
    return fill_hole(what, out + end, at + end, (uintptr_t)c->pattern->code + from, site);
}

int detour_specialized_put(uint8_t *out, uintptr_t at, const struct site *site,
                           const struct plat_pattern *pattern, bool flags_live,
                           size_t *len)
{
    struct composed c = { .pattern = pattern, .body = pattern->len };
    int err = body_put(&c, out, at, site, flags_live);
    size_t behind = c.grows ? c.body + INSN_CALL32_LEN : c.body;

    for (size_t i = 0; i < c.body; i++)
        out[i] = pattern->code[i];
    for (size_t i = behind; i < pattern->len; i++)
        out[i + c.grows] = pattern->code[i];
    for (size_t i = 0; i < pattern->hole_count && !err; i++)
        err = hole_put(&c, i, out, at, site);
    *len = pattern->len + c.grows;
    return err;
}

bool detour_specialized_is_current(const struct site *site)
{
    uint8_t code[INSN_SLOT_DETOUR_CODE_MAX];
    const struct plat_pattern *pattern;
    const uint8_t *start;
    bool same, flags_live = jump_site(site)->saves_flags;
    size_t len;

    if (!detour_specialized_fits(site))
        return false;
    pattern = detour_specialized_pattern(site, jump_site(site)->saves_registers,
                                         jump_site(site)->saves_flags);
    start = site_detour(site) - pattern->entry;
    same =
        !detour_specialized_put(code, (uintptr_t)start, site, pattern, flags_live, &len);
    for (size_t i = 0; same && i < len; i++)
        same = code[i] == start[i];
    return same;
}
