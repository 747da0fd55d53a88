/* cpu.pml - what interrupts what.
 *
 * Each CPU has two contexts: a thread, and an NMI that may come on top of it at any
 * moment. An NMI runs one instruction of the text, and is over when that is over. In a
 * trap the thread has interrupts off. An interrupt is taken only with interrupts on and
 * outside of NMIs; here it is what the patching CPU waits for.
 */
#define ALL_CPUS  ((1 << CPUS) - 1)
#define THREAD(c) (c)
#define NMI(c)    (CPUS + (c))

byte busy = 0;     /* bit context: in a trap, a copy, a pad, a detour */
byte irqs_off = 0; /* bit CPU: its thread is in a trap */
byte waiting = 0;  /* bit CPU: it has not answered yet */

#define SET(mask, i)   mask = mask | (1 << (i))
#define CLEAR(mask, i) mask = mask & (255 - (1 << (i)))
#define HAS(mask, i)   (((mask) >> (i)) & 1)

#define TAKES_INTERRUPTS(c) (!HAS(irqs_off, c) && !HAS(busy, NMI(c)))

/* A thread stands still under an NMI; else any context may go on, or wait as long as it
 * likes. Where progress is to be shown, a waiting interrupt is taken before the next
 * instruction, as CPUs do.
 */
#define MAY_GO_ON(x, c) ((x) >= CPUS || !HAS(busy, NMI(c)))
#ifdef LIVE
#define MAY_START(x, c) (MAY_GO_ON(x, c) && !HAS(waiting, c))
#else
#define MAY_START(x, c) MAY_GO_ON(x, c)
#endif

/* With HALTS a thread may halt its CPU wherever it is in no trap. The next thread or NMI on
 * that CPU is an interrupt: it says that the CPU is awake, and serialises.
 */
byte halted = 0; /* bit CPU */

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

/* spare - a CPU that is seen halted is not waited for. */
inline spare(c)
{
    atomic { HAS(waiting, c) && HAS(halted, c) -> CLEAR(waiting, c) }
}

/* sync - plat_sync_cores(): every CPU has serialised once since the call, or will before it
 * executes anything.
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
    skip /* a loop may not end in front of a d_step */
}

/* quiesce - plat_quiesce(): each thread has been outside at some moment since the call,
 * and so has each NMI. How it finds out is quiesce.pml.
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
