/* pic.h - the two 8259 interrupt controllers, which the I/O APIC replaces. */
#pragma once

/* pic_mask_all - move their vectors out of the way of the exceptions and mask every input.
 *
 * Context: boot, interrupts off.
 */
void pic_mask_all(void);
