/* port_fake_pads.c - port_fake's landing pads. The address of a page is only a number
 * here, and a frame is a block of the host's memory. So pads can be read and written
 * through plat_text_read() and plat_text_write() only.
 */
#include "kernel/base/store.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#define PAGE_LEN 4096u
#define REACH (UINT64_C(0x7c000000)) /* of a jmp32, less the room for text and copies */
#define PAGES_MAX 16384u
#define FRAMES_MAX 1024u

/* A hash table of pages by address, with open addressing. A page that is unmapped keeps
 * its place, with id 0.
 */
static struct {
    uintptr_t page;
    uint64_t id; /* frame + 1 */
    bool is_foreign;
} pages[PAGES_MAX];

static uint8_t *frames[FRAMES_MAX];

static size_t slot_of(uintptr_t page)
{
    size_t i = (page / PAGE_LEN * 2654435761u) % PAGES_MAX;

    while (pages[i].page && pages[i].page != page)
        i = (i + 1) % PAGES_MAX;
    return i;
}

static uint8_t *find(uintptr_t addr, size_t len)
{
    size_t i = slot_of(addr & ~(uintptr_t)(PAGE_LEN - 1));

    if (!pages[i].id || addr % PAGE_LEN + len > PAGE_LEN)
        return NULL;
    return frames[pages[i].id - 1] + addr % PAGE_LEN;
}

bool fake_pads_read(void *dst, uintptr_t addr, size_t len)
{
    size_t first = PAGE_LEN - addr % PAGE_LEN;
    uint8_t *from;

    if (len > first)
        return fake_pads_read(dst, addr, first) &&
               fake_pads_read((uint8_t *)dst + first, addr + first, len - first);
    from = find(addr, len);
    if (from)
        memcpy(dst, from, len);
    return from != NULL;
}

bool fake_pads_write(uintptr_t addr, const void *bytes, size_t len)
{
    uint8_t *to = find(addr, len);

    if (to)
        store_bytes(to, bytes, len);
    return to != NULL;
}

void fake_pads_start(void)
{
    memset(pages, 0, sizeof(pages));
}

void fake_pad_foreign(uintptr_t page, bool is_foreign)
{
    size_t i = slot_of(page);

    pages[i].page = page;
    pages[i].is_foreign = is_foreign;
}

uint64_t fake_pad_frame(uintptr_t page)
{
    return pages[slot_of(page)].id;
}

/* ---- platform.h ---- */

void plat_pad_range(struct plat_pad_range *out)
{
    uintptr_t start, end;

    fake_extent(&start, &end);
    *out = (struct plat_pad_range){
        .start = start - REACH,
        .end = start + REACH,
        .hole_start = start,
        .hole_end = end,
    };
}

int plat_pad_frame_new(uint64_t *id, const uint8_t *content)
{
    size_t i = 0;

    if (fake_must_fail())
        return -ENOMEM;
    while (frames[i])
        i++;
    frames[i] = malloc(PAGE_LEN);
    memcpy(frames[i], content, PAGE_LEN);
    *id = i + 1;
    fake.pad_frames++;
    return 0;
}

void plat_pad_frame_free(uint64_t id)
{
    for (size_t i = 0; i < PAGES_MAX; i++) {
        if (pages[i].id == id)
            fake_breach(__func__, "a page still shows it");
    }
    free(frames[id - 1]);
    frames[id - 1] = NULL;
    fake.pad_frames--;
}

int plat_pad_page_show(uintptr_t page, uint64_t old, uint64_t id)
{
    size_t i = slot_of(page);

    if (page % PAGE_LEN || !frames[id - 1])
        fake_breach(__func__, "no such page, or no such frame");
    if (pages[i].is_foreign)
        return -EBUSY;
    if (pages[i].id != old)
        fake_breach(__func__, "shows another frame");
    if (fake_must_fail())
        return -ENOMEM;
    pages[i].page = page;
    pages[i].id = id;
    fake.pad_pages += !old;
    return 0;
}

void plat_pad_pages_unmap(const uintptr_t *addrs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t slot = slot_of(addrs[i]);

        if (!pages[slot].id)
            fake_breach(__func__, "is not mapped");
        pages[slot].id = 0;
        fake.pad_pages--;
    }
}
