/* poke.pml - the plans of lab 7, in every order of events.
 *
 * The text is two bytes. In ONE they are an instruction, before and after; in TWO they are
 * two instructions and become one, in BACK one that becomes two. grader.py gives the steps of
 * the plans (STEPS_ONE ...) and what a trap does (TRAP_ONE ...), and says what has to hold
 * (WHOLE, AFTER, or LIVE) for which of them (PLAN_ONE ...).
 */
#define OLD   0 /* values of a byte */
#define INT3  1
#define NEW   2
#define BYTES 2
#define CPUS  1

#define ONE  0
#define TWO  1
#define BACK 2

#define RETRY 0 /* as enum poke_trap */
#define TO_OLD 1
#define TO_NEW 2
#define WAIT  3

#include "../../../model/fetch.pml"
#include "../../../model/cpu.pml"

byte plan;
bool under_way = false, returned = false, draining = false;

/* Where progress is to be shown, a CPU that is waited for does not begin anew for ever. */
#ifdef LIVE
#define MAY_BEGIN(x, c) (MAY_START(x, c) && !draining)
#else
#define MAY_BEGIN(x, c) MAY_START(x, c)
#endif

#define ON_TRAP (plan == ONE -> TRAP_ONE : (plan == TWO -> TRAP_TWO : TRAP_BACK))

#define WAITS (under_way && ON_TRAP == WAIT)

/* Has this version two instructions? */
#define IS_TWO(v) ((plan == TWO && (v) == OLD) || (plan == BACK && (v) == NEW))

hidden byte no_instruction_is_torn, all_have_the_new_text;
#ifdef WHOLE
#define MUST_BE_WHOLE(what) no_instruction_is_torn = (what); assert(no_instruction_is_torn)
#else
#define MUST_BE_WHOLE(what) skip
#endif

#define TEXT   0 /* where a context is: in front of the first instruction */
#define MIDDLE 1 /* in front of the second one of two */
#define TRAP   2

/* go - @x is at @place now. Inside of an atomic. */
inline go(x, c, place)
{
    at = place;
    if
    :: at == TEXT -> CLEAR(busy, x)
    :: else -> SET(busy, x)
    fi;
    if
    :: x < CPUS && at == TRAP -> SET(irqs_off, c)
    :: x < CPUS && at != TRAP -> CLEAR(irqs_off, c)
    :: else
    fi
}

/* leave - behind the first instruction of version @v. */
inline leave(x, c, v)
{
    if
    :: IS_TWO(v) -> middle = v; go(x, c, MIDDLE)
    :: else -> middle = 0; go(x, c, TEXT)
    fi
}

inline execute_first(x, c)
{
    fetch(c, 0, first);
    printf("context %d on CPU %d executes byte 0 as %d\n", x, c, first);
    if
    :: first == INT3 -> first = 0; go(x, c, TRAP)
    :: else ->
        MUST_BE_WHOLE(IS_TWO(first) || IS_SURELY(c, 1, first));
        leave(x, c, first);
        first = 0
    fi
}

inline execute_second(x, c)
{
    printf("context %d on CPU %d executes byte 1 as the second of two\n", x, c);
    MUST_BE_WHOLE(IS_SURELY(c, 1, middle));
    middle = 0;
    go(x, c, TEXT)
}

inline trap(x, c)
{
    printf("context %d on CPU %d is in the trap\n", x, c);
    if
    :: under_way && ON_TRAP == TO_OLD -> leave(x, c, OLD)
    :: under_way && ON_TRAP == TO_NEW -> leave(x, c, NEW)
    :: else -> again = true; go(x, c, TEXT); SET(busy, x)
    fi
}

/* An NMI is over when it has executed; an NMI that tries again is not. */
proctype context(byte x; byte c)
{
    byte at, first, middle;
    bool again = false;

end:
    do
    :: atomic { at == TEXT && !again && MAY_BEGIN(x, c) -> execute_first(x, c) }
    :: atomic { at == TEXT && again && (x >= CPUS || MAY_BEGIN(x, c)) ->
        again = false; execute_first(x, c) }
    :: atomic { at == MIDDLE && MAY_GO_ON(x, c) -> execute_second(x, c) }
    :: atomic { at == TRAP && MAY_GO_ON(x, c) && !WAITS -> trap(x, c) }
    :: at == TRAP && WAITS -> skip
    od
}

/* ---- the steps ---- */

inline guard() { store(0, INT3) }
inline tail() { store(1, NEW) }
inline first_byte() { store(0, NEW) }
inline all_bytes() { store(0, NEW); store(1, NEW) }
inline drain() { draining = true; quiesce(); draining = false }

active proctype poker()
{
    d_step { fill(0, OLD); fill(1, OLD) }
    if
#ifdef PLAN_ONE
    :: plan = ONE
#endif
#ifdef PLAN_TWO
    :: plan = TWO
#endif
#ifdef PLAN_BACK
    :: plan = BACK
#endif
    fi;
    printf("plan %d\n", plan);
    run_cpus();
    under_way = true;
    if
    :: plan == ONE -> STEPS_ONE
    :: plan == TWO -> STEPS_TWO
    :: plan == BACK -> STEPS_BACK
    fi;
    under_way = false;
    returned = true;
#ifdef AFTER
    all_have_the_new_text = IS_SURELY(0, 0, NEW) && IS_SURELY(0, 1, NEW);
    assert(all_have_the_new_text)
#endif
}

#ifdef LIVE
ltl it_returns { <> returned }
#endif
