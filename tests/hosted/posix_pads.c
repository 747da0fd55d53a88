/* posix_pads.c - implements the landing pads in a process. A page of pads is a mapping,
 * at the chosen address, of a page of one piece of memory. All of this memory is mapped a
 * second time, where it can be written.
 */
#define _GNU_SOURCE
#include "tests/hosted/posix_parts.h"

#include "kernel/base/err.h"
#include "probes/jump/platform_jump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_LEN ((size_t)4096)
#define FRAMES_MAX ((size_t)4096)
#define RANGE_START ((uintptr_t)64 << 10) /* Linux maps nothing below it */
#ifdef POSIX_ASAN
#define RANGE_END ((uintptr_t)0x7fff0000) /* ASan's shadow memory begins there */
#else
#define RANGE_END ((uintptr_t)4 << 30)
#endif
#define REACH (((uintptr_t)2 << 30) - PAGE_LEN) /* of a jump */
#define PAGES_MAX (RANGE_END / PAGE_LEN)

static int fd = -1;
static uint8_t *alias; /* all frames, writable */
static uint8_t frame_used[FRAMES_MAX];
static uint16_t shown[PAGES_MAX]; /* by page: frame + 1, or 0 */
static _Atomic size_t used;       /* frames and pages */

static void frames_init(void)
{
    fd = memfd_create("pads", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)(FRAMES_MAX * PAGE_LEN)))
        abort();
    alias = mmap(NULL, FRAMES_MAX * PAGE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (alias == MAP_FAILED)
        abort();
}

/* plat_pad_range - the program is linked so that nothing else is in reach of its jumps;
 * see hosted.ld.
 */
void plat_pad_range(struct plat_pad_range *out)
{
    uintptr_t start, text, end;

    text_extent(&start, &text, &end);
    *out = (struct plat_pad_range){
        .start = end > RANGE_START + REACH ? end - REACH : RANGE_START,
        .end = text + REACH < RANGE_END ? text + REACH : RANGE_END,
        .hole_start = start,
        .hole_end = end,
    };
}

int plat_pad_frame_new(uint64_t *id, const uint8_t *content)
{
    size_t i = 0;

    if (fd < 0)
        frames_init();
    while (i < FRAMES_MAX && frame_used[i])
        i++;
    if (i == FRAMES_MAX)
        return -ENOMEM;
    frame_used[i] = 1;
    used++;
    memcpy(alias + i * PAGE_LEN, content, PAGE_LEN);
    *id = i + 1;
    return 0;
}

void plat_pad_frame_free(uint64_t id)
{
    frame_used[id - 1] = 0;
    used--;
}

int plat_pad_page_show(uintptr_t page, uint64_t old, uint64_t id)
{
    off_t off = (off_t)((id - 1) * PAGE_LEN);
    int how = old ? MAP_FIXED : MAP_FIXED_NOREPLACE;

    if (mmap((void *)page, PAGE_LEN, PROT_READ | PROT_EXEC, MAP_SHARED | how, fd, off) ==
        MAP_FAILED)
        return errno == EEXIST ? -EBUSY : -ENOMEM;
    shown[page / PAGE_LEN] = (uint16_t)id;
    used += !old;
    return 0;
}

void plat_pad_pages_unmap(const uintptr_t *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        munmap((void *)pages[i], PAGE_LEN);
        shown[pages[i] / PAGE_LEN] = 0;
    }
    used -= count;
}

size_t pads_used(void)
{
    return used;
}

bool pads_contains(uintptr_t addr)
{
    return addr / PAGE_LEN < PAGES_MAX && shown[addr / PAGE_LEN];
}
NOKPROBE(pads_contains);

uint8_t *pads_alias(uintptr_t addr, size_t len)
{
    uintptr_t page = addr / PAGE_LEN;

    if (page >= PAGES_MAX || !shown[page] || addr % PAGE_LEN + len > PAGE_LEN)
        return NULL;
    return alias + (shown[page] - 1u) * PAGE_LEN + addr % PAGE_LEN;
}
