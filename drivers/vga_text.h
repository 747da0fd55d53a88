/* vga_text.h - the PC's text screen of 80 x 25 characters: it shows the console's output. */
#pragma once

#include <stddef.h>

/* vga_text_init - map the memory of the screen and clear it, if it is in text mode.
 * Context: boot, after paging_init().
 * Return:  0; -ENODEV there is no VGA, it is in a graphics mode, as under UEFI, or its memory
 *          cannot be mapped.
 */
int vga_text_init(void);

/* vga_text_write - show @len bytes of text. CR, BS and TAB move the cursor, LF begins a new
 * line, and escape sequences are left out. Without a screen nothing happens.
 * Context: boot or thread or irq, interrupts on or off.  Locks: takes the screen's lock.
 */
void vga_text_write(const char *text, size_t len);

/* vga_text_write_panic - show text as vga_text_write() does, without the lock.
 * Context: any.  Locks: none.
 */
void vga_text_write_panic(const char *text, size_t len);
