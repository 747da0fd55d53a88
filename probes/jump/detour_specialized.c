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
#include "probes/jump/program_join.h"
#include "probes/program/program_code.h"

/* has_one_handler - is a pre-handler all that @site has? */
static bool has_one_handler(const struct site *site)
{
    const struct kprobe *p = site->probes;

    return !p->next && p->pre_handler && !aggr_is_off(p) &&
           !(p->flags & KPROBE_FLAG_IRQS_OFF) && !site_is_call(site);
}

/* programs_to_call - list the programs of @site. Return: does one of them call functions, and
 * nothing at the site needs an image?
 */
static bool programs_to_call(const struct site *site, struct programs *out)
{
    return !aggr_wants_post(site) && programs_of(site, out) && programs_call(out);
}

bool detour_specialized_fits(const struct site *site)
{
    struct programs programs;

    if (!site->probes || !plat_detour_specialized(PLAT_SPECIALIZED_CALL, true))
        return false;
    return programs_to_call(site, &programs) || has_one_handler(site);
}

bool detour_specialized_is_denied(const struct site *site)
{
    bool may =
        jump_site(site)->kind == DETOUR_CALL || jump_site(site)->kind == DETOUR_LIGHT;

    return site_detour(site) && !jump_site(site)->specialized && may &&
           detour_specialized_fits(site);
}

/* which_for_handler - the pattern for the only handler of a site, that of @p. A fault handler
 * may want an image, and change the flags with which the handler goes on.
 */
static enum plat_specialized which_for_handler(const struct kprobe *p)
{
    unsigned facts = p->fault_handler ? 0 : handler_read((uintptr_t)p->pre_handler);

    if (facts & HANDLER_NO_IMAGE)
        return PLAT_SPECIALIZED_LIGHT;
    return facts & HANDLER_KEEPS ? PLAT_SPECIALIZED_LEAF : PLAT_SPECIALIZED_CALL;
}

/* op_keeps - do the registers that a function must preserve keep their values, wherever the
 * function that @op calls is left?
 */
static bool op_keeps(const struct kprobe_op *op)
{
    return op->code != KPROBE_OP_CALL || handler_read((uintptr_t)op->imm) & HANDLER_KEEPS;
}

/* programs_keep - must the detour save all fields of struct plat_light? */
static bool programs_keep(const struct programs *programs)
{
    for (unsigned i = 0; i < programs->count; i++) {
        const struct kprobe_program *program = programs->of[i].program;

        if (programs->of[i]
                .probe->fault_handler) /* it runs in the fault, and may fault */
            return true;
        for (unsigned k = 0; program && k < program->count; k++)
            if (!op_keeps(&program->ops[k]))
                return true;
    }
    return false;
}

enum plat_specialized detour_specialized_which(const struct site *site)
{
    struct programs programs;

    if (programs_to_call(site, &programs))
        return programs_keep(&programs) ? PLAT_SPECIALIZED_LIGHT_KEEP
                                        : PLAT_SPECIALIZED_LIGHT;
    return which_for_handler(site->probes);
}

/* put_value - write the low @len bytes of @value in front of @end. */
static void put_value(uint8_t *end, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        end[i - len] = (uint8_t)(value >> (8 * i));
}

/* put_signed_value - write 4 bytes, which the CPU extends to @value by their sign.
 * Return: 0; -ERANGE @value does not fit.
 */
static int put_signed_value(uint8_t *end, uint64_t value)
{
    if ((int64_t)value != (int32_t)value)
        return -ERANGE;
    put_value(end, value, sizeof(int32_t));
    return 0;
}

static uint64_t displacement(const uint8_t *end)
{
    uint32_t disp = 0;

    for (size_t i = 0; i < sizeof(disp); i++)
        disp |= (uint32_t)end[i - sizeof(disp)] << (8 * i);
    return (uint64_t)(int32_t)disp;
}

/* put_moved - the displacement in front of @end is right for code whose hole ends at
 * @from: change it so that it leads to the same address from @to.
 */
static int put_moved(uint8_t *end, uintptr_t from, uintptr_t to)
{
    return put_signed_value(end, displacement(end) + from - to);
}

/* fill_hole - fill in the hole in front of @end.
 * @at: the address of its end where it will be executed; @from: the same in the pattern
 */
static int fill_hole(enum plat_hole what, uint8_t *end, uintptr_t at, uintptr_t from,
                     const struct site *site, const struct kprobe *p)
{
    switch (what) {
    case PLAT_HOLE_SITE:
        put_value(end, (uintptr_t)site, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_IP:
        return put_signed_value(end, site->addr + 1);
    case PLAT_HOLE_PROBE:
        put_value(end, (uintptr_t)p, sizeof(uint64_t));
        return 0;
    case PLAT_HOLE_COUNTER:
        put_value(end, (uint32_t)plat_counter_disp(p->counter), sizeof(uint32_t));
        return 0;
    case PLAT_HOLE_HANDLER:
        return put_signed_value(end, (uintptr_t)p->pre_handler - at);
    case PLAT_HOLE_SHARED:
        if (site_is_call(site))
            return put_signed_value(end, plat_detour(PLAT_DETOUR_CALLED) - at);
        return put_moved(end, from, at);
    case PLAT_HOLE_MOVED:
        return put_moved(end, from, at);
    default:
        plat_bug("a pattern has an unknown hole", from);
    }
}

#define COPY_MAX (INSN_RELOCATED_MAX_LEN + INSN_JMP32_LEN) /* with the jump back */

/* A pattern and its body. The body takes the place of the call of the handler: it is the code
 * of the programs.
 */
struct composed {
    const struct plat_pattern *pattern;
    const struct site *site;
    const struct kprobe *probe; /* that fills the holes */
    size_t body;  /* offset of the body; the length of the pattern: there is none */
    size_t grows; /* by how many bytes the code behind the body moves on */
};

static size_t body_place(const struct composed *c, size_t off)
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

/* below - the bytes of the frame below the registers that C code may change: see
 * detour_light.asm.
 */
static int32_t below(enum plat_specialized which, bool flags_live)
{
    bool keeps = which == PLAT_SPECIALIZED_LIGHT_KEEP;
    size_t words = keeps ? sizeof(struct plat_light) / 8 : 2u + flags_live;

    return (int32_t)(8 * words);
}

/* body_put - write the body, if programs call functions. Return: 0; -E2BIG; -ERANGE. */
static int body_put(struct composed *c, uint8_t *out, uintptr_t at,
                    const struct site *site, enum plat_specialized which, bool flags_live)
{
    struct programs programs;
    struct insn_builder b;

    if (which == PLAT_SPECIALIZED_CALL || which == PLAT_SPECIALIZED_LEAF)
        return 0;
    if (!programs_to_call(site, &programs))
        programs_of_handler(site, &programs);
    body_find(c);
    c->probe = programs.of[programs_caller(&programs)].probe;
    programs.below = below(which, flags_live);
    b = (struct insn_builder){
        .out = out + c->body,
        .at = at + c->body,
        .max = INSN_SLOT_LONG_CODE_MAX - COPY_MAX - c->pattern->len + INSN_CALL32_LEN,
    };
    programs_build(&b, &programs);
    c->grows = b.len - INSN_CALL32_LEN;
    return b.full ? -E2BIG : b.far ? -ERANGE : 0;
}

/* hole_put - fill in hole @i of the pattern. */
static int hole_put(const struct composed *c, size_t i, uint8_t *out, uintptr_t at)
{
    enum plat_hole what = (enum plat_hole)c->pattern->holes[i].what;
    size_t from = c->pattern->holes[i].end, end = body_place(c, from);

    if (what == PLAT_HOLE_COPY)
        return put_signed_value(out + end, c->pattern->len + c->grows - end);
    if (what == PLAT_HOLE_ACROSS)
        return put_signed_value(out + end, displacement(out + end) +
                                               (from > c->body ? -c->grows : c->grows));
    if (what == PLAT_HOLE_HANDLER && c->body != c->pattern->len)
        return 0;
    return fill_hole(what, out + end, at + end, (uintptr_t)c->pattern->code + from,
                     c->site, c->probe);
}

int detour_specialized_put(uint8_t *out, uintptr_t at, const struct site *site,
                           enum plat_specialized which, bool flags_live, size_t *len)
{
    const struct plat_pattern *pattern = plat_detour_specialized(which, flags_live);
    struct composed c = {
        .pattern = pattern, .site = site, .probe = site->probes, .body = pattern->len
    };
    int err = body_put(&c, out, at, site, which, flags_live);
    size_t behind = c.body == pattern->len ? c.body : c.body + INSN_CALL32_LEN;

    for (size_t i = 0; i < c.body; i++)
        out[i] = pattern->code[i];
    for (size_t i = behind; i < pattern->len; i++)
        out[i + c.grows] = pattern->code[i];
    for (size_t i = 0; i < pattern->hole_count && !err; i++)
        err = hole_put(&c, i, out, at);
    *len = pattern->len + c.grows;
    return err;
}

bool detour_specialized_is_current(const struct site *site)
{
    uint8_t code[INSN_SLOT_LONG_CODE_MAX];
    const struct plat_pattern *pattern;
    const uint8_t *start;
    bool same, flags_live = jump_site(site)->saves_flags;
    enum plat_specialized which = (enum plat_specialized)jump_site(site)->which;
    size_t len;

    if (!detour_specialized_fits(site))
        return false;
    pattern = plat_detour_specialized(which, flags_live);
    start = site_detour(site) - pattern->entry;
    same = !detour_specialized_put(code, (uintptr_t)start, site, which, flags_live, &len);
    for (size_t i = 0; same && i < len; i++)
        same = code[i] == start[i];
    return same;
}
