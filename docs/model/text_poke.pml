/* text_poke.pml - models probes/core/text_poke.c: the int3 engine changes a batch of
 * neighbouring instructions while CPUs execute them, in threads and in NMIs.
 *
 * The text is SITES instructions in a row, each of LEN bytes: 2 or 1. A jump has 3 bytes:
 * its own bytes and, as the rest of its displacement, bytes of its successors. All
 * batches are tried: before the batch and after it, each instruction is one of
 *
 *   PLAIN  the original      JUMP  the jump that was there before
 *   INT3   a breakpoint      NEXT  a new jump, to another place; or any new instruction
 *
 * JUMP and NEXT differ in all of their bytes. In reality a byte of both may be equal, and
 * mixing such bytes would be harmless; in the model any mixture is an error.
 *
 * With one site, the model also has the end of the site's life (reclaim.c): its copy, pad
 * and detour are freed.
 */
#define PLAIN 0
#define INT3  1
#define JUMP  2
#define NEXT  3

#define SPAN     3
#define CODE     (SITES * LEN)
#define FIRST(s) ((s) * LEN)
#define TAIL(s)  (FIRST(s) + 1)
#define OUT(s)   (CODE + (s)) /* the new code of a site: its copy, its pad, its detour */
#define BYTES    (CODE + SITES)

#define EMPTY  0 /* values of OUT */
#define FILLED 1

#include "fetch.pml"
#include "cpu.pml"

/* ---- the plan: chosen once ---- */

byte kind[2 * SITES]; /* the old instructions, then the new ones */
byte down[SITES], up[SITES]; /* levels of steps 1 and 3 */
byte lone = 0; /* bit of a site: one byte changes, and none that it reads: no guard */

#define OLD    0
#define NEW    SITES
#define old(s) kind[s]
#define new(s) kind[SITES + (s)]

#define CHANGES(s) (old(s) != new(s))
#define IS_JUMP(k) ((k) >= JUMP)
#define TAIL_OF(k) ((k) == INT3 -> PLAIN : (k)) /* an int3 does not change the tail */
#define BYTE_OF(when, b) \
    ((b) % LEN == 0 -> kind[when + (b) / LEN] : TAIL_OF(kind[when + (b) / LEN]))

/* READS - does an instruction of kind @k at site @s use the first byte of site @t? */
#define READS(s, t, k) (IS_JUMP(k) && (t) > (s) && FIRST(t) < FIRST(s) + SPAN)

inline choose_kinds(s)
{
    if
    :: old(s) = PLAIN
    :: old(s) = INT3
    :: old(s) = JUMP
    fi;
    if
    :: new(s) = PLAIN
    :: new(s) = INT3
    :: new(s) = NEXT
    :: new(s) = old(s)
    fi
}

/* IS_FORGOTTEN - would the jump at @s stay although @t changes, which it reads? No caller
 * asks for such a batch: probes/jump/unoptimize.c adds the jump to the batch.
 */
#ifdef READER_LEFT_OUT
#define IS_FORGOTTEN(s, t) false
#else
#define IS_FORGOTTEN(s, t) (READS(s, t, old(s)) && !CHANGES(s) && CHANGES(t))
#endif

/* plan_pair - set the levels of @s and @t; @s is in front of @t. Rule 4 of
 * docs/text-poke.md: an instruction that uses another first byte is guarded before this
 * byte changes. Rule 5: it becomes visible after this byte is final.
 */
inline plan_pair(s, t)
{
    if
    :: IS_FORGOTTEN(s, t) -> goto no_site_asks
    :: else
    fi;
    if
    :: CHANGES(s) && CHANGES(t) && READS(s, t, old(s)) && down[t] <= down[s] ->
        down[t] = down[s] + 1
    :: else
    fi;
    if
    :: CHANGES(s) && CHANGES(t) && READS(s, t, new(s)) && up[s] <= up[t] ->
        up[s] = up[t] + 1
    :: else
    fi;
#ifndef LONE_READS
    if
    :: CHANGES(t) && (READS(s, t, old(s)) || READS(s, t, new(s))) -> CLEAR(lone, s)
    :: else
    fi
#endif
}

inline plan_one(s)
{
    choose_kinds(s);
    if
    :: CHANGES(s) && (LEN == 1 || TAIL_OF(old(s)) == TAIL_OF(new(s))) -> SET(lone, s)
    :: else
    fi
}

inline plan() /* the order of the pairs matters: a level depends on other levels */
{
    plan_one(0);
#if SITES > 1
    plan_one(1);
#endif
#if SITES > 2
    plan_one(2);
    plan_pair(1, 2);
    plan_pair(0, 2);
#endif
#if SITES > 1
    plan_pair(0, 1);
#endif
#if SITES > 2
    plan_pair(0, 2);
    plan_pair(1, 2);
#endif
}

/* ---- what has to be true ---- */

hidden byte no_instruction_is_torn, what_it_leads_to_is_seen, int3_has_a_site,
    what_is_used_is_there, all_execute_the_new;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* ---- what a CPU executes ---- */

bool returned = false;   /* text_poke_batch() has returned */
bool known[SITES];       /* the site is in the registry */
bool freed = false;      /* sites that became PLAIN are freed, and their copies */
bool jump_freed = false; /* pad and detour of JUMP are freed */

#define PROGRAM   0 /* a context is in the text */
#define TRAP      1 /* a context has executed an int3 and has not found its site yet */
#define ELSEWHERE 2 /* a context is in a copy or in a detour */

/* check - the CPU executes the old or the new instruction at @s: are all bytes
 * of it there?
 * @when: OLD or NEW
 */
inline check(c, s, when)
{
    d_step {
        i_ = FIRST(s) + 1;
        do
        :: i_ < CODE && i_ < FIRST(s) + (IS_JUMP(kind[when + s]) -> SPAN : LEN) ->
            HOLDS(no_instruction_is_torn, IS_SURELY(c, i_, BYTE_OF(when, i_)));
            i_++
        :: else -> break
        od;
        i_ = 0
    }
}

/* go - move context @x to @place. */
inline go(x, c, place)
{
    at = place;
    if
    :: at == PROGRAM -> CLEAR(busy, x)
    :: else -> SET(busy, x)
    fi;
    if
    :: x < CPUS && at == TRAP -> SET(irqs_off, c)
    :: x < CPUS && at != TRAP -> CLEAR(irqs_off, c)
    :: else
    fi
}

/* execute - execute the instruction of any site: the program may jump to each of them. */
inline execute(x, c)
{
    if
    :: s = 0
    :: SITES > 1 -> s = 1
    :: SITES > 2 -> s = 2
    fi;
    fetch(c, FIRST(s), v);
    printf("context %d on CPU %d executes site %d as %d\n", x, c, s, v);
    if
    :: v == PLAIN && old(s) == PLAIN -> check(c, s, OLD); s = 0
    :: v == PLAIN && old(s) != PLAIN -> check(c, s, NEW); s = 0
    :: v == INT3 ->
#if SITES > 1
        find(c); /* no need to wait: with several sites the registry does not change */
        s = 0;
#endif
        go(x, c, TRAP)
    :: v == JUMP ->
        check(c, s, OLD);
        HOLDS(what_is_used_is_there, !jump_freed);
#if SITES == 1
        go(x, c, ELSEWHERE)
#else
        s = 0 /* with several sites nothing is freed: no need to stay in the detour */
#endif
    :: v == NEXT ->
        check(c, s, NEW);
        HOLDS(what_it_leads_to_is_seen, IS_SURELY(c, OUT(s), FILLED));
        s = 0
    fi
}

/* find - look up the site of an int3. If there is none, the CPU must be able to retry. */
inline find(c)
{
    printf("on CPU %d a trap asks for site %d\n", c, s);
    if
    :: known[s] ->
        HOLDS(what_it_leads_to_is_seen, old(s) != PLAIN || IS_SURELY(c, OUT(s), FILLED))
    :: else ->
#ifdef NO_RETRY
        HOLDS(int3_has_a_site, false)
#else
        HOLDS(int3_has_a_site, text[FIRST(s)] != INT3) /* otherwise the kernel panics */
#endif
    fi
}

inline trap(x, c)
{
#if SITES == 1
    find(c);
    if
    :: known[s] -> go(x, c, ELSEWHERE)
    :: else -> go(x, c, PROGRAM)
    fi
#else
    go(x, c, PROGRAM)
#endif
}

inline come_back(x, c)
{
    printf("context %d on CPU %d leaves the copy, pad or detour\n", x, c);
    HOLDS(what_is_used_is_there, (v != INT3 || !freed) && (v != JUMP || !jump_freed));
    go(x, c, PROGRAM);
    s = 0
}

proctype context(byte x; byte c)
{
    byte s, v, at;

end:
    do
#ifdef HALTS
    :: atomic { at == PROGRAM && x < CPUS && MAY_START(x, c) && !HAS(halted, c) -> halt(c) }
    :: atomic { at == PROGRAM && MAY_START(x, c) -> wake(c); execute(x, c) }
#else
    :: atomic { at == PROGRAM && MAY_START(x, c) -> execute(x, c) }
#endif
#ifdef TRAP_WAITS
    :: atomic { at == TRAP && MAY_GO_ON(x, c) && returned -> trap(x, c) }
#else
    :: atomic { at == TRAP && MAY_GO_ON(x, c) -> trap(x, c) }
#endif
    :: atomic { at == ELSEWHERE && MAY_GO_ON(x, c) -> come_back(x, c) }
    od
}

/* ---- the batch ---- */

/* TO_GUARD, TO_FINISH, TO_PUBLISH - does a step, in level @l of it, still have to write
 * @s? The sites of a level are written in any order.
 */
#ifdef LEVELS_IGNORED
#define IS_LEVEL(of, s) (l == 0)
#elif defined(LEVELS_SWAPPED)
#define IS_LEVEL(of, s) (of[s] == SITES - 1 - l)
#else
#define IS_LEVEL(of, s) (of[s] == l)
#endif
#define TO_GUARD(s) \
    (CHANGES(s) && !HAS(lone, s) && IS_LEVEL(down, s) && text[FIRST(s)] != INT3)
#define TO_FINISH(s)  (LEN > 1 && text[TAIL(s)] != TAIL_OF(new(s)))
#define TO_PUBLISH(s) (IS_LEVEL(up, s) && text[FIRST(s)] != new(s))

#if SITES == 1
#define ANY(to) to(0)
#elif SITES == 2
#define ANY(to) (to(0) || to(1))
#else
#define ANY(to) (to(0) || to(1) || to(2))
#endif

inline guard(s) { atomic { TO_GUARD(s) -> store(FIRST(s), INT3) } }
inline finish(s)
{
    atomic {
        TO_FINISH(s) -> v = TAIL_OF(new(s));
        store(TAIL(s), v);
        v = 0
    }
}
inline publish(s)
{
    atomic {
        TO_PUBLISH(s) -> v = new(s);
        store(FIRST(s), v);
        v = 0
    }
}

/* Step 1, guard: write an int3 over the first bytes. A CPU that comes there traps. */
inline guard_all()
{
    do
    :: !ANY(TO_GUARD) -> break
    :: guard(0)
#if SITES > 1
    :: guard(1)
#endif
#if SITES > 2
    :: guard(2)
#endif
    od
}

/* Step 2, tail: write the other bytes. No CPU reads them, because of the int3. */
inline finish_all()
{
    do
    :: !ANY(TO_FINISH) -> break
    :: finish(0)
#if SITES > 1
    :: finish(1)
#endif
#if SITES > 2
    :: finish(2)
#endif
    od
}

/* Step 3, first: write the new first bytes. */
inline publish_all()
{
    do
    :: !ANY(TO_PUBLISH) -> break
    :: publish(0)
#if SITES > 1
    :: publish(1)
#endif
#if SITES > 2
    :: publish(2)
#endif
    od
}

inline step_1()
{
    do
    :: ANY(TO_GUARD) ->
        guard_all();
#if !defined(NO_SYNC_1) && !defined(LEVELS_NOT_SYNCED)
        sync()
#endif
    :: else ->
        l++;
        if
        :: l == SITES -> break
        :: else
        fi
    od;
    l = 0
}

inline step_2()
{
    if
    :: ANY(TO_FINISH) ->
        finish_all();
#ifndef NO_SYNC_2
        sync()
#endif
    :: else
    fi
}

inline step_3()
{
    do
    :: ANY(TO_PUBLISH) ->
        publish_all();
#ifdef REGISTRY_EARLY
        forget();
#endif
#if !defined(NO_SYNC_3) && !defined(LEVELS_NOT_SYNCED)
        sync()
#endif
    :: else ->
        l++;
        if
        :: l == SITES -> break
        :: else
        fi
    od;
    l = 0
}

inline text_poke_batch()
{
#ifndef NO_STEP_1
    step_1();
#endif
#ifdef LEVELS_NOT_SYNCED
    sync();
    step_2();
    step_3();
    sync()
#elif !defined(STEPS_SWAPPED)
    step_2();
    step_3()
#else
    step_3();
    step_2()
#endif
}

/* When the batch returns, every CPU executes only the new text. */
inline check_all_new()
{
    d_step {
        do
        :: l < CPUS ->
            do
            :: s < CODE ->
                HOLDS(all_execute_the_new,
                      HAS(halted, l) || IS_SURELY(l, s, BYTE_OF(NEW, s)));
                s++
            :: else -> break
            od;
            s = 0;
            l++
        :: else -> break
        od;
        l = 0
    }
}

/* ---- the callers ---- */

inline start()
{
    d_step {
        do
        :: s < SITES ->
            known[s] = (old(s) != PLAIN);
            fill(OUT(s), EMPTY);
            s++
        :: else -> break
        od;
        s = 0;
        do
        :: s < CODE -> v = BYTE_OF(OLD, s); fill(s, v); s++
        :: else -> break
        od;
        s = 0;
        v = 0
    }
}

/* Make the code to which the new instructions lead, and put the sites into the registry.
 * Each CPU must have seen this code before an instruction can lead the CPU there.
 */
inline prepare()
{
    d_step {
        do
        :: s < SITES ->
            if
            :: CHANGES(s) -> known[s] = true; store(OUT(s), FILLED)
            :: else
            fi;
            s++
        :: else -> break
        od;
        s = 0
    }
}

inline forget()
{
    d_step {
        printf("out of the registry\n");
        do
        :: s < SITES -> known[s] = (known[s] && new(s) != PLAIN); s++
        :: else -> break
        od;
        s = 0
    }
}

inline reclaim()
{
#ifndef NO_QUIESCENCE
    quiesce();
#endif
    forget();
    sync();
    printf("freed\n");
    freed = (new(0) == PLAIN);
    jump_freed = (new(0) != JUMP)
}

init
{
    byte s, l, v;

    atomic {
        plan();
        printf("site 0: %d -> %d\n", old(0), new(0));
#if SITES > 1
        printf("site 1: %d -> %d\n", old(1), new(1));
#endif
#if SITES > 2
        printf("site 2: %d -> %d\n", old(2), new(2));
#endif
        start();
        run_cpus()
    }
    prepare();
#ifndef NO_SYNC_0
    sync();
#endif
#ifdef REGISTRY_FIRST
    forget();
#endif
    text_poke_batch();
    check_all_new();
    returned = true;
#if SITES == 1
    reclaim();
#endif
no_site_asks:
    returned = true
}

#ifdef LIVE
ltl it_returns { <> returned }
#endif
