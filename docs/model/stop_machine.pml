/* stop_machine.pml - models probes/text/text_stop.c: two instructions become one, by the
 * int3 engine or with the machine stopped.
 *
 * A thread can be in the middle: behind the first old instruction. After the change
 * this address is inside the new instruction. And a stopped CPU still executes code: it
 * takes NMIs at any moment, and they execute the text that is being changed. CPU 0
 * changes the text. The thread of CPU 0 in the model is a preempted one, and its saved
 * ip is not looked at.
 */
#define FIRST  0 /* the two bytes of the text */
#define SECOND 1
#define BYTES  2

#define OLD  0 /* value of a byte: an old instruction of one byte */
#define INT3 1
#define NEW  2 /* a part of the new instruction, which has both bytes */

#include "fetch.pml"
#include "cpu.pml"

bool stopping;      /* true: with the machine stopped; false: by the int3 engine */
bool known = false; /* is there a site for the first instruction? */
byte parked = 0;    /* bit of a CPU: it is stopped */

hidden byte second_is_an_instruction, new_is_whole, int3_is_known, all_is_new;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* ---- what a CPU executes ---- */

#define AT_FIRST  0 /* the place of a context */
#define AT_SECOND 1
#define IN_TRAP   2
#define ENTERED   3 /* an NMI that has begun and has executed nothing of the text yet */
#define STARTS    (at == AT_FIRST && x < CPUS || at == ENTERED)

inline go(x, c, place)
{
    at = place;
    if
    :: at == AT_FIRST -> CLEAR(busy, x)
    :: else -> SET(busy, x)
    fi;
    if
    :: x < CPUS && at == IN_TRAP -> SET(irqs_off, c)
    :: x < CPUS && at != IN_TRAP -> CLEAR(irqs_off, c)
    :: else
    fi
}

/* Begin an NMI. It executes the text in a later step. */
inline enter(x, c)
{
    printf("context %d, an NMI, comes to CPU %d\n", x, c);
#ifdef NMIS_SERIALISE_ONLY
    serialise(c);
#endif
    go(x, c, ENTERED)
}

inline execute_first(x, c)
{
    printf("context %d on CPU %d executes the first byte\n", x, c);
    if
    :: MAY_BE(c, FIRST, OLD) -> go(x, c, AT_SECOND)
    :: MAY_BE(c, FIRST, INT3) -> go(x, c, IN_TRAP)
    :: MAY_BE(c, FIRST, NEW) -> HOLDS(new_is_whole, IS_SURELY(c, SECOND, NEW))
    fi
}

inline execute_second(x, c)
{
    printf("context %d on CPU %d executes the second byte\n", x, c);
    HOLDS(second_is_an_instruction, IS_SURELY(c, SECOND, OLD));
    go(x, c, AT_FIRST)
}

/* Leave the trap. A hit runs copies of all instructions that are replaced, and goes
 * on behind them.
 */
inline trap(x, c)
{
    printf("context %d on CPU %d leaves its trap\n", x, c);
    HOLDS(int3_is_known, known || text[FIRST] != INT3);
#ifdef HIT_RETURNS_INSIDE
    go(x, c, AT_SECOND)
#else
    go(x, c, AT_FIRST)
#endif
}

#define RUNS(x, c) (MAY_GO_ON(x, c) && ((x) >= CPUS || !HAS(parked, c)))

proctype context(byte x; byte c)
{
    byte at;

end:
    do
    :: atomic { at == AT_FIRST && x >= CPUS -> enter(x, c) }
    :: atomic { STARTS && RUNS(x, c) -> execute_first(x, c) }
    :: atomic { at == AT_SECOND && RUNS(x, c) -> execute_second(x, c) }
    :: atomic { at == IN_TRAP && RUNS(x, c) -> trap(x, c) }
    od
}

/* ---- kernel/sync/stop_machine.c ---- */

inline park(c)
{
    atomic {
        !HAS(parked, c) && TAKES_INTERRUPTS(c) -> printf("CPU %d stops\n", c);
        SET(parked, c)
    }
}

inline stop_machine()
{
    SET(parked, 0); /* CPU 0 runs stop_machine(); its thread of the model stands */
    do
    :: parked == ALL_CPUS -> break
#if CPUS > 1
    :: park(1)
#endif
#if CPUS > 2
    :: park(2)
#endif
    od
}

/* Do the saved ips show a stopped thread in the middle of the text? */
#define SOMEBODY_IS_INSIDE ((busy & (ALL_CPUS - 1)) != 0)

/* ---- the change ---- */

inline phase_sync()
{
#if defined(NMIS_SERIALISE_ONLY)
    if
    :: stopping
    :: else -> sync()
    fi
#elif defined(NO_SYNC)
    skip
#else
    sync()
#endif
}

inline text_poke()
{
#ifdef BYTEWISE
    store(FIRST, NEW);
    store(SECOND, NEW)
#else
    if
    :: text[FIRST] != INT3 -> store(FIRST, INT3); phase_sync()
    :: else
    fi;
    store(SECOND, NEW);
    phase_sync();
    store(FIRST, NEW)
#endif
    ;
    sync()
}

init
{
    atomic {
        fill(FIRST, OLD);
        fill(SECOND, OLD);
        if
        :: stopping = false
        :: stopping = true
        fi;
        run_cpus()
    }
    known = true;
#ifndef NOT_GUARDED
    store(FIRST, INT3);
    sync();
#endif
#ifndef NO_QUIESCENCE
    quiesce();
#endif
    do
    :: stopping ->
        stop_machine();
#ifndef IPS_IGNORED
        if
        :: SOMEBODY_IS_INSIDE -> parked = 0 /* let the CPUs run, and try again */
        :: else -> break
        fi
#else
        break
#endif
    :: else -> break
    od;
    text_poke();
    HOLDS(all_is_new, IS_SURELY(0, FIRST, NEW) && IS_SURELY(CPUS - 1, FIRST, NEW));
    parked = 0;
    quiesce();
    known = false
}
