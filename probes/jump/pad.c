/* pad.c - reserves landing pads, fills them, and takes them back.
 *
 * A reservation first adds all its pads to their pages. So it knows what each page needs
 * before it chooses a frame for the page. If anything fails, the whole reservation is
 * undone. Filling pads and giving them back cannot fail.
 */
#include "kernel/base/err.h"
#include "probes/insn/encode.h"
#include "probes/jump/pad_parts.h"
#include "probes/jump/platform_jump.h"

#define GONE_MAX 256 /* pages that are unmapped together */

size_t pad_total;

size_t pad_bytes(void)
{
    return pad_page_bytes() + pad_frame_bytes();
}

/* ---- where pads are ---- */

static bool range_contains(uintptr_t first, uintptr_t last)
{
    static struct plat_pad_range range;

    if (!range.end)
        plat_pad_range(&range);
    return first >= range.start && last < range.end && first <= last &&
           (last < range.hole_start || first >= range.hole_end);
}

static bool piece_is_free(const struct pad_piece *piece)
{
    struct pad_page *page = pad_page_find(piece->page);

    if (!page)
        return true;
    if (page->is_foreign)
        return false;
    return pad_frame_is_free(page->frame, piece->start) ||
           !pad_page_overlaps(page, piece->start);
}

bool pad_is_free(uintptr_t pad)
{
    struct pad_piece pieces[2];
    unsigned count = pad_pieces(pad, pieces);

    if (!range_contains(pad, pad + PAD_LEN - 1))
        return false;
    return piece_is_free(&pieces[0]) && (count == 1 || piece_is_free(&pieces[1]));
}

uintptr_t pad_target(uintptr_t ip)
{
    uint8_t bytes[PAD_LEN];

    if (!range_contains(ip, ip + PAD_LEN - 1) || plat_text_read(bytes, ip, PAD_LEN))
        return 0;
    return insn_jmp32_target(bytes, ip);
}
NOKPROBE(pad_target);

uintptr_t pad_pass(uintptr_t ip)
{
    uintptr_t target = pad_target(ip);

    return target ? target : ip;
}
NOKPROBE(pad_pass);

/* ---- pages without pads ---- */

static struct {
    struct pad_page *pages[GONE_MAX];
    size_t count;
} gone;

static void gone_page_forget(struct pad_page *page)
{
    struct pad_frame *f = page->frame;

    pad_frame_leave(page);
    if (f->pages == 0)
        pad_frame_put(f);
    pad_page_forget(page);
}

static void gone_flush(void)
{
    static uintptr_t addrs[GONE_MAX];

    if (!gone.count)
        return;
    for (size_t i = 0; i < gone.count; i++)
        addrs[i] = gone.pages[i]->addr;
    plat_pad_pages_unmap(addrs, gone.count);
    for (size_t i = 0; i < gone.count; i++)
        gone_page_forget(gone.pages[i]);
    gone.count = 0;
}

static void gone_add(struct pad_page *page)
{
    page->is_leaving = true;
    gone.pages[gone.count++] = page;
    if (gone.count == GONE_MAX)
        gone_flush();
}

/* ---- reserve ---- */

static struct pad_page *touched; /* pages with fresh pads */

static bool pad_piece_add(const struct pad_piece *piece)
{
    struct pad_page *page = pad_page_get(piece->page);

    if (!page)
        return false;
    if (!page->is_touched) {
        page->is_touched = true;
        page->touched = touched;
        touched = page;
    }
    if (!pad_page_add(page, piece->start))
        return false;
    page->fresh++;
    return true;
}

static int pads_add(const uintptr_t *pads, size_t count)
{
    struct pad_piece pieces[2];

    for (size_t i = 0; i < count; i++) {
        unsigned n = pad_pieces(pads[i], pieces);

        for (unsigned k = 0; k < n; k++) {
            if (!pad_piece_add(&pieces[k]))
                return -ENOMEM;
        }
    }
    return 0;
}

/* settle_those - find a frame for each touched page that has at least @min pads. */
static int settle_those(unsigned min)
{
    for (struct pad_page *page = touched; page; page = page->touched) {
        int err;

        if (page->count < min || page->is_settled)
            continue;
        err = pad_frame_settle(page);
        page->is_foreign = err == -EBUSY;
        if (err)
            return err;
    }
    return 0;
}

/* Pages with many pads come first: pages with few pads find room beside them more easily.
 */
static int pages_settle(void)
{
    int err = 0;

    for (unsigned min = PAD_MANY; min > 0 && !err; min--)
        err = settle_those(min);
    return err;
}

static void page_take_back(struct pad_page *page)
{
    unsigned left = page->count - page->fresh;

    for (unsigned i = left; page->is_settled && i < page->count; i++)
        pad_frame_release(page->frame, pad_page_starts(page)[i]);
    page->count = (uint16_t)left;
}

static void page_untouch(struct pad_page *page)
{
    page->is_touched = page->is_settled = false;
    page->fresh = 0;
    if (page->count || page->is_foreign)
        return;
    if (page->frame)
        gone_add(page);
    else
        pad_page_forget(page);
}

static void touched_leave(bool keep)
{
    struct pad_page *page = touched, *next;

    for (; page; page = next) {
        next = page->touched;
        if (!keep)
            page_take_back(page);
        page_untouch(page);
    }
    gone_flush();
}

int pad_reserve(const uintptr_t *pads, size_t count)
{
    int err;

    if (!pad_total)
        pad_pages_forget_foreign();
    touched = NULL;
    err = pads_add(pads, count);
    if (!err)
        err = pages_settle();
    touched_leave(!err);
    if (!err)
        pad_total += count;
    return err;
}

/* ---- fill, and give back ---- */

void pad_fill(const struct pad_jump *jumps, size_t count)
{
    uint8_t bytes[PAD_LEN];

    for (size_t i = 0; i < count; i++) {
        if (insn_encode_jmp32(bytes, jumps[i].pad, jumps[i].target))
            plat_bug("a landing pad does not reach its target", jumps[i].pad);
        pad_write(jumps[i].pad, bytes, count >= PAD_BULK);
    }
    pad_write_end();
}

/* Step 1: remove the pad from its pages and frames. */
static void pad_forget(uintptr_t pad)
{
    struct pad_piece pieces[2];
    unsigned count = pad_pieces(pad, pieces);

    for (unsigned i = 0; i < count; i++) {
        struct pad_page *page = pad_page_find(pieces[i].page);

        if (!page)
            plat_bug("a pad is given back that was not reserved", pad);
        pad_page_remove(page, pieces[i].start);
        pad_frame_release(page->frame, pieces[i].start);
        page->frame->leaving += page->count == 0;
    }
}

/* Step 3: unmap pages without pads. */
static void pad_pages_leave(uintptr_t pad)
{
    struct pad_piece pieces[2];
    unsigned count = pad_pieces(pad, pieces);

    for (unsigned i = 0; i < count; i++) {
        struct pad_page *page = pad_page_find(pieces[i].page);

        if (page && page->count == 0 && !page->is_leaving)
            gone_add(page);
    }
}

/* Step 2, between these two: frames that stay get int3s where the pads were. */
void pad_free_all(const uintptr_t *pads, size_t count)
{
    uint8_t int3s[PAD_LEN];

    insn_encode_int3s(int3s, PAD_LEN);
    for (size_t i = 0; i < count; i++)
        pad_forget(pads[i]);
    plat_lock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++)
        pad_write(pads[i], int3s, count >= PAD_BULK);
    pad_write_end();
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++)
        pad_pages_leave(pads[i]);
    gone_flush();
    pad_total -= count;
}
