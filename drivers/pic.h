/* pic.h - the two 8259 interrupt controllers, which the I/O APIC replaces. */
#pragma once

/* pic_mask_all - give the controllers vectors that no exception has, and mask all inputs.
 * Context: boot, interrupts off.
 */
void pic_mask_all(void);
