/* pad_parts.h - what the files of the landing pads share; private to pad*.c.
 *
 *   pad.c        reserves pads, fills them, takes them back
 *   pad_page.c   finds pages with pads by address, and knows which bytes each page uses
 *   pad_frame.c  frames: knows which bytes are used by any of the pages that show a frame
 *   pad_write.c  writes the bytes of pads
 *
 * A pad is one piece of a page or, if its end lies on the next page, two pieces.
 *
 * Locks of all: PLAT_PROBES held.
 */
#pragma once

#include "kernel/base/list.h"
#include "probes/core/platform.h"
#include "probes/jump/pad.h"

#define PAD_PAGE_LEN 4096u
#define PAD_FEW 8         /* pads of a page that struct pad_page itself has room for */
#define PAD_MANY 8        /* pages with this many pads or more are settled first */
#define PAD_BULK 32       /* with this many pads or more, whole frames are written */
#define PAD_USED_WORDS 65 /* one bit for each byte, and one word to read over the end */

struct pad_frame {
    struct list link;   /* in the list of open frames or of full ones */
    uint64_t id;        /* the name that the platform gave it */
    uintptr_t shown_at; /* a page that shows it; 0: none is known */
    unsigned pages;     /* pages that show it */
    unsigned leaving;   /* pages of these that are about to be unmapped */
    unsigned misses;    /* pages in a row that have found no room */
    uint64_t used[PAD_USED_WORDS];
    uint8_t *copy;           /* of its bytes, while many of them change; or NULL */
    struct pad_frame *dirty; /* the next frame with a copy */
};

struct pad_page {
    struct pad_page *next; /* in the same bucket */
    uintptr_t addr;
    struct pad_frame *frame;  /* NULL: not mapped, or in use for something else */
    struct pad_page *touched; /* the next page in the list of a reservation */
    union {                   /* where each pad begins: see pad_page_starts() */
        uint16_t few[PAD_FEW];
        uint16_t *many; /* memory of their own */
    };
    uint16_t count, room; /* pads, and how many there is room for */
    uint16_t fresh;       /* the last of these: of the reservation under way */
    bool is_touched : 1;  /* in the list of a reservation */
    bool is_settled : 1;  /* its frame has room for the fresh pads as well */
    bool is_leaving : 1;  /* has no pads; waits to be unmapped with other pages */
    bool is_foreign : 1;  /* its address is in use for something else */
};

_Static_assert(sizeof(struct pad_page) <= 56, "a page would not fit its block");

static inline uint16_t *pad_page_starts(struct pad_page *page)
{
    return page->room > PAD_FEW ? page->many : page->few;
}

/* The part of a pad that lies on one page. @start is the offset of the pad in the page,
 * plus 4: on the second page of a pad the offset is negative. pad_first() and pad_end()
 * are the offsets of the piece in the page.
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

/* pad_pieces - divide the pad at @pad into its pieces. Return: how many, 1 or 2. */
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

/* pad_page_find - the page at @addr; NULL: it is not known. pad_page_get - the same, but
 * make the page known; NULL: no memory. pad_page_forget - forget a page, which has no
 * pads and shows nothing.
 */
struct pad_page *pad_page_find(uintptr_t addr);
struct pad_page *pad_page_get(uintptr_t addr);
void pad_page_forget(struct pad_page *page);
/* pad_page_add - add a pad to @page. Return: false: no memory.
 * pad_page_remove - remove it.
 */
bool pad_page_add(struct pad_page *page, uint16_t start);
void pad_page_remove(struct pad_page *page, uint16_t start);
/* pad_page_overlaps - would a pad at @start overlap another pad of the same page? */
bool pad_page_overlaps(struct pad_page *page, uint16_t start);
/* pad_page_showing - any page that shows @frame. */
struct pad_page *pad_page_showing(const struct pad_frame *frame);
/* pad_page_bytes - the memory of all pages, in bytes. */
size_t pad_page_bytes(void);
/* pad_pages_forget_foreign - forget the pages whose addresses were in use for something
 * else: they may be free now.
 */
void pad_pages_forget_foreign(void);

/* ---- pad_frame.c ---- */

/* pad_frame_is_free - does no page that shows @frame use the bytes of a pad at @start? */
bool pad_frame_is_free(const struct pad_frame *frame, uint16_t start);
/* pad_frame_settle - let @page show a frame with room for its fresh pads as well: the
 * frame that it shows now, another one, or a new one. Locks: takes PLAT_TEXT.
 * Return: 0; -ENOMEM; -EBUSY, -EINVAL.
 */
int pad_frame_settle(struct pad_page *page);
/* pad_frame_release - a page no longer uses the bytes of its pad at @start. */
void pad_frame_release(struct pad_frame *frame, uint16_t start);
/* pad_frame_leave - @page, which has no pads, no longer shows its frame. */
void pad_frame_leave(struct pad_page *page);
/* pad_frame_writable - an address at which the bytes of @frame can be written. */
uintptr_t pad_frame_writable(struct pad_frame *frame);
/* pad_frame_put - free @frame, which no page shows. */
void pad_frame_put(struct pad_frame *frame);
/* pad_frame_bytes - the memory of all frames, in bytes. */
size_t pad_frame_bytes(void);

/* ---- pad_write.c ---- */

/* pad_write - write @bytes into the pad at @pad. It writes nothing if all pages that show
 * the frame are about to be unmapped.
 * @bulk: the caller writes many pads, and calls pad_write_end() after the last one
 * Locks: PLAT_TEXT held.
 */
void pad_write(uintptr_t pad, const uint8_t bytes[PAD_LEN], bool bulk);
void pad_write_end(void);
/* pad_text_write - write @len bytes of a frame; that they cannot be written is a bug.
 * Locks: PLAT_TEXT held.
 */
static inline void pad_text_write(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    if (plat_text_write(addr, bytes, len))
        plat_bug("a landing pad is not writable", addr);
}
