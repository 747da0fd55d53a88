/* pad_write.c - writes the bytes of pads.
 *
 * A write to text costs much, whatever its length. So if many pads change, each of their
 * frames is copied, changed in the copy, and written once, as a whole. The other bytes of
 * the frame keep their values, and no CPU executes the bytes that change.
 */
#include "probes/jump/pad_parts.h"

static struct pad_frame *dirty; /* frames that have a copy */

static bool copy_open(struct pad_frame *f)
{
    if (f->copy)
        return true;
    f->copy = plat_alloc(PAD_PAGE_LEN);
    if (!f->copy)
        return false;
    if (plat_text_read(f->copy, pad_frame_writable(f), PAD_PAGE_LEN))
        plat_bug("a landing page cannot be read", f->shown_at);
    f->dirty = dirty;
    dirty = f;
    return true;
}

/* Without memory for a copy, each pad is written by itself, which takes longer. */
static void piece_write(const struct pad_page *page, uint16_t start, const uint8_t *bytes,
                        bool bulk)
{
    unsigned first = pad_first(start), len = pad_end(start) - first;

    if (page->frame->leaving == page->frame->pages)
        return;
    if (!bulk || !copy_open(page->frame)) {
        pad_text_write(page->addr + first, bytes, len);
        return;
    }
    for (unsigned i = 0; i < len; i++)
        page->frame->copy[first + i] = bytes[i];
}

void pad_write(uintptr_t pad, const uint8_t bytes[PAD_LEN], bool bulk)
{
    struct pad_piece pieces[2];
    unsigned count = pad_pieces(pad, pieces);
    unsigned done = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct pad_page *page = pad_page_find(pieces[i].page);

        if (!page || !page->frame)
            plat_bug("a landing pad is written that was not reserved", pad);
        piece_write(page, pieces[i].start, bytes + done, bulk);
        done = pad_end(pieces[i].start) - pad_first(pieces[i].start);
    }
}

void pad_write_end(void)
{
    struct pad_frame *next;

    for (; dirty; dirty = next) {
        next = dirty->dirty;
        pad_text_write(pad_frame_writable(dirty), dirty->copy, PAD_PAGE_LEN);
        plat_free(dirty->copy);
        dirty->copy = NULL;
    }
}
