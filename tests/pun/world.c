/* world.c - gives the planner the bytes and the address map of an image. */
#include "tests/pun/world.h"

#include "kernel/base/compiler.h"

#include <stdlib.h>
#include <string.h>

#define REACH_START UINT64_C(0xffffffff00000000)
#define PADS_END UINT64_C(0xfffffffffe000000)
#define ARENA_LOW UINT64_C(0xffffffff7e000000)
#define ARENA_LEN (UINT64_C(32) << 20)
#define MODULE_WINDOW_LEN (UINT64_C(64) << 20)
#define LARGE_PAGE (UINT64_C(2) << 20)
#define CELL_LEN 32
#define BEHIND 64 /* as FILLED_BEHIND in image.c */

static bool pad_is_free(void *arg UNUSED, uintptr_t pad UNUSED)
{
    return true;
}

static bool byte_at(void *arg, uintptr_t addr, uint8_t *byte)
{
    const struct world *w = arg;
    size_t off = addr - w->image->base;

    if (off >= w->image->len + BEHIND)
        return false;
    *byte = w->text[off];
    return true;
}

static bool is_padding(void *arg, uintptr_t addr)
{
    const struct world *w = arg;
    size_t off = addr - w->image->base;

    return off < w->image->len && w->image->flags[off] & IMAGE_PADDING;
}

static bool neighbour(void *arg, uintptr_t addr, struct pun *out)
{
    const struct world *w = arg;
    size_t off = addr - w->image->base;

    if (!w->evicts || off >= w->image->len || !(w->image->flags[off] & IMAGE_PROBED))
        return false;
    *out = world_pun(w, off);
    out->detour = 0;
    return true;
}

void world_init(struct world *w, const struct image *image)
{
    uintptr_t modules = (image->end + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);

    *w = (struct world){ .image = image };
    w->text = malloc(image->len + BEHIND);
    if (!w->text)
        abort();
    memcpy(w->text, image->bytes, image->len + BEHIND);
    w->env = (struct pun_env){
        .pads_start = REACH_START,
        .pads_end = PADS_END,
        .hole_start = ARENA_LOW,
        .hole_end = modules + MODULE_WINDOW_LEN + ARENA_LEN,
        .arg = w,
        .pad_is_free = pad_is_free,
        .byte_at = byte_at,
        .is_padding = is_padding,
        .neighbour = neighbour,
    };
}

void world_free(struct world *w)
{
    free(w->text);
}

struct pun world_pun(const struct world *w, size_t off)
{
    const struct image *image = w->image;
    struct pun p = { .addr = image->base + off, .len = image->lens[off] };
    struct insn insn;

    memcpy(p.bytes, image->bytes + off, p.len);
    insn_decode(&insn, p.bytes, p.len, p.addr);
    p.is_call = insn.kind == INSN_CALL_REL;
    p.detour = ARENA_LOW + off * 8 % ARENA_LEN / CELL_LEN * CELL_LEN; /* any cell */
    return p;
}

void world_write(struct world *w, const struct pun *p)
{
    size_t off = p->addr - w->image->base;

    if (p->rung == PUN_NONE)
        w->text[off] = p->is_evicted ? p->bytes[0] : 0xcc;
    else
        memcpy(w->text + off, p->jump, p->jump_len);
}

void world_restore(struct world *w, const struct pun *p)
{
    size_t off = p->addr - w->image->base;
    size_t len = p->jump_len > p->len ? p->jump_len : p->len;

    memcpy(w->text + off, w->image->bytes + off, len);
}
