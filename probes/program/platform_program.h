/* platform_program.h - what programs need of the platform, beyond probes/core/platform.h. */
#pragma once

#include <stdint.h>

/* Numbers of 4 bytes, without a sign, that belong to the executing CPU. */
enum plat_fact {
    PLAT_FACT_CPU,
    PLAT_FACT_THREAD,
    PLAT_FACT_OWN, /* in KPROBE_OWN_BITS: the code that executes is the tracer's work */
};
/* plat_fact - the number @which.
 * plat_fact_disp - the displacement from GS to it. Context: any.
 */
uint32_t plat_fact(enum plat_fact which);
int32_t plat_fact_disp(enum plat_fact which);

/* plat_load - do as plat_read(). The handling of a fault is no part of what programs count.
 * Context: any, preemption off.
 */
int plat_load(uint64_t *out, uintptr_t addr);
