/* nmi_send.h - sends many NMIs to a CPU, each after the CPU has taken the one before. */
#pragma once

#include "kernel/cpu/trap.h"

#include <stdint.h>

/* nmi_take - call @fn at each NMI, in place of the function of the test before. NMIs of
 * other code come, too. Context: thread.
 */
void nmi_take(trap_handler_t fn);

/* nmi_send_many - send @count NMIs to CPU @cpu. The handler of these NMIs changes
 * *@taken. After five minutes the function gives up; the caller sees that from *@taken.
 * Context: thread, interrupts on.
 */
void nmi_send_many(unsigned cpu, uint64_t count, const volatile uint64_t *taken);
