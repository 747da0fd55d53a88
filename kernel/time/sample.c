/* sample.c - lets the interrupt of a timer come as an NMI. */
#include "kernel/time/sample.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/ioapic.h"

#define TIMER_IRQ 0

static void (*tick)(unsigned hz); /* immutable after boot */
static unsigned rate;             /* changed by sample_set_hz() only */

INIT void sample_init(void (*fn)(unsigned hz))
{
    tick = fn;
}

int sample_set_hz(unsigned hz)
{
    int err;

    if (hz && (hz < SAMPLE_HZ_MIN || hz > SAMPLE_HZ_MAX))
        return -EINVAL;
    err = hz ? ioapic_route_nmi(TIMER_IRQ, IOAPIC_ALL_CPUS) : ioapic_mask(TIMER_IRQ);
    if (err)
        return err;
    tick(hz);
    WRITE_ONCE(rate, hz);
    return 0;
}

unsigned sample_hz(void)
{
    return READ_ONCE(rate);
}
