/* optimize.pml - models probes/jump/optimize.c, unoptimize.c and their callers:
 * registering, disabling, the switch, text that goes away, and the optimizer's passes, in
 * every order. Meanwhile CPUs hit the two sites, and threads are preempted anywhere.
 *
 * Site A lies in front of site B. A jump at A reads the first byte of B as a part of its
 * displacement. When this byte changes, the jump gets another pad, if there is one.
 * text_poke.pml models how bytes are changed. Here the instruction of a site changes at
 * once, but the instructions of two sites do not change together.
 */
#define A 0
#define B 1

#define NONE      0 /* states of a site, as in state.h; NONE: not in the registry */
#define PREPARED  1
#define ARMED     2
#define OPTIMIZED 3
#define DISARMED  4

#define PLAIN 0 /* the instruction in the text */
#define INT3  1
#define JUMP  2

#define ANY 3 /* for a_reads: A's jump can use any first byte of B */

#define SET(mask, i) mask = mask | (1 << (i))
#define HAS(mask, i) (((mask) >> (i)) & 1)

/* ---- the world ---- */

byte a_reads; /* chosen once: with this first byte of B, A can have a jump */
bool b_never; /* at this time no jump is possible at B */

/* ---- the engine's data, under the lock ---- */

bool locked = false;
bool on = true;    /* the switch kprobes-optimization */
bool kick = false; /* the optimizer has work */
bool passing = false;
bool gone = false; /* the module with both sites has been unloaded */
byte state[2];
bool probe[2];   /* a probe is registered at the site */
bool on_duty[2]; /* a probe is registered and is not disabled */
bool registering[2]; /* being registered in a set: becomes a jump at once, if possible */
bool refused[2]; /* jump_why */
bool detour[2];  /* the site has a pad and a detour */

/* ---- the text, which all CPUs execute ---- */

byte text[2];
byte pinned; /* the first byte of B with which A's jump was planned */
bool old_pad = false; /* there is a pad to which A's jump does not lead any more */

/* How many contexts are inside, at each place. A context is a thread, which may have
 * been preempted there, or an NMI. All together there are at most two contexts for
 * each CPU. Contexts that came before the call of quiesce() count in before[], all
 * others in after[].
 */
byte before[5], after[5];

#define COPY         0 /* in a trap, in its handlers or in the copy: COPY + A, COPY + B */
#define DETOUR       2 /* on the pad, in the detour or in its handlers */
#define OLD_PAD      4 /* the same for A, but entered before A's jump got another pad */
#define IN(place)    (before[place] + after[place])
#define IN_DETOUR(s) (IN(DETOUR + s) + (s == A -> IN(OLD_PAD) : 0))
#define IN_HIT(s)    (before[COPY + s] + after[COPY + s] + IN_DETOUR(s))

hidden byte i_;
hidden byte displacement_is_as_planned, int3_has_a_site, pad_is_there, detour_is_unused,
    site_is_unused, old_pad_is_unused, text_is_there, move_is_legal, is_as_wanted, no_leak;
#define HOLDS(fact, what) fact = (what); assert(fact)

#define LOCK   atomic { !locked -> locked = true }
#define UNLOCK locked = false

/* ---- contexts that hit the sites ---- */

byte busy = 0; /* how many contexts are inside */

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

/* quiesce - wait for the contexts that are inside now. quiesce.pml models how the kernel
 * finds out when they are outside.
 */
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

/* write - change the instruction at site @s to @what, and its state to @to. */
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

/* A's jump is about to get another pad: count the contexts there as on the old pad. */
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

/* The first byte of B changes. If A was refused a jump because of this byte, ask again.
 */
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

/* Guard A's jump, which stays a jump, while the byte of B that it reads changes. */
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

/* change - change site @s, which may be a jump, to @what, which is no jump. */
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
    :: s == B && state[A] == OPTIMIZED -> /* there is no memory for a plan */
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

/* A jump becomes the original instruction at once, without an int3 in between. */
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
        HOLDS(site_is_unused, IN_HIT(s) == 0); /* so its probes are unused, too */
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

/* 1. Give an evicted neighbour that no jump reads any more its original bytes. Only B
 * can be evicted.
 */
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

/* 2. If B waits, ask for A again, because A's jump would read B. */
inline ask_with_waiting()
{
    if
    :: IS_WAITING(B) -> ask_before(B)
    :: else
    fi
}

/* 3. Free the pads and detours that waiting sites have from an earlier jump. */
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

/* Plan: what will B be, and can A have a jump then? */
#define MOVES 2 /* A's jump gets another pad */
#define FALLS 3 /* there is no other pad for A's jump: it becomes an int3 */

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
            SET(plan, A); /* B is evicted: it becomes a site without probes */
            SET(plan, B);
            state[B] = PREPARED
        :: IS_WAITING(A) && !HAS(plan, A) -> refused[A] = true
        :: state[A] == OPTIMIZED && HAS(plan, B) && CAN_READ(JUMP) -> SET(plan, MOVES)
        :: state[A] == OPTIMIZED && HAS(plan, B) && !CAN_READ(JUMP) -> SET(plan, FALLS)
        :: else
        fi
    }
}

/* The rest of a pass is one batch. A byte is written before the jump that reads it. */
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

/* Register both sites in one set: each becomes a jump at once if it can, or a breakpoint.
 */
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
    :: state[B] == OPTIMIZED -> arm(B) /* B was evicted: its detour calls no handlers */
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

/* Unload the module. First the sites go; the probes stay registered, without a site. */
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
    :: !b_never && state[B] != OPTIMIZED -> b_never = true /* B's only pad is taken */
    :: b_never -> b_never = false; retry()                 /* the pad is free again */
    :: !gone -> do_unload()
    fi;
    UNLOCK
}

/* ---- when no thread is at work ---- */

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
