/* pic.c - mask the two 8259s. Even if all inputs are masked, they can raise a spurious
 * interrupt. With the vectors that the BIOS has set, this would be vector 15, which is
 * reserved for exceptions. So they get other vectors first. Runs once, at boot.
 *
 * Source: Intel 8259A data sheet, "Initialization Command Words".
 */
#include "drivers/pic.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#define PIC1 0x20
#define PIC2 0xa0
#define DATA 1 /* the data port is the command port + 1 */
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
