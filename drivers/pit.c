/* pit.c - waits at boot, by reading the count of channel 2 again and again: software can
 * start and stop this channel by its gate. Channel 0 interrupts.
 *
 * Source: Intel 8254 data sheet, "Mode 0: interrupt on terminal count", "Mode 2: rate
 * generator", "Counter Latch Command".
 */
#include "drivers/pit.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/debug/panic.h"

#include <stdbool.h>

#define PIT_HZ UINT64_C(1193182)
#define CHANNEL0 0x40
#define CHANNEL2 0x42
#define COMMAND 0x43
#define CHANNEL0_LOHI_MODE0 0x30 /* it counts once, and then not before it is told to */
#define CHANNEL0_LOHI_MODE2 0x34
#define CHANNEL2_LOHI_MODE0 0xb0
#define CHANNEL2_LATCH 0x80
#define COUNT_START 0xffff /* 55 ms */

#define PORT_B 0x61 /* the PC's system control port */
#define PORT_B_GATE2 (1 << 0)
#define PORT_B_SPEAKER (1 << 1)
#define PORT_B_OUT2 (1 << 5) /* high when the count has reached 0 */

#define READINGS 8
#define ATTEMPTS 8
#define STANDSTILL_CYCLES (UINT64_C(1) << 33) /* some seconds: the PIT has stopped */

/* The PIT's count, and the TSC before and after it was latched. */
struct pit_reading {
    uint16_t count;
    uint64_t before, after;
};

static INIT void count_start(uint8_t port_b)
{
    outb(PORT_B, port_b | PORT_B_GATE2);
    outb(COMMAND, CHANNEL2_LOHI_MODE0);
    outb(CHANNEL2, COUNT_START & 0xff);
    outb(CHANNEL2, COUNT_START >> 8);
}

static INIT uint16_t count_read(void)
{
    uint8_t low = inb(CHANNEL2);

    return (uint16_t)(inb(CHANNEL2) << 8 | low);
}

static INIT struct pit_reading reading_take(void)
{
    struct pit_reading r;

    r.before = rdtsc();
    outb(COMMAND, CHANNEL2_LATCH);
    r.after = rdtsc();
    r.count = count_read();
    return r;
}

/* Take several readings, and return the reading that took the least time. A reading takes
 * longer if the host interrupts the CPU meanwhile.
 */
static INIT struct pit_reading reading_take_best(void)
{
    struct pit_reading best = reading_take();

    for (unsigned i = 1; i < READINGS; i++) {
        struct pit_reading r = reading_take();

        if (r.after - r.before < best.after - best.before)
            best = r;
    }
    return best;
}

/* pit_measure - wait for @us microseconds, and measure them in cycles of the TSC.
 * Return: false: the count came to 0 before the end, or does not change; *cycles has no
 * meaning.
 */
static INIT bool pit_measure(unsigned us, uint64_t *cycles)
{
    int ticks = (int)(us * PIT_HZ / 1000000);
    struct pit_reading start = reading_take_best();
    struct pit_reading end = start;

    while (start.count >= end.count && start.count - end.count < ticks) {
        pause();
        end = reading_take();
        if (end.after - start.before > STANDSTILL_CYCLES)
            return false;
    }
    end = reading_take_best();
    if ((inb(PORT_B) & PORT_B_OUT2) || end.count >= start.count)
        return false;
    /* Cycles in @us ticks of the PIT, and then in @us microseconds. */
    *cycles = (end.after - start.before) * us / (uint64_t)(start.count - end.count);
    *cycles = *cycles * PIT_HZ / 1000000;
    return true;
}

INIT uint64_t pit_wait_us(unsigned us)
{
    uint8_t port_b = inb(PORT_B) & (uint8_t) ~(PORT_B_GATE2 | PORT_B_SPEAKER);
    uint64_t cycles;

    for (unsigned i = 0; i < ATTEMPTS; i++) {
        count_start(port_b);
        if (pit_measure(us, &cycles)) {
            outb(PORT_B, port_b);
            return cycles;
        }
    }
    panic("pit: the timer does not count");
}

void pit_tick(unsigned hz)
{
    unsigned count = hz ? (unsigned)(PIT_HZ / hz) : 1;

    outb(COMMAND, hz ? CHANNEL0_LOHI_MODE2 : CHANNEL0_LOHI_MODE0);
    outb(CHANNEL0, count & 0xff);
    outb(CHANNEL0, (uint8_t)(count >> 8));
}
