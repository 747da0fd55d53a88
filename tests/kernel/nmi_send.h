/* nmi_send.h - sends many NMIs to a CPU, each after the CPU has taken the one before. */
#pragma once

#include <stdint.h>

/* nmi_send_many - send @count NMIs to CPU @cpu. The handler of these NMIs changes
 * *@taken. More NMIs may come, from a CPU that looks for handlers that take long. After five
 * minutes the function gives up; the caller sees that from *@taken.
 * Context: thread, interrupts on.
 */
void nmi_send_many(unsigned cpu, uint64_t count, const volatile uint64_t *taken);
