/* link.pml - probes/jump/link.c: the detour of A leads straight into that of B, and one of the two
 * goes, or both, while CPUs are anywhere on the way. Before that B comes.
 *
 * The text is a byte for each; the displacement at the end of A's detour is another, since it
 * is stored at once; and so is all of B's detour, which is written while no CPU is there.
 */
#define TEXT_A 0 /* bytes */
#define TEXT_B 1
#define LINK   2
#define DETOUR_B 3
#define BYTES  4

#define ORIGINAL 0 /* values of the text */
#define JUMP     1
#define BACK     0 /* values of the link: to the text at B, to the detour of B */
#define STRAIGHT 1
#define UNMADE   0 /* values of B's detour */
#define WHOLE    1

#include "fetch.pml"
#include "cpu.pml"

bool b_is_off = false;                   /* the thread that took B out has been told so */
bool a_freed = false, b_freed = false;   /* the detours */

hidden byte what_is_used_is_there, off_is_off, all_go_by_the_text;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* ---- what a CPU meets ---- */

#define AT_A    0 /* where a context is: before A */
#define AT_B    1
#define IN_A    2
#define IN_B    3
#define ENTERED 4 /* an NMI, and nothing yet */
#define STARTS  (at == AT_A && x < CPUS || at == ENTERED)

/* A thread in the text is outside, wherever it stands; an NMI is not. */
inline go(x, place)
{
    at = place;
    if
    :: at == AT_A || at == AT_B && x < CPUS -> CLEAR(busy, x)
    :: else -> SET(busy, x)
    fi
}

inline enter_b(x, c)
{
    HOLDS(what_is_used_is_there, !b_freed && IS_SURELY(c, DETOUR_B, WHOLE));
    HOLDS(off_is_off, !b_is_off);
    go(x, IN_B)
}

inline execute_a(x, c)
{
    printf("context %d on CPU %d executes A\n", x, c);
    if
    :: MAY_BE(c, TEXT_A, ORIGINAL) -> go(x, AT_B)
    :: MAY_BE(c, TEXT_A, JUMP) ->
        HOLDS(what_is_used_is_there, !a_freed);
        go(x, IN_A)
    fi
}

inline leave_a(x, c)
{
    printf("context %d on CPU %d leaves A's detour\n", x, c);
    HOLDS(what_is_used_is_there, !a_freed);
    if
    :: MAY_BE(c, LINK, BACK) -> go(x, AT_B)
    :: MAY_BE(c, LINK, STRAIGHT) -> enter_b(x, c)
    fi
}

inline execute_b(x, c)
{
    printf("context %d on CPU %d executes B\n", x, c);
    if
    :: MAY_BE(c, TEXT_B, ORIGINAL) -> go(x, AT_A)
    :: MAY_BE(c, TEXT_B, JUMP) -> enter_b(x, c)
    fi
}

inline leave_b(x, c)
{
    printf("context %d on CPU %d leaves B's detour\n", x, c);
    HOLDS(what_is_used_is_there, !b_freed);
    go(x, AT_A)
}

proctype context(byte x; byte c)
{
    byte at;

end:
    do
    :: atomic { at == AT_A && x >= CPUS -> go(x, ENTERED) }
    :: atomic { STARTS && MAY_GO_ON(x, c) -> execute_a(x, c) }
    :: atomic { at == IN_A && MAY_GO_ON(x, c) -> leave_a(x, c) }
    :: atomic { at == AT_B && MAY_GO_ON(x, c) -> execute_b(x, c) }
    :: atomic { at == IN_B && MAY_GO_ON(x, c) -> leave_b(x, c) }
    od
}

/* ---- what comes ---- */

inline b_comes()
{
    store(DETOUR_B, WHOLE);
#ifdef MADE_EARLY
    store(LINK, STRAIGHT);
#endif
    sync();
#ifndef MADE_EARLY
    store(LINK, STRAIGHT); /* without a synchronisation for it */
#endif
    store(TEXT_B, JUMP)
}

/* ---- what goes ---- */

/* wait - until no thread can be inside of what has gone. */
inline wait()
{
#ifndef NO_QUIESCENCE
    quiesce()
#else
    skip
#endif
}

inline b_leaves()
{
#ifdef CUT_LATE
    store(TEXT_B, ORIGINAL);
    sync();
    store(LINK, BACK);
#else
#ifndef NO_CUT
    store(LINK, BACK);
#endif
    store(TEXT_B, ORIGINAL);
    sync();
#endif
    b_is_off = true;
    wait();
    b_freed = true
}

inline a_leaves()
{
    store(TEXT_A, ORIGINAL);
    sync();
    wait();
    a_freed = true
}

/* They stay linked. */
inline both_leave()
{
    if
    :: store(TEXT_A, ORIGINAL); store(TEXT_B, ORIGINAL)
    :: store(TEXT_B, ORIGINAL); store(TEXT_A, ORIGINAL)
    fi;
    sync();
    wait();
    b_freed = true
}

inline a_comes_back()
{
#ifndef NOT_FORGOTTEN
    store(LINK, BACK);
#endif
#ifndef FORGET_NOT_SYNCED
    sync();
#endif
    store(TEXT_A, JUMP);
    sync()
}

init
{
    atomic {
        fill(TEXT_A, JUMP);
        fill(TEXT_B, ORIGINAL);
        fill(LINK, BACK);
        fill(DETOUR_B, UNMADE);
        run_cpus()
    }
    b_comes();
    if
    :: b_leaves();
       HOLDS(all_go_by_the_text, IS_SURELY(0, LINK, BACK) && IS_SURELY(CPUS - 1, LINK, BACK))
    :: a_leaves()
    :: both_leave();
       a_freed = true
    :: both_leave();
       a_comes_back()
    fi
}
