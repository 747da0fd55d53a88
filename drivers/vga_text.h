/* vga_text.h - the PC's 80 x 25 text screen, as a mirror of the console. */
#pragma once

#include <stddef.h>

/* vga_text_init - clear the screen, if there is one in text mode.
 *
 * Context: boot, after paging_init().
 * Return:  0; -ENODEV no VGA, or in a graphics mode, as under UEFI.
 */
int vga_text_init(void);

/* vga_text_write - show text; CR, LF, BS and TAB do what they say, escape sequences are
 * left out. Nothing happens without a screen.
 *
 * Context: thread or irq.  Locks: takes the screen's spinlock.
 */
void vga_text_write(const char *text, size_t len);

/* vga_text_write_panic - the same without the lock. Context: any. */
void vga_text_write_panic(const char *text, size_t len);
