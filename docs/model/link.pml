/* link.pml - models probes/jump/link.c: a link at the end of A's detour leads straight
 * into B's detour. First the detour of B is made. Then one of the two goes, or both go,
 * while CPUs are anywhere on the way.
 *
 * In the model the text of A is one byte, and so is the text of B. The displacement of
 * the link is one byte, because it is stored at once. B's detour is one byte, because it
 * is written while no CPU is there.
 */
#define TEXT_A 0 /* the bytes of the model */
#define TEXT_B 1
#define LINK   2
#define DETOUR_B 3
#define BYTES  4

#define ORIGINAL 0 /* values of the text */
#define JUMP     1
#define BACK     0 /* values of the link: it leads to the text at B */
#define STRAIGHT 1 /* it leads to the detour of B */
#define UNMADE   0 /* values of B's detour */
#define WHOLE    1

#include "fetch.pml"
#include "cpu.pml"

bool b_is_off = false;                   /* B is taken out: no CPU may hit B any more */
bool a_freed = false, b_freed = false;   /* the detour of A, of B, has been freed */

hidden byte what_is_used_is_there, off_is_off, all_go_by_the_text;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* ---- what a CPU executes ---- */

#define AT_A    0 /* place of a context: in the text, in front of A */
#define AT_B    1
#define IN_A    2 /* in the detour of A */
#define IN_B    3
#define ENTERED 4 /* an NMI that has begun and has executed nothing of the text yet */
#define STARTS  (at == AT_A && x < CPUS || at == ENTERED)

/* A thread is outside at any place in the text. An NMI is inside until it ends. */
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

/* ---- the detour of B is made ---- */

inline b_comes()
{
    store(DETOUR_B, WHOLE);
#ifdef MADE_EARLY
    store(LINK, STRAIGHT);
#endif
    sync();
#ifndef MADE_EARLY
    store(LINK, STRAIGHT); /* needs no synchronisation of its own */
#endif
    store(TEXT_B, JUMP)
}

/* ---- detours go ---- */

/* wait - wait until no thread can be inside a detour that has been taken out of use. */
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
    store(LINK, BACK);
    store(TEXT_A, ORIGINAL);
    sync();
    wait();
    a_freed = true
}

inline both_leave()
{
#ifndef BOTH_STAY_LINKED
    store(LINK, BACK);
#endif
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
    :: b_leaves()
    :: a_leaves()
    :: both_leave();
       a_freed = true
    :: both_leave();
       a_comes_back()
    fi;
    HOLDS(all_go_by_the_text, IS_SURELY(0, LINK, BACK) && IS_SURELY(CPUS - 1, LINK, BACK))
}
