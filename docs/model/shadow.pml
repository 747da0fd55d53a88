/* shadow.pml - models probes/returns/shadow.h and kretprobe.c: the shadow of one
 * stack. It has no lock. An interrupt may come between any two steps, and pushes and
 * pops entries, too.
 *
 * A place on the stack is a depth; 1 is the outermost call. The model has only calls of
 * functions with a return probe. Each call has one of two return addresses. A function
 * may call, return, jump to another function (a tail call), or be left for a shallower
 * function without returning. NMIs have a shadow of their own, but NMIs and other CPUs
 * look at this shadow at any moment, for a backtrace.
 */
#ifndef DEPTH
#define DEPTH 2 /* the largest depth of the program's calls */
#endif
#define MAX     (DEPTH + 2)     /* an interrupt's call is one or two levels deeper */
#define ENTRIES (2 * DEPTH + 2) /* two for each depth, one for the interrupt; not [0] */

#define TRAMPOLINE 2 /* value of a slot; the return addresses are 0 and 1 */

byte slot[MAX + 1]; /* the return addresses on the stack, by depth */
byte real[MAX + 1]; /* the real return addresses */

byte below[ENTRIES]; /* the shadow; 0: the entry is not in use, or not filled yet */
byte ret[ENTRIES];
byte holder[ENTRIES];
byte last = 0; /* the index of the latest entry */

byte sp = 0;           /* the depth of the program's innermost call */
bool irq = false;      /* an interrupt is being handled */
bool irqs_off = false; /* no interrupt is taken */

hidden byte return_is_found, backtrace_is_right, entry_is_mine, shadow_has_room;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* MY_TURN - may this step be executed? The program waits while an interrupt is handled.
 */
#define MY_TURN(in_irq) (in_irq || !irq)

/* ---- shadow.h ---- */

/* pop - give up the latest entry, as shadow_pop() and shadow_drop() do. */
inline pop(in_irq)
{
#ifdef NOT_EMPTIED
    atomic { MY_TURN(in_irq) -> last--; e = 0 }
#else
    atomic { MY_TURN(in_irq) -> e = last };
    atomic { MY_TURN(in_irq) -> below[e] = 0 };
    atomic {
        MY_TURN(in_irq) -> last = e - 1;
        printf("%d: entry %d is given up\n", in_irq, e);
        ret[e] = 0; /* so that there are fewer different states */
        holder[e] = 0;
        e = 0
    }
#endif
}

/* push - add an entry for the call at depth @d, which returns to @to, and for holder
 * @h.
 */
inline push(in_irq, d, to, h)
{
#ifdef NOT_CLAIMED
    atomic { MY_TURN(in_irq) -> e = last + 1 };
#else
    atomic {
        MY_TURN(in_irq) ->
        HOLDS(shadow_has_room, last + 1 < ENTRIES);
        last++;
        e = last;
        printf("%d: entry %d is claimed for a call at %d\n", in_irq, e, d)
    };
#endif
#ifdef BELOW_FIRST
    atomic { MY_TURN(in_irq) -> below[e] = d };
    atomic { MY_TURN(in_irq) -> ret[e] = to; holder[e] = h };
#else
    atomic { MY_TURN(in_irq) -> ret[e] = to; holder[e] = h };
    atomic { MY_TURN(in_irq) -> below[e] = d };
#endif
#ifdef NOT_CLAIMED
    atomic { MY_TURN(in_irq) -> last = e };
#endif
    atomic {
        MY_TURN(in_irq) ->
        HOLDS(entry_is_mine, last == e && below[e] == d && ret[e] == to);
        e = 0
    }
}

/* ---- kretprobe.c ---- */

/* unwind - drop the entries of calls that were left without returning. @called: drop
 * entries for depth @d, too. No interrupt may come between the look at an entry and its
 * drop, because the interrupt could drop the same entry.
 */
#define IS_LEFT_BEHIND(d, called) (below[last] > d || (called && below[last] == d))

inline unwind(in_irq, d, called)
{
#ifndef UNWIND_INTERRUPTIBLE
    atomic { MY_TURN(in_irq) -> irqs_off = true };
#endif
    do
    :: atomic {
        MY_TURN(in_irq) && IS_LEFT_BEHIND(d, called) ->
        printf("%d: entry %d belongs to no call any more\n", in_irq, last)
    };
        pop(in_irq)
    :: atomic { MY_TURN(in_irq) && !IS_LEFT_BEHIND(d, called) -> break }
    od;
    irqs_off = false
}

/* group_find - do the entries for depth @d have holder @h already? */
inline group_find(d, h)
{
    d_step {
        found = false;
        k = last;
        do
        :: below[k] == d -> found = found || holder[k] == h; k--
        :: else -> break
        od;
        k = 0
    }
}

/* entry - handle the hit of the return probe of @h by the call at depth @d. */
inline entry(in_irq, d, h)
{
    atomic {
        MY_TURN(in_irq) -> to = slot[d];
        stale = below[last] >= d || to == TRAMPOLINE;
        printf("%d: entered by a call at %d\n", in_irq, d)
    };
    found = false;
    if
    :: stale ->
        unwind(in_irq, d, to != TRAMPOLINE);
        atomic {
            MY_TURN(in_irq) ->
            if
            :: to == TRAMPOLINE ->
                group_find(d, h);
                HOLDS(return_is_found, found || below[last] == d);
                to = ret[last]
            :: else
            fi
        }
    :: else
    fi;
    if
    :: !found ->
#ifdef SLOT_FIRST
        atomic { MY_TURN(in_irq) -> slot[d] = TRAMPOLINE };
#endif
        push(in_irq, d, to, h);
        atomic { MY_TURN(in_irq) -> slot[d] = TRAMPOLINE }
    :: else
    fi;
    stale = false;
    found = false;
    to = 0
}

/* returned - handle the return of the call at depth @d: the program is at the trampoline.
 */
inline returned(in_irq, d)
{
    if
    :: atomic { MY_TURN(in_irq) && below[last] != d -> skip };
        unwind(in_irq, d, false)
    :: atomic { MY_TURN(in_irq) && below[last] == d -> skip }
    fi;
    atomic {
        MY_TURN(in_irq) ->
        printf("%d: the call at %d returns, entry %d is for %d\n", in_irq, d, last,
               below[last]);
        HOLDS(return_is_found, below[last] == d && ret[last] == real[d])
    }
    do
    :: atomic { MY_TURN(in_irq) && below[last] == d -> skip };
        pop(in_irq)
    :: atomic { MY_TURN(in_irq) && below[last] != d -> break }
    od
}

/* ---- what runs ---- */

inline write_return(d)
{
    if
    :: slot[d] = 0
    :: slot[d] = 1
    fi;
    real[d] = slot[d]
}

/* leave - free the stack of the innermost call. */
inline leave()
{
    slot[sp] = 0;
    real[sp] = 0;
    sp--
}

/* The number of calls that have begun and have not been left. A backtrace shows them. */
byte live = 0;

active proctype program()
{
    byte e, k, to;
    bool stale, found;

end:
    do
    :: atomic { !irq && sp < DEPTH -> sp++; write_return(sp); live = sp };
        if
        :: entry(false, sp, 1)
        :: entry(false, sp, 2)
        fi
    :: atomic { !irq && sp > 0 -> skip }; /* a tail call */
        if
        :: entry(false, sp, 1)
        :: entry(false, sp, 2)
        fi
    :: atomic { !irq && sp > 0 && slot[sp] == TRAMPOLINE -> live = sp - 1 };
        returned(false, sp);
        atomic { !irq -> leave() }
    :: atomic {
        !irq && sp > 0 -> printf("0: the call at %d is left without returning\n", sp);
        live = sp - 1;
        leave()
    }
    od
}

active proctype interrupt()
{
    byte e, k, to, d;
    bool stale, found;

end:
    do
    :: atomic {
        !irqs_off -> irq = true;
        if
        :: d = sp + 1
        :: d = sp + 2
        fi;
        write_return(d)
    };
        entry(true, d, 1);
        returned(true, d);
        atomic { irq = false; slot[d] = 0; real[d] = 0; d = 0 }
    od
}

/* backtrace - look up each live frame at any moment, as shadow_find() does. */
active proctype backtrace()
{
    byte n, d;

end:
    do
    :: d_step {
        d = 1;
        do
        :: d <= live ->
            if
            :: slot[d] == TRAMPOLINE ->
                n = last;
                do
                :: n > 0 && below[n] != d -> n--
                :: else -> break
                od;
                HOLDS(backtrace_is_right, n > 0 && ret[n] == real[d])
            :: else
            fi;
            d++
        :: else -> break
        od;
        d = 0;
        n = 0
    }
    od
}
