/* nmi_send.h - many NMIs to a CPU, each when the one before has been taken. */
#pragma once

#include <stdint.h>

/* nmi_send_many - @count NMIs to CPU @cpu, whose handler changes *@taken.
 * Gives up after minutes; what *@taken is then tells. Context: thread, interrupts on.
 */
void nmi_send_many(unsigned cpu, uint64_t count, const volatile uint64_t *taken);
