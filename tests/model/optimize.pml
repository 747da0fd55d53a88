/* optimize.pml - probes/jump/optimize.c, unoptimize.c and their callers: every order of
 * registering, disabling, switching, text that goes away, and the optimizer's passes,
 * while CPUs run into the two sites, and are preempted wherever they like.
 *
 * Site A lies before B. A jump at A reads the first byte of B as a part of its
 * displacement, so it gets another place when that changes, if there is one. How bytes are changed is
 * text_poke.pml's matter: here a site's instruction changes at once, but not two of them.
 */
#define A 0
#define B 1

#define NONE      0 /* states of a site, as in state.h; NONE: it is not in the registry */
#define PREPARED  1
#define ARMED     2
#define OPTIMIZED 3
#define DISARMED  4

#define PLAIN 0 /* what the text has */
#define INT3  1
#define JUMP  2

#define ANY 3 /* what A's jump can read of B: one of the above only, or anything */

#define SET(mask, i) mask = mask | (1 << (i))
#define HAS(mask, i) (((mask) >> (i)) & 1)

/* ---- the world ---- */

byte a_reads; /* chosen once: first byte of B that makes a displacement A can use */
bool b_never; /* no jump is possible at B, for the time being */

/* ---- the engine's, under the lock ---- */

bool locked = false;
bool on = true;    /* the knob */
bool kick = false; /* the optimizer is to look */
bool passing = false;
bool gone = false; /* the module with both sites has been unloaded */
byte state[2];
bool probe[2];   /* somebody has registered one */
bool on_duty[2]; /* and it is not disabled */
bool registering[2];  /* is being registered, with others: a jump at once, if it can be one */
bool refused[2]; /* jump_why */
bool detour[2];  /* pad and detour are there */

/* ---- what everybody sees ---- */

byte text[2];
byte pinned; /* what A's jump was planned with */
bool old_pad = false; /* there is one that A's jump does not lead to any more */

/* The contexts inside: a thread, wherever it has been preempted, or an NMI. They are not
 * told from each other: these are numbers of contexts, in all at most two for each CPU.
 * Those that came before quiesce() was called are in before[], the others in after[].
 */
byte before[5], after[5];

#define COPY         0 /* in the trap, the handlers, or the copy: of A; add B for B */
#define DETOUR       2 /* on the pad, in the detour, or in the handlers */
#define OLD_PAD      4 /* the same, of A, since before its jump got another pad */
#define IN(place)    (before[place] + after[place])
#define IN_DETOUR(s) (IN(DETOUR + s) + (s == A -> IN(OLD_PAD) : 0))
#define IN_HIT(s)    (before[COPY + s] + after[COPY + s] + IN_DETOUR(s))

hidden byte i_;
hidden byte displacement_is_as_planned, int3_has_a_site, pad_is_there, detour_is_unused,
    site_is_unused, old_pad_is_unused, text_is_there, move_is_legal, is_as_wanted, no_leak;
#define HOLDS(fact, what) fact = (what); assert(fact)

#define LOCK   atomic { !locked -> locked = true }
#define UNLOCK locked = false

/* ---- contexts that run into it ---- */

byte busy = 0; /* contexts inside */

inline hit(s)
{
    printf("a hit at site %d, text %d\n", s, text[s]);
    if
    :: text[s] == INT3 ->
        HOLDS(int3_has_a_site, state[s] != NONE);
        p = COPY + s
    :: text[s] == JUMP ->
        HOLDS(displacement_is_as_planned, s == B || pinned == text[B]);
        HOLDS(pad_is_there, detour[s]);
        p = DETOUR + s
    fi;
    after[p]++;
    busy++;
    p = 0
}

inline leave(p)
{
    if
    :: atomic { before[p] > 0 -> printf("one leaves %d\n", p); before[p]--; busy-- }
    :: atomic { after[p] > 0 -> printf("one leaves %d\n", p); after[p]--; busy-- }
    fi
}

#define IS_HIT(s) (busy < 2 * CPUS && text[s] != PLAIN && !gone)

active proctype contexts()
{
    byte p;

end:
    do
    :: atomic { IS_HIT(A) -> hit(A) }
    :: atomic { IS_HIT(B) -> hit(B) }
    :: leave(0)
    :: leave(1)
    :: leave(2)
    :: leave(3)
    :: leave(4)
    od
}

/* quiesce - wait for the contexts that are inside now. How it finds out is quiesce.pml. */
#define ALL_BEFORE (before[0] + before[1] + before[2] + before[3] + before[4])

inline quiesce()
{
    d_step {
        i_ = 0;
        do
        :: i_ < 5 -> before[i_] = before[i_] + after[i_]; after[i_] = 0; i_++
        :: else -> break
        od;
        i_ = 0
    }
    ALL_BEFORE == 0
}

/* ---- text and states ---- */

/* write - to @what, and the site goes to @to. */
inline write(s, what, to)
{
    HOLDS(text_is_there, !gone);
    HOLDS(move_is_legal,
          (to == ARMED && state[s] != NONE) || (to == OPTIMIZED && state[s] == ARMED) ||
          (to == DISARMED && (state[s] == ARMED || state[s] == OPTIMIZED)));
    printf("site %d: text %d -> %d, state %d -> %d\n", s, text[s], what, state[s], to);
    text[s] = what;
    state[s] = to
}

inline free_detour(s)
{
    printf("pad and detour of site %d are freed\n", s);
    HOLDS(detour_is_unused, IN_DETOUR(s) == 0);
    detour[s] = false
}

/* The pad that A's jump leads to is about to be another one. */
inline keep_pad()
{
    d_step {
        before[OLD_PAD] = before[OLD_PAD] + before[DETOUR + A];
        after[OLD_PAD] = after[OLD_PAD] + after[DETOUR + A];
        before[DETOUR + A] = 0;
        after[DETOUR + A] = 0;
        old_pad = true
    }
}

inline free_old_pad()
{
    if
    :: old_pad ->
        HOLDS(old_pad_is_unused, IN(OLD_PAD) == 0);
        old_pad = false
    :: else
    fi
}

/* ---- unoptimize.c ---- */

inline kick_optimizer()
{
#ifndef NO_KICK
    kick = kick || on
#else
    skip
#endif
}

inline unoptimize(s)
{
    atomic {
        state[s] == OPTIMIZED -> write(s, INT3, ARMED);
        kick_optimizer()
    }
}

/* A jump that was refused for what it would have read may be possible now. */
inline ask_before(s)
{
#ifndef REFUSED_NOT_ASKED_AGAIN
    atomic {
        if
        :: s == B && refused[A] -> refused[A] = false; kick_optimizer()
        :: else
        fi
    }
#else
    skip
#endif
}

/* ---- optimize_batch.c ---- */

#define CAN_READ(what) (a_reads == ANY || a_reads == what)

/* A jump that stays one is guarded while what it reads changes. */
inline guard_a()
{
#ifndef NO_GUARD
    atomic { printf("site 0 is guarded\n"); text[A] = INT3 }
#else
    skip
#endif
}

inline replace_a()
{
    atomic {
        printf("site 0 has another place\n");
        keep_pad();
#ifdef OLD_PAD_FREED
        free_old_pad();
#endif
        pinned = text[B];
        text[A] = JUMP;
        kick_optimizer()
    }
}

inline refuse_a() { refused[A] = true }

/* change - site @s, which may be a jump, to what is none. */
inline change(s, what, to)
{
    ask_before(s);
    if
#ifndef READERS_IGNORED
    :: s == B && state[A] == OPTIMIZED && CAN_READ(what) ->
        guard_a();
        write(s, what, to);
        replace_a()
    :: s == B && state[A] == OPTIMIZED && !CAN_READ(what) ->
        unoptimize(A);
        refuse_a();
        write(s, what, to)
    :: s == B && state[A] == OPTIMIZED -> /* without memory for a plan */
        unoptimize(A);
        write(s, what, to)
    :: !(s == B && state[A] == OPTIMIZED) -> write(s, what, to)
#else
    :: true -> write(s, what, to)
#endif
    fi;
    kick_optimizer()
}

/* ---- arm.c, reclaim.c ---- */

inline arm(s)
{
    if
    :: state[s] != ARMED -> change(s, INT3, ARMED)
    :: else -> kick_optimizer()
    fi
}

/* A jump goes to the original at once. */
inline disarm(s)
{
    if
    :: state[s] == OPTIMIZED || state[s] == ARMED -> change(s, PLAIN, DISARMED)
    :: else
    fi
}

inline reclaim(s)
{
#ifndef NO_QUIESCENCE_AT_RECLAIM
    quiesce();
#endif
    atomic {
#ifndef DETOUR_KEPT
        if
        :: detour[s] -> free_detour(s)
        :: else
        fi;
#endif
        free_old_pad();
        HOLDS(site_is_unused, IN_HIT(s) == 0); /* nor are its probes */
        printf("site %d is freed\n", s);
        state[s] = NONE;
        refused[s] = false
    }
}

/* ---- optimize.c ---- */

#define IS_WAITING(s) ((state[s] == ARMED || registering[s]) && probe[s] && !refused[s])
#define IS_EVICTED(s) (state[s] != NONE && !probe[s])

inline retry()
{
    atomic {
#ifndef REFUSALS_STAY
        refused[A] = false;
        refused[B] = false;
#endif
        kick_optimizer()
    }
}

/* 1. A neighbour that no jump reads any more. Only B can be one. */
inline sweep()
{
#ifndef NO_SWEEP
    if
#ifdef SWEEP_IGNORES_READERS
    :: IS_EVICTED(B) && state[B] == OPTIMIZED ->
        atomic { text[B] = PLAIN; state[B] = DISARMED };
        reclaim(B)
#else
    :: IS_EVICTED(B) && state[A] != OPTIMIZED ->
        disarm(B);
        reclaim(B)
#endif
    :: else
    fi
#else
    skip
#endif
}

/* 2. A site also waits if its jump would read a waiting one. */
inline ask_with_waiting()
{
    if
    :: IS_WAITING(B) -> ask_before(B)
    :: else
    fi
}

/* 3. What they have from an earlier jump. */
inline release_retired()
{
    if
    :: old_pad || (IS_WAITING(A) && detour[A]) || (IS_WAITING(B) && detour[B]) ->
#ifndef NO_QUIESCENCE_IN_PASS
        quiesce();
#endif
        atomic {
            free_old_pad();
            if
            :: IS_WAITING(A) && detour[A] -> free_detour(A)
            :: else
            fi;
            if
            :: IS_WAITING(B) && detour[B] -> free_detour(B)
            :: else
            fi
        }
    :: else
    fi
}

/* Plan: what will B be, and can A live with it? */
#define MOVES 2 /* A's jump, to another place */
#define FALLS 3 /* it has none */

inline make_plan()
{
    d_step {
        plan = 0;
        if
        :: IS_WAITING(B) && b_never -> refused[B] = true
        :: IS_WAITING(B) && !b_never -> SET(plan, B)
        :: else
        fi;
        if
        :: IS_WAITING(A) &&
           CAN_READ((HAS(plan, B) -> JUMP : text[B])) ->
            SET(plan, A)
        :: IS_WAITING(A) && a_reads == JUMP && state[B] == NONE && !b_never ->
            SET(plan, A); /* B has to go: it becomes a site without probes */
            SET(plan, B);
            state[B] = PREPARED
        :: IS_WAITING(A) && !HAS(plan, A) -> refused[A] = true
        :: state[A] == OPTIMIZED && HAS(plan, B) && CAN_READ(JUMP) -> SET(plan, MOVES)
        :: state[A] == OPTIMIZED && HAS(plan, B) && !CAN_READ(JUMP) -> SET(plan, FALLS)
        :: else
        fi
    }
}

/* One batch: a byte that is read comes before the jump that reads it. */
inline guard_readers()
{
#ifndef READERS_IGNORED_IN_PASS
    if
    :: HAS(plan, MOVES) -> guard_a()
    :: HAS(plan, FALLS) -> unoptimize(A); refuse_a()
    :: else
    fi
#else
    skip
#endif
}

inline replace_readers()
{
#ifndef READERS_IGNORED_IN_PASS
    if
    :: HAS(plan, MOVES) -> replace_a()
    :: else
    fi
#else
    skip
#endif
}

inline make_jump(s)
{
    atomic {
        if
        :: HAS(plan, s) ->
            detour[s] = true;
            if
            :: state[s] == PREPARED || state[s] == DISARMED -> state[s] = ARMED
            :: else
            fi;
            if
            :: s == A -> pinned = text[B]
            :: else
            fi;
            write(s, JUMP, OPTIMIZED)
        :: else
        fi
    }
}

inline pass()
{
    if
    :: on && !gone ->
        printf("a pass of the optimizer\n");
        sweep();
        ask_with_waiting();
        release_retired();
        make_plan();
        guard_readers();
#ifdef READER_FIRST
        make_jump(A);
        make_jump(B);
#else
        make_jump(B);
        make_jump(A);
#endif
        replace_readers();
        plan = 0
    :: else -> release_retired()
    fi
}

proctype optimizer()
{
    byte plan;

end:
    do
#ifdef PASS_WITHOUT_LOCK
    :: atomic { kick && !passing -> kick = false; passing = true };
        pass();
        passing = false
#else
    :: atomic { kick && !locked -> kick = false; locked = true };
        pass();
        UNLOCK
#endif
    od
}

/* ---- register.c, enable.c ---- */

inline do_register(s)
{
    printf("register: site %d\n", s);
    atomic {
        if
        :: state[s] == NONE -> state[s] = PREPARED
        :: else
        fi;
        probe[s] = true;
        on_duty[s] = true
    }
    arm(s)
}

inline do_unregister(s)
{
    printf("unregister: site %d\n", s);
    atomic { probe[s] = false; in_list = on_duty[s]; on_duty[s] = false };
    if
    :: in_list && !gone -> disarm(s)
    :: else
    fi;
    in_list = false;
    sweep();
    if
    :: gone -> quiesce(); free_old_pad()
    :: else -> reclaim(s)
    fi;
    retry()
}

/* Both at once: what can be a jump comes as one, the rest as breakpoints. */
inline come(s)
{
    if
    :: !probe[s] && state[s] == NONE -> state[s] = PREPARED; registering[s] = true
    :: !probe[s] && state[s] != NONE -> registering[s] = state[s] == DISARMED
    :: else
    fi;
    probe[s] = true;
    on_duty[s] = true
}

inline do_register_both()
{
    printf("register both\n");
    atomic { come(A); come(B) };
    if
    :: state[B] == OPTIMIZED -> arm(B) /* it was evicted, and has no probe's detour */
    :: else
    fi;
    pass();
    atomic { registering[A] = false; registering[B] = false };
    if
    :: state[B] != ARMED && state[B] != OPTIMIZED -> arm(B)
    :: else
    fi;
    if
    :: state[A] != ARMED && state[A] != OPTIMIZED -> arm(A)
    :: else
    fi
}

inline do_disable(s)
{
    printf("disable: site %d\n", s);
    on_duty[s] = false;
    disarm(s)
}

inline do_enable(s)
{
    printf("enable: site %d\n", s);
    on_duty[s] = true;
    arm(s)
}

inline do_switch_off()
{
    printf("switched off\n");
    if
    :: state[A] == OPTIMIZED -> unoptimize(A)
    :: else
    fi;
    if
    :: state[B] == OPTIMIZED -> unoptimize(B)
    :: else
    fi;
    sweep();
    on = false
}

inline do_switch_on()
{
    printf("switched on\n");
    on = true;
    retry();
    pass()
}

/* The module is unloaded: the sites go first, the probes stay, without a site. */
inline do_unload()
{
    printf("the module is unloaded\n");
    if
    :: on_duty[A] -> disarm(A)
    :: else
    fi;
    if
    :: on_duty[B] -> disarm(B)
    :: else
    fi;
    sweep();
    if
    :: state[A] != NONE -> reclaim(A)
    :: else
    fi;
    if
    :: state[B] != NONE -> reclaim(B)
    :: else
    fi;
    atomic { gone = true; on_duty[A] = false; on_duty[B] = false }
}

#define MAY_REGISTER(s)   (!gone && !probe[s])
#define MAY_ENABLE(s)     (!gone && probe[s] && !on_duty[s])
#define MAY_DISABLE(s)    (!gone && probe[s] && on_duty[s])
#define MAY_UNREGISTER(s) (probe[s])

inline call()
{
    LOCK;
    if
    :: MAY_REGISTER(A) -> do_register(A)
    :: MAY_REGISTER(B) -> do_register(B)
    :: !gone && !probe[A] && !probe[B] -> do_register_both()
    :: MAY_UNREGISTER(A) -> do_unregister(A)
    :: MAY_UNREGISTER(B) -> do_unregister(B)
    :: MAY_DISABLE(A) -> do_disable(A)
    :: MAY_DISABLE(B) -> do_disable(B)
    :: MAY_ENABLE(A) -> do_enable(A)
    :: MAY_ENABLE(B) -> do_enable(B)
    :: on -> do_switch_off()
    :: !on -> do_switch_on()
    :: !b_never && state[B] != OPTIMIZED -> b_never = true /* a pad for it is taken */
    :: b_never -> b_never = false; retry()                 /* and given back */
    :: !gone -> do_unload()
    fi;
    UNLOCK
}

/* ---- in the end ---- */

#define WANTS(s) (probe[s] && on_duty[s])
#define IS_TO_GO_FOR_A (on && !probe[B] && WANTS(A) && a_reads == JUMP && !b_never)
#define WANTED_AT_B \
    (WANTS(B) -> (on && !b_never -> JUMP : INT3) : (IS_TO_GO_FOR_A -> JUMP : PLAIN))
#define WANTED_AT_A \
    (WANTS(A) -> \
         (on && (a_reads == ANY || a_reads == WANTED_AT_B) -> JUMP : INT3) : PLAIN)

inline check_all()
{
    atomic {
        !locked && !kick && !passing ->
        HOLDS(is_as_wanted, gone || (text[A] == WANTED_AT_A && text[B] == WANTED_AT_B));
        HOLDS(no_leak,
              !old_pad && (state[A] != NONE || !detour[A]) && (state[B] != NONE || !detour[B]) &&
                  (probe[A] || state[A] == NONE) &&
                  (probe[B] || state[B] == NONE || text[A] == JUMP))
    }
}

init
{
    byte plan;
    bool in_list;

    atomic {
        if
        :: a_reads = PLAIN
        :: a_reads = INT3
        :: a_reads = JUMP
        :: a_reads = ANY
        fi;
        run optimizer()
    }
end:
    do
    :: call()
    :: check_all()
    od
}
