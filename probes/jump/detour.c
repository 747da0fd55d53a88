/* detour.c - stage 11: makes detours. The layouts of the cells:
 *
 *   CALL, PROGRAM in the cell of the boosted copy, in front of it:
 *       | call detour | copy | jmp back |      or     | inc %gs:counter | copy | jmp back
 *       |
 *       | save flags, inc %gs:counter, restore | copy | jmp back |
 *       in general what program_code.h shows
 *   code that does not fit there, and that of a site without a boosted copy, in another
 *   cell:
 *       | call detour | copy | call post | jmp back |
 *       | call detour | jmp to the target |      a direct call: see below
 *       | call detour |                          IMAGE: leaves by the register image
 *       | specialized code | copy | jmp back |   CALL and LIGHT, for some sites: see
 *                                                detour_specialized.h
 *       | call detour | call the copy | jmp kretprobe_trampoline | jmp to the copy |
 *                                                RETURN: see return_point.c
 *
 * The routine that a cell calls finds the site by its return address: (address + 1) | 31
 * is the last byte of a cell, and the last eight bytes of the cell hold the address of
 * the site. A large cell has it at the end of its second half. So there the return
 * address must be the last byte of the first half, or lie behind it. A cell of
 * INSN_SLOT_COUNTED_LEN has no such call, because its end is anywhere.
 *
 * A direct call in the text stays a call, with the detour as its target: so the program's
 * own return address is on the stack before the detour begins. In place of a copy, such a
 * detour has a jump to the target of the program's call.
 */
#include "probes/jump/detour.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/program_join.h"
#include "probes/program/program_code.h"
#include "probes/returns/kretprobe.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/aggr.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/insn/effects.h"
#include "probes/insn/encode.h"
#include "probes/insn/opcode_ops.h"
#include "probes/insn/relocate.h"
#include "probes/jump/counter.h"
#include "probes/jump/detour_specialized.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/region/region.h"
#include "probes/returns/platform_returns.h"

/* Offset of the code in a large cell, if the code begins with a call: the return address
 * is then 31 bytes behind the start of the cell.
 */
#define LARGE_CALL_OFF (INSN_SLOT_LEN - 1 - INSN_CALL32_LEN)

/* Bytes of code behind a copy, at most: the call of the post-handlers, the jump back. */
#define WAY_BACK_MAX (INSN_CALL32_LEN + INSN_JMP32_LEN)

const char *detour_kind_name(enum detour_kind kind)
{
    static const char *const names[DETOUR_KINDS] = { "none", "program", "return", "light",
                                                     "call", "post",    "image" };

    return kind < DETOUR_KINDS ? names[kind] : "?";
}

const char *detour_kind_text(enum detour_kind kind)
{
    static const char *const sentences[DETOUR_KINDS] = {
        [DETOUR_NONE] = "no probe is enabled, so the copy alone",
        [DETOUR_PROGRAM] = "only counters and programs, which are instructions here",
        [DETOUR_RETURN] =
            "one return probe, so the function is called, and returns, here",
        [DETOUR_LIGHT] = "programs that call functions: what C may change is saved",
        [DETOUR_CALL] = "handlers get an image of all registers, then the copy runs",
        [DETOUR_POST] = "handlers in front of the copy, post-handlers behind it",
        [DETOUR_IMAGE] =
            "done to the image: a copy cannot, or its post-handlers would be missed",
    };

    return kind < DETOUR_KINDS ? sentences[kind] : "?";
}

/* ---- which kind ---- */

/* can_copy - can the detour run a copy of @insn that has nothing but a jump behind it? A
 * direct call counts as such.
 */
static bool can_copy(const struct site *site, const struct insn *insn)
{
    if (site_is_call(site))
        return true;
    return insn_can_move(insn) && insn->kind != INSN_POPF && insn->kind != INSN_STI;
}

#define WAY_ON_MAX (INSN_RELOCATED_MAX_LEN + INSN_JMP32_LEN) /* the copy, the jump back */

/* code_for - DETOUR_PROGRAM, if the detour of @site can do by code alone what its probes
 * want; DETOUR_LIGHT, if this code calls functions; else DETOUR_NONE.
 *
 * It cannot at a CMPXCHG8B. For the flags that this instruction leaves alone, QEMU 7.2
 * takes the values that they had where the current block of translated code began; and
 * where a program jumps, a block begins with flags of the program.
 */
static enum detour_kind code_for(const struct site *site, const struct insn *insn)
{
    uint8_t bytes[INSN_SLOT_LONG_CODE_MAX - WAY_ON_MAX];
    struct insn_builder b = { .out = bytes, .max = sizeof(bytes) };
    struct programs programs;

    if (!programs_of(site, &programs) || !programs.count)
        return DETOUR_NONE;
    if (programs.count == 1 && !programs.of[0].program)
        return DETOUR_PROGRAM;
    if (programs_call(&programs))
        return DETOUR_LIGHT;
    programs.flags_live = true;
    programs_build(&b, &programs);
    return !b.full && insn->op != OP_CMPX8B ? DETOUR_PROGRAM : DETOUR_NONE;
}

static enum detour_kind kind_for(const struct site *site, const struct insn *insn)
{
    if (!can_copy(site, insn))
        return DETOUR_IMAGE;
    if (!aggr_enabled(site))
        return site->repeats ? DETOUR_CALL : DETOUR_NONE; /* see kprobe_debug_handler() */
    if (code_for(site, insn) != DETOUR_NONE)
        return code_for(site, insn);
    if (kretprobe_without_image(site) && site_boost_slot(site))
        return DETOUR_RETURN;
    if (!aggr_wants_post(site))
        return DETOUR_CALL;
    return insn_is_branch(insn) ? DETOUR_IMAGE : DETOUR_POST;
}

static void detour_decode(const struct site *site, struct insn *insn)
{
    if (insn_decode(insn, site->bytes, site->len, site->addr))
        plat_bug("a registered instruction does not decode", site->addr);
}

uintptr_t detour_start(const struct site *site, uintptr_t cell)
{
    uintptr_t copy = copy_start(site, cell);

    if (copy)
        return copy;
    return region_has_cell(site, cell) ? cell : cell + jump_site(site)->copy_off;
}
NOKPROBE(detour_start);

enum detour_kind detour_kind_wanted(const struct site *site)
{
    struct insn insn;

    detour_decode(site, &insn);
    return kind_for(site, &insn);
}

/* ---- its code ---- */

struct code {
    struct site *site;
    const struct insn *insn;
    enum detour_kind kind;
    bool flags_live;  /* the program may still read the status flags from before it */
    bool specialized; /* the code in front of the copy is specialized */
    enum plat_specialized which; /* of specialized code */
    struct probe_reject *why;
    uint8_t bytes[INSN_SLOT_LONG_CODE_MAX];
    uintptr_t at; /* the address where bytes[0] will be executed */
    size_t len;
    size_t copy; /* offset of the copy in bytes[] */
    int err;
};

static uintptr_t here(const struct code *c)
{
    return c->at + c->len;
}

static void put_call(struct code *c, uintptr_t target)
{
    if (insn_encode_call32(c->bytes + c->len, here(c), target))
        c->err = probe_refuse(c->why, PROBE_OUT_OF_REACH, target);
    c->len += INSN_CALL32_LEN;
}

static void put_jmp(struct code *c, uintptr_t target)
{
    if (insn_encode_jmp32(c->bytes + c->len, here(c), target))
        c->err = probe_refuse(c->why, PROBE_OUT_OF_REACH, target);
    c->len += INSN_JMP32_LEN;
}

#define COUNT_SAVED_LEN /* of one probe, where flags are live: push and pop, too */      \
    (1 + INSN_FLAGS_SAVE_LEN + INSN_INC_GS_LEN + INSN_FLAGS_RESTORE_LEN + 1)

static void put_programs(struct code *c)
{
    struct insn_builder b = { .out = c->bytes, .max = sizeof(c->bytes), .len = c->len };
    struct programs programs;

    programs_of(c->site, &programs);
    programs.flags_live = c->flags_live;
    programs_build(&b, &programs);
    c->len = b.len;
}

/* front_code - the routine that the cell calls in front of the copy, if it calls one. */
static enum plat_detour front_code(const struct code *c)
{
    bool called = site_is_call(c->site);

    if (c->kind == DETOUR_IMAGE)
        return called ? PLAT_DETOUR_IMAGE_CALLED : PLAT_DETOUR_IMAGE;
    if (called)
        return PLAT_DETOUR_CALLED;
    if (c->kind == DETOUR_RETURN)
        return PLAT_DETOUR_RETURN;
    return c->flags_live ? PLAT_DETOUR_CALL : PLAT_DETOUR_CALL_DEAD;
}

/* refuse_code - the code has no room in the cell (-E2BIG), or does not reach @addr. */
static void refuse_code(struct code *c, int err, uintptr_t addr)
{
    if (err)
        c->err = probe_refuse(c->why, err == -E2BIG ? PROBE_NO_ROOM : PROBE_OUT_OF_REACH,
                              addr);
}

static void put_specialized(struct code *c)
{
    refuse_code(c,
                detour_specialized_put(c->bytes, c->at, c->site, c->which, c->flags_live,
                                       &c->len),
                c->site->addr);
}

static void front_put(struct code *c)
{
    if (c->specialized)
        put_specialized(c);
    else if (c->kind == DETOUR_PROGRAM)
        put_programs(c);
    else if (c->kind != DETOUR_NONE)
        put_call(c, plat_detour(front_code(c)));
}

/* copy_put - write the copy of the instruction, and the jump back. */
static void copy_put(struct code *c)
{
    size_t copied = 0;

    c->copy = c->len;
    if (site_is_call(c->site)) {
        put_jmp(c, c->insn->target);
        return;
    }
    refuse_code(c,
                insn_relocate(c->bytes + c->len, sizeof(c->bytes) - WAY_BACK_MAX - c->len,
                              c->insn, here(c), &copied),
                c->insn->addr);
    c->len += copied;
    if (c->kind == DETOUR_POST)
        put_call(c, plat_detour(PLAT_DETOUR_POST));
    if (insn_falls_through(c->insn))
        put_jmp(c, region_behind(c->site));
}

/* return_put - write what comes behind the call of detour_return: a call of the boosted
 * copy, a jump to the trampoline, and a jump to the boosted copy. The CPU takes the last
 * jump if detour_return has not followed the call of the function.
 */
static void return_put(struct code *c)
{
    uintptr_t boosted = (uintptr_t)region_boosted(c->site);

    put_call(c, boosted);
    put_jmp(c, (uintptr_t)kretprobe_trampoline);
    c->copy = c->len;
    put_jmp(c, boosted);
}

static void detour_compose(struct code *c, uintptr_t cell, size_t start)
{
    c->at = cell;
    c->len = insn_encode_int3s(c->bytes, start);
    front_put(c);
    c->copy = c->len;
    if (c->kind == DETOUR_RETURN)
        return_put(c);
    else if (c->kind != DETOUR_IMAGE)
        copy_put(c);
}

/* ---- where ---- */

static void text_put(uint8_t *at, const uint8_t *bytes, size_t len)
{
    plat_lock(PLAT_TEXT);
    if (plat_text_write((uintptr_t)at, bytes, len))
        plat_bug("a cell is not writable", (uintptr_t)at);
    plat_unlock(PLAT_TEXT);
}

static size_t room_before_boost(const struct site *site)
{
    const uint8_t *copy = site_boost_slot(site);

    return copy ? (size_t)(copy - insn_slot_start(copy)) : 0;
}

/* is_counting - does the code of a detour of @kind call nothing? Then any cell will do.
 */
static bool is_counting(enum detour_kind kind)
{
    return kind == DETOUR_PROGRAM || kind == DETOUR_NONE;
}

/* may_be_front - may the code for @kind lie in the cell of the boosted copy at @copy? */
static bool may_be_front(enum detour_kind kind, const uint8_t *copy)
{
    if (kind == DETOUR_RETURN || kind == DETOUR_POST || kind == DETOUR_IMAGE)
        return false;
    return is_counting(kind) ||
           insn_slot_room(insn_slot_start(copy)) == INSN_SLOT_CODE_MAX;
}

/* prepend - write only the code in front of the copy, into the cell of the boosted copy.
 * Return: false: that is not possible.
 */
static bool prepend(struct code *c)
{
    struct site *site = c->site;
    size_t room = room_before_boost(site);

    if (!site_boost_slot(site) || region_boosted(site) != site->boost_slot)
        return false; /* no boosted copy, or it jumps back under a region's jump */
    if (!may_be_front(c->kind, site->boost_slot))
        return false;
    c->at = (uintptr_t)site->boost_slot;
    front_put(c);
    if (c->len > room)
        return false;
    c->at -= c->len;
    c->len = 0;
    front_put(c); /* again, at its final address */
    if (c->err)
        return true;
    if (c->len)
        text_put((uint8_t *)c->at, c->bytes, c->len);
    site_set_detour(site, (uint8_t *)c->at);
    return true;
}

static int fill_cell(struct code *c, uint8_t *cell, size_t start)
{
    if (c->err) {
        insn_slot_put(cell);
        return c->err;
    }
    insn_slot_fill(cell, c->site, c->bytes, c->len);
    site_set_detour(c->site, cell + start);
    jump_site(c->site)->copy_off = (uint16_t)c->copy;
    return 0;
}

/* detour_place - write the detour into a cell of its own, the smallest that holds it. */
static int detour_place(struct code *c)
{
    size_t start = 0;
    uint8_t *cell;

    detour_compose(c, c->site->addr, 0); /* for the length, the same at any address */
    if (c->err)
        return c->err;
    if (is_counting(c->kind))
        start = link_room_before(c->len - INSN_JMP32_LEN);
    else if (c->len > INSN_SLOT_CODE_MAX)
        start = LARGE_CALL_OFF;
    cell = insn_slot_reserve(insn_slot_len(start + c->len));
    if (!cell)
        return probe_refuse(c->why, PROBE_NO_SLOT, c->site->addr);
    detour_compose(c, (uintptr_t)cell, start);
    return fill_cell(c, cell, start);
}

/* specialized_cell_len - such code ends at the end of a line of 32 bytes, so it needs a
 * cell that begins a line.
 */
static size_t specialized_cell_len(size_t code_len)
{
    return code_len > INSN_SLOT_DETOUR_CODE_MAX ? INSN_SLOT_LONG_LEN
                                                : INSN_SLOT_DETOUR_LEN;
}

/* place_specialized - make a specialized detour. Return: false: @c->site can have none.
 *
 * A site with CMPXCHG8B gets none. For the flags that this instruction leaves alone, QEMU
 * 7.2 takes the values that they had where the current block of translated code began. So
 * the block with the copy must not begin in specialized code.
 */
static bool place_specialized(struct code *c)
{
    uint8_t *cell = NULL;

    if (!detour_specialized_fits(c->site) || c->insn->op == OP_CMPX8B)
        return false;
    c->specialized = true;
    c->which = detour_specialized_which(c->site);
    detour_compose(c, c->site->addr, 0);
    if (!c->err)
        cell = insn_slot_reserve(specialized_cell_len(c->len));
    if (cell)
        detour_compose(c, (uintptr_t)cell, 0);
    if (!cell ||
        fill_cell(c, cell, plat_detour_specialized(c->which, c->flags_live)->entry))
        c->specialized = false;
    return c->specialized;
}

/* An operand may be a weak symbol that nothing defines. Its address is 0, which text
 * reaches and cells do not. The detour of a call without a probe needs no cell: it is the
 * target of the call itself. The call in the text may get there through a pad, which
 * reaches any text.
 */
bool detour_can_reach(const struct insn *insn)
{
    uint8_t copy[INSN_RELOCATED_MAX_LEN];
    uintptr_t start;
    size_t window, len;

    if (insn->kind == INSN_CALL_REL)
        return plat_text_contains(insn->target, 1);
    plat_exec_window(&start, &window);
    return insn_relocate(copy, sizeof(copy), insn, start, &len) != -ERANGE &&
           insn_relocate(copy, sizeof(copy), insn, start + window, &len) != -ERANGE;
}

static int detour_build(struct code *c)
{
    if (c->kind == DETOUR_NONE && site_is_call(c->site)) {
        if (!detour_can_reach(c->insn))
            return probe_refuse(c->why, PROBE_OUT_OF_REACH, c->insn->target);
        site_set_detour(c->site, (uint8_t *)c->insn->target);
        return 0;
    }
    if ((c->kind == DETOUR_CALL || c->kind == DETOUR_LIGHT) && place_specialized(c))
        return 0;
    c->len = 0;
    c->err = 0;
    if (prepend(c))
        return c->err;
    c->len = 0;
    c->err = 0;
    return detour_place(c);
}

/* ---- coming and going ---- */

static int counters_get(struct site *site, struct probe_reject *why)
{
    for (struct kprobe *p = site->probes; p; p = p->next) {
        if (p->counter)
            continue;
        p->counter = counter_get(p == site->probes);
        if (!p->counter)
            return probe_refuse(why, PROBE_NO_MEMORY, site->addr);
    }
    return 0;
}

/* This function does not look at the instructions behind @insn. They may be exchanged for
 * instructions that read flags, while a thread is between the detour and them. So a
 * detour may change flags only at the entry of a compiled function, because the calling
 * convention hands no flags over, and where @insn itself writes all of @flags. In the
 * second case @insn must have no fix-up: after a fault the program goes on there with the
 * flags from before @insn.
 */
bool detour_may_change_flags(const struct insn *insn, uint32_t flags)
{
    struct insn_effects effects;

    if (plat_is_compiled(insn->addr))
        return true;
    insn_effects(insn, &effects);
    return !(flags & (effects.flags_read | ~effects.flags_killed)) &&
           !plat_has_fixup(insn->addr);
}

#define COUNT_FLAGS (INSN_FLAGS_STATUS & ~(uint32_t)FLAGS_CF) /* that inc changes */

/* flags_changed - the status flags that the code of a detour of @kind changes, and does
 * not put back itself. Kinds that keep all flags anyway do not use the answer.
 */
static uint32_t flags_changed(const struct site *site, enum detour_kind kind)
{
    struct programs programs;

    if (kind != DETOUR_PROGRAM)
        return INSN_FLAGS_STATUS;
    programs_of(site, &programs);
    return programs_flags(&programs);
}

size_t detour_count_len(const struct insn *insn)
{
    return detour_may_change_flags(insn, COUNT_FLAGS) ? INSN_INC_GS_LEN : COUNT_SAVED_LEN;
}

_Static_assert(DETOUR_KINDS <= 0x10, "the kind in a struct jump_site has four bits");

/* has_tripped - was a handler of @site given up? That may happen at any moment. */
static bool has_tripped(const struct site *site)
{
    for (const struct kprobe *p = site->probes; p; p = p->next)
        if (READ_ONCE(p->flags) & KPROBE_FLAG_TRIPPED)
            return true;
    return false;
}

int detour_prepare(struct site *site, struct probe_reject *why)
{
    struct insn insn;
    struct code code = { .site = site, .insn = &insn, .why = why };
    uint32_t changed;
    int err;

    if (detour_is_current(site))
        return 0;
    /* A handler was given up since the detour was made. The detour can stay until the
     * probes change, because each hit checks whether the probe is enabled. */
    if (site_detour(site) && has_tripped(site))
        return 0;
    if (site_detour(site))
        plat_bug("a detour is made anew and has not been released", site->addr);
    detour_decode(site, &insn);
    code.kind = kind_for(site, &insn);
    changed = flags_changed(site, code.kind);
    code.flags_live = changed && !detour_may_change_flags(&insn, changed);
    err = counters_get(site, why);
    if (!err)
        err = detour_build(&code);
    if (err)
        return err;
    jump_site(site)->kind = code.kind & 0xf;
    if (code.kind == DETOUR_RETURN)
        jump_site(site)->holder = kretprobe_without_image(site);
    jump_site(site)->saves_flags = code.flags_live;
    jump_site(site)->specialized = code.specialized;
    jump_site(site)->which = (uint8_t)code.which;
    return 0;
}

/* has_same_code - is the code of the detour what it would be for the present probes? */
static bool has_same_code(const struct site *site)
{
    struct code now = { .site = (struct site *)(uintptr_t)site,
                        .kind = DETOUR_PROGRAM,
                        .flags_live = jump_site(site)->saves_flags };
    const uint8_t *code = site_detour(site);
    uintptr_t copy = detour_start(site, (uintptr_t)insn_slot_start(code));
    bool same;

    put_programs(&now);
    same = (uintptr_t)code + now.len == copy; /* else it has more programs */
    for (size_t i = 0; i < now.len && same; i++)
        same = code[i] == now.bytes[i];
    return same;
}

bool detour_is_current(const struct site *site)
{
    enum detour_kind kind = (enum detour_kind)jump_site(site)->kind;

    if (!site_detour(site) || detour_kind_wanted(site) != kind)
        return false;
    if (kind == DETOUR_RETURN)
        return jump_site(site)->holder == kretprobe_without_image(site);
    if (jump_site(site)->specialized)
        return detour_specialized_is_current(site);
    return kind != DETOUR_PROGRAM || has_same_code(site);
}

uint8_t *detour_cell(const struct site *site)
{
    uint8_t *cell;

    if (!site_detour(site) ||
        (site_is_call(site) && jump_site(site)->kind == DETOUR_NONE))
        return NULL;
    cell = insn_slot_start(site_detour(site));
    return copy_start(site, (uintptr_t)cell) ? NULL : cell;
}

void detour_release(struct site *site)
{
    uint8_t int3s[INSN_SLOT_CODE_MAX], *cell = detour_cell(site);
    size_t room = room_before_boost(site);

    if (!site_detour(site))
        return;
    insn_slot_put(cell);
    if (!cell && room)
        text_put(site->boost_slot - room, int3s, insn_encode_int3s(int3s, room));
    site_set_detour(site, NULL);
}
