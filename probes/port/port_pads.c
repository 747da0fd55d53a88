/* port_pads.c - the part of platform_jump.h about landing pads: maps their pages. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "probes/jump/platform_jump.h"

#include <string.h>

void plat_pad_range(struct plat_pad_range *out)
{
    *out = (struct plat_pad_range){
        .start = REACH_START,
        .end = ARENA_LOW_START + 2 * GiB, /* from there .hole_start is out of reach */
        .hole_start = ARENA_LOW_START,
        .hole_end = arena_high_start() + ARENA_LEN,
    };
}
NOKPROBE(plat_pad_range);

/* The id of a frame is its address. It is not 0: frame_alloc() never returns frame 0. */
int plat_pad_frame_new(uint64_t *id, const uint8_t *content)
{
    uint64_t phys = frame_alloc();

    if (phys == FRAME_NONE)
        return -ENOMEM;
    memcpy(phys_to_virt(phys), content, PAGE_SIZE);
    *id = phys;
    return 0;
}

void plat_pad_frame_free(uint64_t id)
{
    frame_free(id);
}

int plat_pad_page_show(uintptr_t page, uint64_t old, uint64_t id)
{
    return old ? exec_remap(page, id) : exec_map_at(page, id);
}

void plat_pad_pages_unmap(const uintptr_t *pages, size_t count)
{
    exec_unmap_all(pages, count);
}
