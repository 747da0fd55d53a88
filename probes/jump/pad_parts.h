/* pad_parts.h - what the files of the landing pads share; private to pad*.c.
 *
 *   pad.c        pads: reserved, filled, given back
 *   pad_page.c   pages with pads on them: found by address, and which bytes each one uses
 *   pad_frame.c  frames: which bytes of one are used by any of the pages that show it
 *   pad_write.c  what is in the pads
 *
 * A pad is one piece of a page, or two: its end may lie on the next page.
 *
 * Locks: PLAT_PROBES held for everything in here.
 */
#pragma once

#include "kernel/base/list.h"
#include "probes/core/platform.h"
#include "probes/jump/pad.h"

#define PAD_PAGE_LEN 4096u
#define PAD_FEW 8         /* pads of a page that need no memory of their own */
#define PAD_MANY 8        /* pads of a page whose order no longer matters */
#define PAD_BULK 32       /* from here on frames are written as a whole */
#define PAD_USED_WORDS 65 /* one bit for each byte, and room to read over the end */

struct pad_frame {
    struct list link;   /* open, or full */
    uint64_t id;        /* the platform's */
    uintptr_t shown_at; /* one of its pages; 0: to be looked for */
    unsigned pages;     /* that show it */
    unsigned leaving;   /* of these, the ones that are about to go */
    unsigned misses;    /* pages that have found no room, in a row */
    uint64_t used[PAD_USED_WORDS];
    uint8_t *copy;           /* its bytes, while many of them are changed */
    struct pad_frame *dirty; /* the next one of those */
};

struct pad_page {
    struct pad_page *next; /* same bucket */
    uintptr_t addr;
    struct pad_frame *frame;  /* NULL: not mapped, or in use for something else */
    struct pad_page *touched; /* in the list of a reservation */
    union {                   /* where its pads begin; see pad_page_starts() */
        uint16_t few[PAD_FEW];
        uint16_t *many; /* memory of its own */
    };
    uint16_t count, room; /* of these */
    uint16_t fresh;       /* of these, the last ones: of a reservation under way */
    bool is_touched : 1;  /* in that list */
    bool is_settled : 1;  /* the frame has room for the fresh ones too */
    bool is_leaving : 1;  /* without pads, to be unmapped with others */
    bool is_foreign : 1;  /* in use for something else */
};

_Static_assert(sizeof(struct pad_page) <= 56, "a page would not fit its block");

static inline uint16_t *pad_page_starts(struct pad_page *page)
{
    return page->room > PAD_FEW ? page->many : page->few;
}

/* The bytes of one pad on one page. @start: as in pad_page_starts(), 4 more than its offset,
 * which is negative on the second page.
 */
struct pad_piece {
    uintptr_t page;
    uint16_t start;
};

static inline unsigned pad_first(uint16_t start)
{
    return start < PAD_LEN - 1 ? 0 : start - (PAD_LEN - 1u);
}

static inline unsigned pad_end(uint16_t start)
{
    return start + 1u < PAD_PAGE_LEN ? start + 1u : PAD_PAGE_LEN;
}

/* pad_pieces - 1 or 2 pieces of the pad at @pad. */
static inline unsigned pad_pieces(uintptr_t pad, struct pad_piece out[2])
{
    uintptr_t page = pad & ~(uintptr_t)(PAD_PAGE_LEN - 1);
    unsigned off = (unsigned)(pad - page);

    out[0] = (struct pad_piece){ page, (uint16_t)(off + PAD_LEN - 1) };
    out[1] = (struct pad_piece){ page + PAD_PAGE_LEN,
                                 (uint16_t)(off + PAD_LEN - 1 - PAD_PAGE_LEN) };
    return off + PAD_LEN > PAD_PAGE_LEN ? 2 : 1;
}

/* ---- pad_page.c ---- */

/* pad_page_find - NULL: nothing is known of it. pad_page_get - make it known; NULL: no
 * memory. pad_page_forget - it has no pads and shows nothing.
 */
struct pad_page *pad_page_find(uintptr_t addr);
struct pad_page *pad_page_get(uintptr_t addr);
void pad_page_forget(struct pad_page *page);
/* pad_page_add, pad_page_remove - one pad more or less. Return: false without memory. */
bool pad_page_add(struct pad_page *page, uint16_t start);
void pad_page_remove(struct pad_page *page, uint16_t start);
/* pad_page_overlaps - does the page itself use one of the bytes of a pad at @start? */
bool pad_page_overlaps(struct pad_page *page, uint16_t start);
/* pad_page_showing - any page that shows @frame. */
struct pad_page *pad_page_showing(const struct pad_frame *frame);
/* pad_page_bytes - memory of all of them. */
size_t pad_page_bytes(void);
/* pad_pages_forget_foreign - those of others may have gone by now. */
void pad_pages_forget_foreign(void);

/* ---- pad_frame.c ---- */

/* pad_frame_is_free - does no page use the bytes of a pad at @start? */
bool pad_frame_is_free(const struct pad_frame *frame, uint16_t start);
/* pad_frame_settle - give @page a frame with room for its fresh pads too: its own, another
 * one, a new one. Locks: takes PLAT_TEXT.  Return: 0; -ENOMEM; -EBUSY, -EINVAL.
 */
int pad_frame_settle(struct pad_page *page);
/* pad_frame_release - @page no longer uses these bytes. */
void pad_frame_release(struct pad_frame *frame, uint16_t start);
/* pad_frame_leave - @page, without pads, is shown no longer. */
void pad_frame_leave(struct pad_page *page);
/* pad_frame_writable - where its bytes can be written. */
uintptr_t pad_frame_writable(struct pad_frame *frame);
/* pad_frame_put - no page shows it. */
void pad_frame_put(struct pad_frame *frame);
/* pad_frame_bytes - memory of all of them. */
size_t pad_frame_bytes(void);

/* ---- pad_write.c ---- */

/* pad_write - @bytes for one pad, unless all pages that show its frame are about to go.
 * @bulk: there are many more, and pad_write_end() behind the last.
 * Locks: PLAT_TEXT held.
 */
void pad_write(uintptr_t pad, const uint8_t bytes[PAD_LEN], bool bulk);
void pad_write_end(void);
/* pad_text_write - bytes of a frame, which must be writable.  Locks: PLAT_TEXT held. */
static inline void pad_text_write(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    if (plat_text_write(addr, bytes, len))
        plat_bug("a landing pad is not writable", addr);
}
