/* pit.c - one wait on channel 2, whose gate and output software can reach.
 *
 * Source: Intel 8254 data sheet, "Mode 0: interrupt on terminal count".
 */
#include "drivers/pit.h"

#include "kernel/cpu/instr.h"

#define PIT_HZ UINT64_C(1193182)
#define CHANNEL2 0x42
#define COMMAND 0x43
#define CHANNEL2_LOHI_MODE0 0xb0

#define PORT_B 0x61 /* the PC's system control port */
#define PORT_B_GATE2 (1 << 0)
#define PORT_B_SPEAKER (1 << 1)
#define PORT_B_OUT2 (1 << 5)

uint64_t pit_wait_us(unsigned us)
{
    uint16_t ticks = (uint16_t)(us * PIT_HZ / 1000000);
    uint8_t port_b = inb(PORT_B) & (uint8_t) ~(PORT_B_GATE2 | PORT_B_SPEAKER);
    uint64_t start;

    outb(PORT_B, port_b | PORT_B_GATE2);
    outb(COMMAND, CHANNEL2_LOHI_MODE0); /* the output goes low */
    outb(CHANNEL2, (uint8_t)ticks);
    outb(CHANNEL2, (uint8_t)(ticks >> 8)); /* counting starts */
    start = rdtsc();
    while (!(inb(PORT_B) & PORT_B_OUT2))
        pause();
    start = rdtsc() - start;
    outb(PORT_B, port_b);
    return start;
}
