/* pic.c - silence the 8259s. Even masked they can raise a spurious interrupt, which at
 * reset is vector 15; so they are given vectors of their own first.
 *
 * Source: Intel 8259A data sheet, "Initialization Command Words".
 */
#include "drivers/pic.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#define PIC1 0x20
#define PIC2 0xa0
#define DATA 1 /* port of commands + 1 */
#define ICW1_INIT_ICW4 0x11
#define ICW4_8086 0x01
#define MASK_ALL 0xff
#define PIC1_VECTOR 0x20
#define PIC2_VECTOR 0x28
#define PIC2_AT_INPUT 2

static INIT void pic_init(uint16_t port, uint8_t vector, uint8_t cascade)
{
    outb(port, ICW1_INIT_ICW4);
    outb(port + DATA, vector);
    outb(port + DATA, cascade);
    outb(port + DATA, ICW4_8086);
    outb(port + DATA, MASK_ALL);
}

INIT void pic_mask_all(void)
{
    pic_init(PIC1, PIC1_VECTOR, 1 << PIC2_AT_INPUT);
    pic_init(PIC2, PIC2_VECTOR, PIC2_AT_INPUT);
}
