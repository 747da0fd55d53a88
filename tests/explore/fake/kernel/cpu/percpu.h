/* percpu.h - for the explorer: the area of a CPU is that of the CPU of the running actor. */
#pragma once

#include "tests/explore/machine.h"

#define this_cpu(...) real_this_cpu(__VA_ARGS__)
#define cpu_id(...) real_cpu_id(__VA_ARGS__)
#define cpu_context(...) real_cpu_context(__VA_ARGS__)
#define percpu_current(...) real_percpu_current(__VA_ARGS__)
#define preempt_count(...) real_preempt_count(__VA_ARGS__)
#define hit_is_active(...) real_hit_is_active(__VA_ARGS__)
#define preempt_is_off(...) real_preempt_is_off(__VA_ARGS__)
#define preempt_disable(...) real_preempt_disable(__VA_ARGS__)
#define preempt_enable_no_resched(...) real_preempt_enable_no_resched(__VA_ARGS__)
#include_next "kernel/cpu/percpu.h"
#undef this_cpu
#undef cpu_id
#undef cpu_context
#undef percpu_current
#undef preempt_count
#undef hit_is_active
#undef preempt_is_off
#undef preempt_disable
#undef preempt_enable_no_resched

static inline struct percpu *this_cpu(void)
{
    return percpu_of(explore_cpu());
}

static inline unsigned cpu_id(void)
{
    return explore_cpu();
}

static inline enum cpu_context cpu_context(void)
{
    return explore_level() == EXPLORE_NMI   ? CTX_NMI
           : explore_level() == EXPLORE_IRQ ? CTX_IRQ
                                            : CTX_THREAD;
}

static inline struct thread *percpu_current(void)
{
    return this_cpu()->current;
}

static inline int preempt_count(void)
{
    return (int)machine_self()->inside;
}

static inline bool hit_is_active(void)
{
    return machine_self()->inside;
}

static inline bool preempt_is_off(void)
{
    return preempt_count();
}

static inline void preempt_disable(void)
{
    machine_enter();
}

static inline void preempt_enable_no_resched(void)
{
    machine_leave();
}
