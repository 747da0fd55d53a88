/* quiesce.pml - models kernel/sync/quiesce.c. A caller has closed all ways into a piece
 * of code, and calls quiesce(). When quiesce() returns, no thread is inside this code.
 *
 * There are more threads than CPUs, and the scheduler moves threads at any time: whenever
 * quiesce() looks at a thread, it may be on another CPU, or on no CPU. An NMI or
 * interrupt belongs to a CPU, not to a thread.
 */
#ifndef THREADS
#define THREADS (CPUS + 1)
#endif

#define ALL_CPUS ((1 << CPUS) - 1)

#define SET(mask, i)   mask = mask | (1 << (i))
#define CLEAR(mask, i) mask = mask & (255 - (1 << (i)))
#define HAS(mask, i)   (((mask) >> (i)) & 1)

/* The place of a thread. */
#define OUTSIDE 0
#define INSIDE  1 /* in the copy, on the pad or in the detour */
#define HANDLER 2 /* in a handler, called from inside, preemption off; ip is anywhere */
#define TRAP    3 /* in the trap of a hit, interrupts off; the thread goes on inside */
#define CALLEE  4 /* in a function that code inside calls with preemption on */

#ifdef CALLEE_NOT_COVERED
#define IS_OUTSIDE_AT(t) (at[t] == OUTSIDE || at[t] == CALLEE)
#else
#define IS_OUTSIDE_AT(t) (at[t] == OUTSIDE) /* judged by the ip, with preemption on */
#endif

#define VOLUNTARY 0 /* enum thread_switch */
#define IRQ       1
#define PREEMPT   2

#define NONE 7 /* no CPU, or no thread */

byte at[THREADS];
byte cpu[THREADS];     /* NONE: the thread is off its CPU */
byte left_by[THREADS]; /* while it is off its CPU: how it has left it */
bool seen[THREADS];    /* quiesce_seen has the epoch of this call */
bool passed[THREADS];  /* quiesce_hit has it: the thread has come to the end of a hit */
bool ended[THREADS];   /* the hit for which the thread is inside has ended */
byte current[CPUS];    /* NONE: the CPU is idle */
byte on_top = 0;       /* bit of a CPU: an interrupt or NMI on it is inside */
byte waiting = 0;      /* bit of a CPU: it has not taken the IPI yet */
bool closed = false;   /* all ways in are closed */

hidden byte no_cpu_is_inside;
#define HOLDS(fact, what) fact = (what); assert(fact)

#define RUNS(t)       (cpu[t] != NONE && !HAS(on_top, cpu[t]))
#define TAKES_IPI(c)  (!HAS(on_top, c) && (current[c] == NONE || at[current[c]] != TRAP))
#define PREEMPTIBLE(t) (at[t] != HANDLER && at[t] != TRAP)

inline leave(t, how)
{
    printf("thread %d, at %d, leaves CPU %d by %d\n", t, at[t], cpu[t], how);
    current[cpu[t]] = NONE;
    cpu[t] = NONE;
    left_by[t] = how
}

inline arrive(t, c)
{
    printf("thread %d, at %d, comes to CPU %d\n", t, at[t], c);
    current[c] = t;
    cpu[t] = c
}

inline go(t, place)
{
    printf("thread %d goes from %d to %d\n", t, at[t], place);
    at[t] = place
}

/* quiesce_hit_ends, of a hit that goes on in a copy */
inline pass(t)
{
    printf("thread %d, at %d, comes to the end of a hit\n", t, at[t]);
#ifdef ONE_END_IS_ENOUGH
    seen[t] = seen[t] || closed;
#else
    seen[t] = seen[t] || (closed && passed[t]);
#endif
    passed[t] = closed
}

/* the end of a #DB in a copy */
inline pass_db(t)
{
#ifdef DB_COUNTS
    pass(t)
#else
    skip
#endif
}

#ifdef END_PASSED_TWICE
#define HAS_ENDED(t) false
#else
#define HAS_ENDED(t) ended[t]
#endif

#ifdef WAY_IN_OPEN
#define MAY_ENTER true
#else
#define MAY_ENTER (!closed)
#endif
#ifdef HANDLER_SLEEPS
#define MAY_SLEEP(t) (at[t] == OUTSIDE || at[t] == HANDLER)
#else
#define MAY_SLEEP(t) (at[t] == OUTSIDE)
#endif

proctype thread(byte t)
{
end:
    do
    /* the thread executes */
    :: atomic { RUNS(t) && at[t] == OUTSIDE && MAY_ENTER -> go(t, INSIDE); ended[t] = false }
    :: atomic { RUNS(t) && at[t] == OUTSIDE && MAY_ENTER -> go(t, TRAP); ended[t] = false }
    :: atomic { RUNS(t) && at[t] == INSIDE && !HAS_ENDED(t) -> go(t, HANDLER) }
    :: atomic { RUNS(t) && at[t] == INSIDE -> go(t, CALLEE) }
    :: atomic { RUNS(t) && at[t] == INSIDE -> go(t, OUTSIDE) }
    :: atomic { RUNS(t) && at[t] > INSIDE -> go(t, INSIDE) }
    /* the thread comes to the end of its hit, of a #DB in the copy, of a hit at another
     * site, whose copy is not about to go, or of a hit that goes on outside */
    :: atomic { RUNS(t) && at[t] == INSIDE && !HAS_ENDED(t) -> pass(t); ended[t] = true }
    :: atomic { RUNS(t) && at[t] == INSIDE -> pass_db(t) }
    :: atomic { RUNS(t) && at[t] == OUTSIDE && closed -> pass(t) }
    :: atomic { RUNS(t) && IS_OUTSIDE_AT(t) && closed -> seen[t] = true }

    /* the thread leaves its CPU, and comes back to a CPU */
    :: atomic {
        RUNS(t) && MAY_SLEEP(t) -> seen[t] = closed;
        leave(t, VOLUNTARY)
    }
    :: atomic { RUNS(t) && PREEMPTIBLE(t) -> leave(t, IRQ) }
    :: atomic { RUNS(t) && (at[t] == OUTSIDE || at[t] == CALLEE) -> leave(t, PREEMPT) }
    :: atomic { cpu[t] == NONE && current[0] == NONE -> arrive(t, 0) }
#if CPUS > 1
    :: atomic { cpu[t] == NONE && current[1] == NONE -> arrive(t, 1) }
#endif
#if CPUS > 2
    :: atomic { cpu[t] == NONE && current[2] == NONE -> arrive(t, 2) }
#endif
    od
}

proctype interrupt(byte c)
{
end:
    do
    :: atomic { !HAS(on_top, c) && MAY_ENTER -> SET(on_top, c) }
    :: atomic { HAS(on_top, c) -> CLEAR(on_top, c) }
    od
}

/* ---- a round ---- */

/* look - model look_at_running(), which CPU @c executes in the IPI. */
inline look(c)
{
    atomic {
        HAS(waiting, c) && TAKES_IPI(c) -> CLEAR(waiting, c);
        if
        :: current[c] != NONE &&
#ifndef COUNT_IGNORED
            PREEMPTIBLE(current[c]) &&
#endif
#ifdef IP_IGNORED
            true
#elif defined(COUNT_IGNORED)
            (IS_OUTSIDE_AT(current[c]) || at[current[c]] == HANDLER)
#else
            IS_OUTSIDE_AT(current[c])
#endif
            -> seen[current[c]] = true
        :: else
        fi
    }
}

#ifdef RUNNING_IS_OUTSIDE
#define IS_OUTSIDE_RUNNING(t) true
#else
#define IS_OUTSIDE_RUNNING(t) false
#endif
#ifdef IRQ_IS_OUTSIDE
#define IS_OUTSIDE_BY_IRQ(t) true
#else
#define IS_OUTSIDE_BY_IRQ(t) IS_OUTSIDE_AT(t)
#endif
#ifdef PREEMPT_IS_OUTSIDE
#define IS_OUTSIDE_BY_PREEMPT(t) true
#else
#define IS_OUTSIDE_BY_PREEMPT(t) false
#endif

#define IS_OUTSIDE_OFF_CPU(t) \
    (left_by[t] == VOLUNTARY || (left_by[t] == IRQ && IS_OUTSIDE_BY_IRQ(t)) || \
     (left_by[t] == PREEMPT && IS_OUTSIDE_BY_PREEMPT(t)))

#define HAS_BEEN_OUTSIDE(t) \
    (seen[t] || (cpu[t] != NONE && IS_OUTSIDE_RUNNING(t)) || \
     (cpu[t] == NONE && IS_OUTSIDE_OFF_CPU(t)))

/* walk - look at all threads, under the scheduler's lock: no thread leaves a CPU or comes
 * to a CPU meanwhile.
 */
inline walk()
{
    d_step {
        done = true;
        t = 0;
        do
        :: t < THREADS ->
            seen[t] = HAS_BEEN_OUTSIDE(t);
            done = done && seen[t];
            t++
        :: else -> break
        od;
        t = 0
    }
}

inline smp_call_all()
{
#ifdef IPI_NOT_AWAITED
    if
    :: look(0); waiting = 0
    :: waiting = 0
    fi
#else
    do
    :: waiting == 0 -> break
    :: look(0)
#if CPUS > 1
    :: look(1)
#endif
#if CPUS > 2
    :: look(2)
#endif
    od
#endif
}

#define IS_INSIDE(t) (at[t] != OUTSIDE)
#if THREADS > 3
#define ANYBODY_INSIDE (IS_INSIDE(0) || IS_INSIDE(1) || IS_INSIDE(2) || IS_INSIDE(3))
#elif THREADS > 2
#define ANYBODY_INSIDE (IS_INSIDE(0) || IS_INSIDE(1) || IS_INSIDE(2))
#else
#define ANYBODY_INSIDE (IS_INSIDE(0) || IS_INSIDE(1))
#endif

init
{
    byte t;
    bool done;

    atomic {
        do
        :: t < CPUS -> current[t] = NONE; run interrupt(t); t++
        :: else -> break
        od;
        t = 0;
        do
        :: t < THREADS -> cpu[t] = NONE; run thread(t); t++
        :: else -> break
        od;
        t = 0
    }
    closed = true;
    do
    :: done -> break
    :: else ->
        waiting = ALL_CPUS;
        smp_call_all();
        skip; /* Spin does not allow a d_step right after a loop */
        walk()
    od;
    HOLDS(no_cpu_is_inside, !ANYBODY_INSIDE && on_top == 0);
    printf("quiesce() returns\n")
}
