/* window.h - allocates memory for loaded code, in the module window, which is in reach of
 * kernel text: text, read-only data, data, one behind the other, with a hole behind them.
 *
 * The caller fills the memory while all of it is writable, and none of it executable.
 * Then the caller seals it: text becomes executable, and only text_poke_alias_write() can
 * write it.
 */
#pragma once

#include "kernel/memmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum window_part { WINDOW_TEXT, WINDOW_RODATA, WINDOW_DATA, WINDOW_PARTS };

struct window {
    uintptr_t start[WINDOW_PARTS]; /* where each part is used, page aligned */
    size_t pages[WINDOW_PARTS];
    uint64_t text_phys; /* one piece */
    bool sealed;
};

/* window_init - Context: boot, after frame_init() and paging_init(). */
void window_init(void);

/* window_alloc - allocate zeroed memory. @pages: of each part, 0 and up
 * Context: thread.  Return: 0; -ENOMEM no memory, or no room in the window.
 */
int window_alloc(struct window *w, const size_t pages[WINDOW_PARTS]);

/* window_writable - get the address at which @part can be written until @w is sealed. */
void *window_writable(const struct window *w, enum window_part part);

/* window_seal - make text executable, and rodata read-only.
 * Context: thread, interrupts on.  Return: 0; -ENOMEM, and nothing has changed.
 */
int window_seal(struct window *w);

/* window_free - free @w. No CPU may be in it, or come into it.
 * Context: thread, interrupts on.
 */
void window_free(struct window *w);

/* window_contains - is @addr in the module window, in use or not? Context: any. */
static inline bool window_contains(uintptr_t addr)
{
    return addr - module_window_start() < MODULE_WINDOW_LEN;
}
