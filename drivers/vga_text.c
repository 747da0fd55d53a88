/* vga_text.c - the text screen of the VGA: characters are written to its memory.
 *
 * This memory is slow, so scrolling moves no text. The CRT controller gets another start
 * address, one line later. At the end of the memory the last screen is copied to its
 * beginning: once in 180 lines.
 *
 * Source: IBM VGA registers as described in FreeVGA, "VGA/SVGA Video Programming".
 */
#include "drivers/vga_text.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/mm/vmap.h"
#include "kernel/sync/spinlock.h"

#include <stdbool.h>
#include <string.h>

#define MEMORY_PHYS 0xb8000
#define MEMORY_LEN (32 * KiB)
#define COLUMNS 80u
#define ROWS 25u
#define MEMORY_ROWS (MEMORY_LEN / 2 / COLUMNS)
#define BLANK 0x0720 /* light grey on black, a space */
#define ATTRIBUTE 0x0700
#define TAB_STOPS 8u

#define MISC_READ 0x3cc
#define NO_DEVICE 0xff
#define GRAPHICS_INDEX 0x3ce
#define GRAPHICS_DATA 0x3cf
#define GRAPHICS_MISC 6
#define GRAPHICS_MISC_MODE 0x0d /* memory map and "not text" */
#define GRAPHICS_MISC_TEXT 0x0c /* B8000, text */

#define CRTC_INDEX 0x3d4
#define CRTC_DATA 0x3d5
#define CRTC_START 0x0c /* high byte; the low byte is in the next register */
#define CRTC_CURSOR 0x0e

enum escape { ESCAPE_NO, ESCAPE_SEEN, ESCAPE_SEQUENCE };

/* Locks: all fields under lock, except in vga_text_write_panic() */
static struct {
    struct spinlock lock;
    volatile uint16_t *memory; /* NULL: no screen */
    unsigned top;              /* row of the memory that is the first row of the screen */
    unsigned row, column;      /* of the cursor, on the screen */
    enum escape escape;
} vga = { .lock = SPINLOCK_INIT };

static void crtc_write(uint8_t index, unsigned value)
{
    outb(CRTC_INDEX, index);
    outb(CRTC_DATA, (uint8_t)(value >> 8));
    outb(CRTC_INDEX, (uint8_t)(index + 1));
    outb(CRTC_DATA, (uint8_t)value);
}

static volatile uint16_t *row_cells(unsigned row)
{
    return vga.memory + (vga.top + row) * COLUMNS;
}

static void row_clear(unsigned row)
{
    volatile uint16_t *cells = row_cells(row);

    for (unsigned i = 0; i < COLUMNS; i++)
        cells[i] = BLANK;
}

/* Copy the screen without its first row to the start of the memory. */
static void memory_rewind(void)
{
    volatile uint16_t *from = row_cells(1);

    for (unsigned i = 0; i < (ROWS - 1) * COLUMNS; i++)
        vga.memory[i] = from[i];
    vga.top = 0;
}

static void vga_line_feed(void)
{
    if (vga.row + 1 < ROWS) {
        vga.row++;
        return;
    }
    if (vga.top + ROWS < MEMORY_ROWS)
        vga.top++;
    else
        memory_rewind();
    row_clear(ROWS - 1);
    crtc_write(CRTC_START, vga.top * COLUMNS);
}

static void char_show(char c)
{
    if (vga.column == COLUMNS) {
        vga.column = 0;
        vga_line_feed();
    }
    row_cells(vga.row)[vga.column++] = (uint16_t)(ATTRIBUTE | (uint8_t)c);
}

/* An escape sequence ends at its first letter. Return: is @c part of an escape sequence? */
static bool escape_step(char c)
{
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

    switch (vga.escape) {
    case ESCAPE_NO:
        if (c != '\033')
            return false;
        vga.escape = ESCAPE_SEEN;
        return true;
    case ESCAPE_SEEN:
        vga.escape = c == '[' ? ESCAPE_SEQUENCE : ESCAPE_NO;
        return true;
    default:
        if (letter)
            vga.escape = ESCAPE_NO;
        return true;
    }
}

static void char_write(char c)
{
    if (escape_step(c))
        return;
    switch (c) {
    case '\n':
        vga.column = 0;
        vga_line_feed();
        return;
    case '\r':
        vga.column = 0;
        return;
    case '\b':
        if (vga.column)
            vga.column--;
        return;
    case '\t':
        do
            char_show(' ');
        while (vga.column % TAB_STOPS);
        return;
    default:
        if ((uint8_t)c >= ' ')
            char_show(c);
    }
}

void vga_text_write_panic(const char *text, size_t len)
{
    if (!vga.memory)
        return;
    for (size_t i = 0; i < len; i++)
        char_write(text[i]);
    crtc_write(CRTC_CURSOR, (vga.top + vga.row) * COLUMNS + vga.column);
}

void vga_text_write(const char *text, size_t len)
{
    unsigned long flags;

    if (!vga.memory)
        return;
    spin_lock_irqsave(&vga.lock, &flags);
    vga_text_write_panic(text, len);
    spin_unlock_irqrestore(&vga.lock, flags);
}

static bool is_text_mode(void)
{
    if (inb(MISC_READ) == NO_DEVICE)
        return false;
    outb(GRAPHICS_INDEX, GRAPHICS_MISC);
    return (inb(GRAPHICS_DATA) & GRAPHICS_MISC_MODE) == GRAPHICS_MISC_TEXT;
}

INIT int vga_text_init(void)
{
    if (!is_text_mode())
        return -ENODEV;
    vga.memory = vmap_device(MEMORY_PHYS, MEMORY_LEN);
    if (!vga.memory)
        return -ENODEV;
    for (unsigned row = 0; row < ROWS; row++)
        row_clear(row);
    crtc_write(CRTC_START, 0);
    crtc_write(CRTC_CURSOR, 0);
    return 0;
}
