/* window.h - memory for loaded code, in the window that is in reach of kernel text: text,
 * data that is read, data that is written, one behind the other, with a hole behind them.
 *
 * It is filled while all of it can be written, and nothing of it executed. Then it is sealed:
 * text is executed and no more written, but by text_poke_alias_write().
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

/* window_init - Context: boot, with frames and paging ready. */
void window_init(void);

/* window_alloc - zeroed memory. @pages: of each part, 0 and up
 *
 * Context: thread.  Return: 0; -ENOMEM no memory, or no room in the window.
 */
int window_alloc(struct window *w, const size_t pages[WINDOW_PARTS]);

/* window_writable - where @part can be written until it is sealed. */
void *window_writable(const struct window *w, enum window_part part);

/* window_seal - text can be executed from here on, and rodata be read only.
 *
 * Context: thread, interrupts on.  Return: 0; -ENOMEM, and nothing has changed.
 */
int window_seal(struct window *w);

/* window_free - no CPU is in there or will be. Context: thread, interrupts on. */
void window_free(struct window *w);

/* window_contains - is @addr in the window, be it in use or not? Context: any. */
static inline bool window_contains(uintptr_t addr)
{
    return addr - module_window_start() < MODULE_WINDOW_LEN;
}
