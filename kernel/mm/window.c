/* window.c - allocates memory for loaded code. A frame of text is never writable anywhere
 * while it is executable: exec_map_at() and exec_unmap() ensure that, page by page.
 */
#include "kernel/mm/window.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/area.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#include <string.h>

#define INT3 0xcc

static struct area window;

INIT void window_init(void)
{
    area_init(&window, module_window_start(), MODULE_WINDOW_LEN / PAGE_SIZE);
}

static size_t window_pages(const struct window *w)
{
    size_t count = 1; /* the hole */

    for (unsigned i = 0; i < WINDOW_PARTS; i++)
        count += w->pages[i];
    return count;
}

/* window_empty - give back the addresses of @w. Then @w is empty: nothing is freed twice. */
static void window_empty(struct window *w)
{
    area_put(&window, w->start[WINDOW_TEXT], window_pages(w));
    *w = (struct window){ 0 };
}

static void data_free(const struct window *w)
{
    page_unmap_range(w->start[WINDOW_RODATA],
                     w->pages[WINDOW_RODATA] + w->pages[WINDOW_DATA], frame_free);
}

static int memory_get(struct window *w)
{
    size_t text = w->pages[WINDOW_TEXT];
    size_t data = w->pages[WINDOW_RODATA] + w->pages[WINDOW_DATA];

    w->text_phys = text ? frame_alloc_run(text) : 0;
    if (w->text_phys == FRAME_NONE)
        return -ENOMEM;
    if (area_fill(w->start[WINDOW_RODATA], data, PROT_W))
        return 0;
    if (text)
        frame_free_run(w->text_phys, text);
    return -ENOMEM;
}

int window_alloc(struct window *w, const size_t pages[WINDOW_PARTS])
{
    uintptr_t va;
    int err;

    *w = (struct window){ 0 };
    for (unsigned i = 0; i < WINDOW_PARTS; i++)
        w->pages[i] = pages[i];
    va = area_get(&window, window_pages(w));
    if (!va)
        return -ENOMEM;
    for (unsigned i = 0; i < WINDOW_PARTS; i++) {
        w->start[i] = va;
        va += w->pages[i] * PAGE_SIZE;
    }
    err = memory_get(w);
    if (err)
        window_empty(w);
    return err;
}

void *window_writable(const struct window *w, enum window_part part)
{
    if (part == WINDOW_TEXT)
        return phys_to_virt(w->text_phys);
    return (void *)w->start[part];
}

/* text_unmap - unmap the first @count pages of text. */
static void text_unmap(const struct window *w, size_t count)
{
    for (size_t i = 0; i < count; i++)
        exec_unmap(w->start[WINDOW_TEXT] + i * PAGE_SIZE);
}

int window_seal(struct window *w)
{
    for (size_t i = 0; i < w->pages[WINDOW_TEXT]; i++) {
        if (exec_map_at(w->start[WINDOW_TEXT] + i * PAGE_SIZE,
                        w->text_phys + i * PAGE_SIZE)) {
            text_unmap(w, i);
            return -ENOMEM;
        }
    }
    BUG_ON(page_protect_range(w->start[WINDOW_RODATA], w->pages[WINDOW_RODATA], PROT_R));
    w->sealed = true;
    return 0;
}

/* Text is filled with int3s before it is freed: so a CPU with a stale translation does
 * not execute the old code.
 */
void window_free(struct window *w)
{
    size_t text = w->pages[WINDOW_TEXT];

    if (w->sealed)
        text_unmap(w, text);
    if (text) {
        memset(phys_to_virt(w->text_phys), INT3, text * PAGE_SIZE);
        frame_free_run(w->text_phys, text);
    }
    data_free(w);
    window_empty(w);
}
