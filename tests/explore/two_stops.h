/* two_stops.h - what gdb_stop.c needs of the kernel, for scenarios with two CPUs. */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/gdb/gdb_stop.h"
#include "tests/explore/machine.h"

extern uint64_t two_stops_late;      /* ns that pass at each look at the clock; 0 */
extern bool (*two_stops_poll)(void); /* does the debugger ask for a stop? NULL: never */

#define TWO_STOPS_DETOUR UINT64_C(0xffffffffffff0000) /* code from here on is a detour */

/* two_stops_nmi - an NMI that smp_send_nmi() has sent to this CPU, which executed code with
 * the image @regs. two_stops_sent_0, two_stops_sent_1 - has one been sent?
 */
void two_stops_nmi(struct pt_regs *regs);
void two_stops_again(void);
bool two_stops_sent_0(void);
bool two_stops_sent_1(void);
