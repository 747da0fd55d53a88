/* cpu.pml - models which context of a CPU can interrupt which other context.
 *
 * Each CPU has two contexts: a thread, and an NMI that may interrupt the thread at any
 * moment. An NMI runs one instruction of the text, and ends with this instruction. In a
 * trap the thread has interrupts off. A CPU takes an interrupt only with interrupts on
 * and outside of NMIs. The only interrupt in the model is the one that a CPU that changes
 * text sends to all CPUs and waits for.
 */
#define ALL_CPUS  ((1 << CPUS) - 1)
#define THREAD(c) (c)
#define NMI(c)    (CPUS + (c))

byte busy = 0;     /* bit of a context: it is in a trap, a copy, a pad or a detour */
byte irqs_off = 0; /* bit of a CPU: its thread is in a trap */
byte waiting = 0;  /* bit of a CPU: it has not answered the interrupt yet */

#define SET(mask, i)   mask = mask | (1 << (i))
#define CLEAR(mask, i) mask = mask & (255 - (1 << (i)))
#define HAS(mask, i)   (((mask) >> (i)) & 1)

#define TAKES_INTERRUPTS(c) (!HAS(irqs_off, c) && !HAS(busy, NMI(c)))

/* MAY_GO_ON - may context @x execute a step? A thread stands still while its CPU is in an
 * NMI. Otherwise any context may go on, or may wait for any length of time.
 * MAY_START - may it execute an instruction? If the model shows that the batch ends
 * (LIVE), a CPU takes a waiting interrupt before the next instruction, as real CPUs do.
 */
#define MAY_GO_ON(x, c) ((x) >= CPUS || !HAS(busy, NMI(c)))
#ifdef LIVE
#define MAY_START(x, c) (MAY_GO_ON(x, c) && !HAS(waiting, c))
#else
#define MAY_START(x, c) MAY_GO_ON(x, c)
#endif

/* With HALTS a thread may halt its CPU, except in a trap. The next step of the thread or
 * of an NMI wakes the CPU. A CPU that wakes serialises.
 */
byte halted = 0; /* bit of a CPU: it halts */

inline halt(c)
{
    printf("CPU %d halts\n", c);
    SET(halted, c)
}

inline wake(c)
{
    if
    :: HAS(halted, c) ->
        CLEAR(halted, c);
#ifndef WAKES_STALE
        serialise(c)
#endif
    :: else
    fi
}

inline answer(c)
{
    atomic {
        HAS(waiting, c) && TAKES_INTERRUPTS(c) -> serialise(c);
        CLEAR(waiting, c)
    }
}

/* spare - do not wait for CPU @c if it halts. */
inline spare(c)
{
    atomic { HAS(waiting, c) && HAS(halted, c) -> CLEAR(waiting, c) }
}

/* sync - model plat_sync_cores(): on return every CPU has serialised since the call, or
 * it halts and will serialise before it executes an instruction.
 */
inline sync()
{
#if defined(SYNC_LEAVES_ONE_OUT)
    waiting = ALL_CPUS - 1;
#else
    waiting = ALL_CPUS;
#endif
    do
    :: waiting == 0 -> break
    :: answer(0)
#if CPUS > 1
    :: answer(1)
#endif
#if CPUS > 2
    :: answer(2)
#endif
#ifdef HALTS
    :: spare(0)
#if CPUS > 1
    :: spare(1)
#endif
#if CPUS > 2
    :: spare(2)
#endif
#endif
    od;
    skip /* Spin does not allow a d_step right after a loop */
}

/* quiesce - model plat_quiesce(): on return each thread and each NMI has been outside at
 * some moment since the call. quiesce.pml models how the kernel finds this out.
 */
#define IS_OUTSIDE(c) (TAKES_INTERRUPTS(c) && !HAS(busy, THREAD(c)))

inline quiesce()
{
    IS_OUTSIDE(0);
#if CPUS > 1
    IS_OUTSIDE(1);
#endif
#if CPUS > 2
    IS_OUTSIDE(2);
#endif
}

inline run_cpus()
{
    run context(THREAD(0), 0);
    run context(NMI(0), 0);
#if CPUS > 1
    run context(THREAD(1), 1);
    run context(NMI(1), 1);
#endif
#if CPUS > 2
    run context(THREAD(2), 2);
    run context(NMI(2), 2);
#endif
}
