/* region_copy.c - make the copies of a region's instructions, and translate addresses
 * between the copies and the originals.
 *
 *     cell:  | copy of a | copy of b | copy of c | jump back |
 *              copies[0]   [1]         [2]         [3]
 *
 * The first instruction is the probed one. The engine runs it in one of several ways,
 * with the handlers before and after it. After each of these ways the program goes on at
 * copies[1].
 *
 * A direct call at the end becomes a push of the address behind the original call, and a
 * jump. So no return address ever points into a cell, and no thread sleeps in a function
 * that would return to a cell.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/region/region.h"

_Static_assert(REGION_JUMP_LEN == INSN_JMP32_LEN, "the jump is a jmp32");

struct region_code {
    uint8_t *out;
    uintptr_t to;
    size_t len;
};

static uintptr_t copy_end(const struct region_code *c)
{
    return c->to + c->len;
}

static int copy_append_jmp(struct region_code *c, uintptr_t target)
{
    int err = insn_encode_jmp32(c->out + c->len, copy_end(c), target);

    if (!err)
        c->len += INSN_JMP32_LEN;
    return err;
}

static int append_call(struct region_code *c, const struct insn *call)
{
    intptr_t back = (intptr_t)insn_next(call);

    if (back != (int32_t)back)
        return -ERANGE;
    c->len += insn_encode_push_imm(c->out + c->len, (int32_t)back);
    return copy_append_jmp(c, call->target);
}

static int append_copy(struct region_code *c, const struct insn *insn)
{
    size_t len;
    int err;

    if (insn->kind == INSN_CALL_REL)
        return append_call(c, insn);
    /* A copy never meets the end of this room: see REGION_COPY_MAX. */
    err =
        insn_relocate(c->out + c->len, REGION_COPY_MAX - c->len, insn, copy_end(c), &len);
    if (!err)
        c->len += len;
    return err;
}

/* copy_append - decode instruction @i of the region, and append its copy. The first one
 * gets no copy if it cannot move.
 * @insn: receives the instruction
 */
static int copy_append(struct region_code *c, struct region *r, size_t i,
                       struct insn *insn)
{
    uintptr_t at = r->addr + r->starts[i];
    int err = insn_decode(insn, r->bytes + r->starts[i],
                          (size_t)(r->len - r->padding - r->starts[i]), at);

    if (err)
        return -EOPNOTSUPP;
    r->copies[i] = (uint8_t)c->len;
    if (i == 0 && !insn_can_move(insn) && insn->kind != INSN_CALL_REL)
        return 0;
    return append_copy(c, insn);
}

static int append_way_back(struct region_code *c, struct region *r,
                           const struct insn *last)
{
    r->copies[r->count] = (uint8_t)c->len;
    if (!insn_falls_through(last) || last->kind == INSN_CALL_REL)
        return 0;
    return copy_append_jmp(c, r->addr + r->len);
}

int region_copy(struct region *r, uintptr_t to, uint8_t *out, size_t *out_len,
                struct probe_reject *why)
{
    struct region_code c = { out, to, 0 };
    struct insn insn = { 0 };
    int err = 0;

    for (size_t i = 0; i < r->count && !err; i++)
        err = copy_append(&c, r, i, &insn);
    if (!err)
        err = append_way_back(&c, r, &insn);
    if (err == -ERANGE)
        return probe_refuse(why, PROBE_OUT_OF_REACH, insn.addr);
    if (err)
        return probe_refuse(why, PROBE_REGION_MOVE, insn.addr);
    *out_len = c.len;
    return 0;
}

uintptr_t region_original(const struct region *r, size_t off)
{
    size_t i = r->count;

    while (i && off < r->copies[i])
        i--;
    return r->addr + (i < r->count ? r->starts[i] : r->len);
}

NOKPROBE(region_original);

uintptr_t region_enter(const struct region *r, uintptr_t ip)
{
    for (size_t i = 1; i < r->count; i++)
        if (ip == r->addr + r->starts[i])
            return (uintptr_t)r->cell + r->copies[i];
    return ip;
}
NOKPROBE(region_enter);
