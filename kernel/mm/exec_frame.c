/* exec_frame.c - counts, for each frame, the executable pages that show it.
 *
 * Hundreds of landing pages may show one frame. It becomes writable in the direct map
 * when the last of them is unmapped: so it needs a count. The counts are in a hash table
 * by frame number, which the exec lock guards.
 */
#include "kernel/mm/exec_frame.h"

#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/paging_ops.h"

#define BUCKETS 1024u

struct exec_frame {
    struct exec_frame *next;
    uint64_t phys;
    size_t pages; /* how many pages of exec_map_at() show it */
};

static struct exec_frame *buckets[BUCKETS];
static size_t frame_count;

/* Finds the link to the entry of @phys, or the NULL at the end of its chain. */
static struct exec_frame **exec_frame_find(uint64_t phys)
{
    struct exec_frame **link = &buckets[phys / PAGE_SIZE % BUCKETS];

    while (*link && (*link)->phys != phys)
        link = &(*link)->next;
    return link;
}

static int direct_map_hide(uint64_t phys)
{
    int err = direct_map_protect(phys, 1, PROT_R);

    if (!err)
        paging_flush((uintptr_t)phys_to_virt(phys), 1);
    return err == -ENOENT ? -EINVAL : err;
}

static int exec_frame_add(struct exec_frame **link, uint64_t phys)
{
    struct exec_frame *frame = kmalloc(sizeof(*frame));
    int err;

    if (!frame)
        return -ENOMEM;
    err = direct_map_hide(phys);
    if (err) {
        kfree(frame);
        return err;
    }
    *frame = (struct exec_frame){ .phys = phys, .pages = 1 };
    *link = frame;
    frame_count++;
    return 0;
}

int exec_frame_get(uint64_t phys)
{
    struct exec_frame **link = exec_frame_find(phys);

    if (!*link)
        return exec_frame_add(link, phys);
    (*link)->pages++;
    return 0;
}

void exec_frame_put(uint64_t phys)
{
    struct exec_frame **link = exec_frame_find(phys);
    struct exec_frame *frame = *link;

    BUG_ON(!frame);
    if (--frame->pages > 0)
        return;
    *link = frame->next;
    kfree(frame);
    frame_count--;
    BUG_ON(direct_map_protect(phys, 1, PROT_W));
}

size_t exec_frame_count(void)
{
    return frame_count;
}
