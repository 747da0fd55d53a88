/* pad_frame.c - lets many pages show the same frame: each page uses other bytes of it.
 *
 * If a page needs a byte that its frame uses for another page, it moves to another frame.
 * Meanwhile a CPU may be on one of its pads, or about to jump to one. So the steps are:
 *
 *   1. the bytes of its pads are written to the other frame, where no page uses them,
 *   2. the page shows the other frame, in one step, on all CPUs,
 *   3. in the old frame these bytes become int3,
 *   4. and only then the new pad can be written: by pad_fill().
 */
#include "kernel/base/err.h"
#include "probes/insn/encode.h"
#include "probes/jump/pad_parts.h"
#include "probes/jump/platform_jump.h"

#define TRIES 200
#define MISSES 100

static struct list open = LIST_INIT(open); /* with room, the oldest first */
static struct list full = LIST_INIT(full);
size_t pad_frame_total;
static uint8_t scratch[PAD_PAGE_LEN];

/* ---- bytes ---- */

static uint64_t piece_mask(uint16_t start)
{
    return (UINT64_C(1) << (pad_end(start) - pad_first(start))) - 1;
}

/* The bits of @f from bit @at on. A piece may begin in one word and end in the next. */
static uint64_t bits_get(const struct pad_frame *f, unsigned at)
{
    uint64_t low = f->used[at / 64] >> at % 64;

    return at % 64 ? low | f->used[at / 64 + 1] << (64 - at % 64) : low;
}

static void bits_flip(struct pad_frame *f, unsigned at, uint64_t mask)
{
    f->used[at / 64] ^= mask << at % 64;
    if (at % 64)
        f->used[at / 64 + 1] ^= mask >> (64 - at % 64);
}

bool pad_frame_is_free(const struct pad_frame *frame, uint16_t start)
{
    return !(bits_get(frame, pad_first(start)) & piece_mask(start));
}

static bool has_room(const struct pad_frame *f, struct pad_page *page, unsigned from)
{
    for (unsigned i = from; i < page->count; i++) {
        if (!pad_frame_is_free(f, pad_page_starts(page)[i]))
            return false;
    }
    return true;
}

static void frame_take(struct pad_frame *f, uint16_t start)
{
    bits_flip(f, pad_first(start), piece_mask(start));
}

void pad_frame_release(struct pad_frame *f, uint16_t start)
{
    bits_flip(f, pad_first(start), piece_mask(start));
    f->misses = 0;
    list_remove(&f->link);
    list_append(&open, &f->link);
}

/* ---- frames ---- */

/* @content: of PAD_PAGE_LEN bytes */
static struct pad_frame *frame_new(const uint8_t *content)
{
    struct pad_frame *f = plat_alloc(sizeof(*f));

    if (!f)
        return NULL;
    if (plat_pad_frame_new(&f->id, content)) {
        plat_free(f);
        return NULL;
    }
    list_append(&open, &f->link);
    pad_frame_total++;
    return f;
}

void pad_frame_put(struct pad_frame *f)
{
    list_remove(&f->link);
    plat_pad_frame_free(f->id);
    plat_free(f);
    pad_frame_total--;
}

size_t pad_frame_bytes(void)
{
    return pad_frame_total * (PAD_PAGE_LEN + sizeof(struct pad_frame));
}

/* frame_missed - a page has found no room in @f. The text dictates where pads lie, so a
 * frame is never quite full. But if MISSES pages in a row find no room, frame_find() does
 * not try this frame any more, until a pad in it is given back.
 */
static void frame_missed(struct pad_frame *f)
{
    if (++f->misses < MISSES)
        return;
    list_remove(&f->link);
    list_append(&full, &f->link);
}

/* frame_find - a frame that pages show already, and that has room for all pads of @page;
 * NULL: none of those that were tried.
 */
static struct pad_frame *frame_find(struct pad_page *page)
{
    struct pad_frame *f, *next;
    unsigned tries = 0;

    list_for_each_safe(f, next, &open, link) {
        if (tries++ == TRIES)
            break;
        if (has_room(f, page, 0)) {
            f->misses = 0;
            return f;
        }
        frame_missed(f);
    }
    return NULL;
}

static void all_taken(struct pad_frame *f, struct pad_page *page, unsigned from)
{
    for (unsigned i = from; i < page->count; i++)
        frame_take(f, pad_page_starts(page)[i]);
}

uintptr_t pad_frame_writable(struct pad_frame *f)
{
    if (!f->shown_at)
        f->shown_at = pad_page_showing(f)->addr;
    return f->shown_at;
}

/* ---- a page that shows nothing yet ---- */

static int pad_page_map(struct pad_page *page, struct pad_frame *f)
{
    int err = plat_pad_page_show(page->addr, 0, f->id);

    if (err && !f->pages)
        pad_frame_put(f);
    if (err)
        return err;
    page->frame = f;
    f->pages++;
    f->shown_at = page->addr;
    all_taken(f, page, 0);
    return 0;
}

static int page_give_frame(struct pad_page *page)
{
    struct pad_frame *f = frame_find(page);

    if (!f) {
        insn_encode_int3s(scratch, PAD_PAGE_LEN);
        f = frame_new(scratch);
    }
    return f ? pad_page_map(page, f) : -ENOMEM;
}

/* ---- a page that has to move to another frame ---- */

static void pad_read(struct pad_page *page, uint16_t start, uint8_t *out)
{
    unsigned first = pad_first(start);

    if (plat_text_read(out, page->addr + first, pad_end(start) - first))
        plat_bug("a landing pad cannot be read", page->addr + first);
}

/* Step 1, if other pages show the other frame already. */
static void pads_copy(struct pad_page *page, uintptr_t to, unsigned count)
{
    uint8_t bytes[PAD_LEN];

    for (unsigned i = 0; i < count; i++) {
        unsigned first = pad_first(pad_page_starts(page)[i]);

        pad_read(page, pad_page_starts(page)[i], bytes);
        pad_text_write(to + first, bytes, pad_end(pad_page_starts(page)[i]) - first);
    }
}

/* Step 1, with a new frame. */
static struct pad_frame *frame_new_for(struct pad_page *page, unsigned count)
{
    insn_encode_int3s(scratch, PAD_PAGE_LEN);
    for (unsigned i = 0; i < count; i++)
        pad_read(page, pad_page_starts(page)[i],
                 scratch + pad_first(pad_page_starts(page)[i]));
    return frame_new(scratch);
}

/* Step 3. */
static void pads_leave(struct pad_page *page, struct pad_frame *old, unsigned count)
{
    static const uint8_t int3s[PAD_LEN] = { INSN_INT3, INSN_INT3, INSN_INT3, INSN_INT3,
                                            INSN_INT3 };

    if (old->shown_at == page->addr)
        old->shown_at = 0;
    if (--old->pages == 0) {
        pad_frame_put(old);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned first = pad_first(pad_page_starts(page)[i]),
                 end = pad_end(pad_page_starts(page)[i]);

        pad_text_write(pad_frame_writable(old) + first, int3s, end - first);
        pad_frame_release(old, pad_page_starts(page)[i]);
    }
}

static int page_move(struct pad_page *page, struct pad_frame *to, unsigned count)
{
    struct pad_frame *old = page->frame;
    int err = plat_pad_page_show(page->addr, old->id, to->id);

    if (err && !to->pages)
        pad_frame_put(to);
    if (err)
        return err;
    page->frame = to;
    to->pages++;
    to->shown_at = page->addr;
    all_taken(to, page, 0);
    pads_leave(page, old, count);
    return 0;
}

static int page_leave(struct pad_page *page)
{
    unsigned count = page->count - page->fresh;
    struct pad_frame *to = frame_find(page);
    int err = -ENOMEM;

    plat_lock(PLAT_TEXT);
    if (to)
        pads_copy(page, pad_frame_writable(to), count);
    else
        to = frame_new_for(page, count);
    if (to)
        err = page_move(page, to, count);
    plat_unlock(PLAT_TEXT);
    return err;
}

/* ---- both ---- */

int pad_frame_settle(struct pad_page *page)
{
    unsigned from = page->count - page->fresh;
    int err = 0;

    if (!page->frame)
        err = page_give_frame(page);
    else if (has_room(page->frame, page, from))
        all_taken(page->frame, page, from);
    else
        err = page_leave(page);
    page->is_settled = !err;
    return err;
}

void pad_frame_leave(struct pad_page *page)
{
    struct pad_frame *f = page->frame;

    page->frame = NULL;
    if (f->shown_at == page->addr)
        f->shown_at = 0;
    f->pages--;
    if (f->leaving)
        f->leaving--;
}
