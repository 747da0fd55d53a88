/* module.pml - models kernel/module/module.c: a module is loaded and unloaded.
 * Meanwhile a thread is in it, hits run its handlers, its symbols are looked up, and a
 * probe on its text is registered by name and taken out. The numbers in comments are
 * the steps of module.c.
 */
#ifndef LOADS
#define LOADS 2
#endif

bool mapped = false;     /* the memory is there, and has the module's text */
bool symbols = false;    /* the symbols and fix-ups of the module are known */
bool closed = false;     /* no new probe may be armed on the module's text */
bool way_in = false;     /* there is a workload or a file of the module */
bool handler_on = false; /* a probe elsewhere has a handler in the module */
bool table_freed = true;

bool found = false;                   /* the visitor has found a way in */
bool inside = false;                  /* the visitor is in the text, maybe asleep */
bool called = false, running = false; /* a handler is about to be called; it runs */
bool looking = false;                 /* a look-up reads the table of symbols */

bool locked = false;                      /* PLAT_PROBES */
bool registered = false, armed = false;   /* a probe on the module's text, by name */

hidden byte text_is_there, fixup_is_known, table_is_there, probe_has_text, constructor_is_seen;
#define HOLDS(fact, what) fact = (what); assert(fact)

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* quiesce - wait until each context has been outside once. Handlers and look-ups run with
 * preemption off, so none of those that had begun before is running on return.
 */
inline quiesce()
{
    !called && !running;
    !looking
}

/* ---- what happens meanwhile ---- */

proctype visitor()
{
end:
    do
    :: atomic { way_in && !found -> found = true; printf("a thread finds the way in\n") };
        atomic { inside = true; printf("the thread is in the module's text\n") };
        do
        :: atomic { HOLDS(text_is_there, mapped) }
        :: atomic { HOLDS(fixup_is_known, symbols) } /* the thread faults */
        :: break
        od;
        atomic { inside = false; found = false; printf("the thread has left the module\n") }
    od
}

proctype hit()
{
end:
    do
    :: atomic { handler_on -> called = true };
        atomic { called = false; running = true };
        atomic { HOLDS(text_is_there, mapped) };
        atomic { HOLDS(fixup_is_known, symbols) };
        running = false
    od
}

proctype look_up()
{
end:
    do
    :: atomic { symbols -> looking = true };
        atomic { HOLDS(table_is_there, !table_freed) };
        looking = false
    od
}

proctype registrar()
{
end:
    do
    :: lock();
        if
        :: registered -> registered = false; armed = false
        :: !registered ->
            registered = true; /* if the name is not known yet, the probe waits for it */
            if
            :: symbols && !closed ->
                atomic { HOLDS(probe_has_text, mapped) };
                armed = true
            :: else
            fi
        fi;
        unlock()
    od
}

/* ---- the module is loaded and unloaded ---- */

inline comes()
{
    lock();
    if
    :: registered -> armed = true
    :: else
    fi;
    unlock()
}

inline construct() { atomic { HOLDS(constructor_is_seen, locked || !registered || armed) } }

inline load()
{
    atomic { mapped = true; table_freed = false; printf("the text is mapped\n") }; /* 2 */
    symbols = true;                                /* 3 */
#ifdef ARMED_LATE
    construct();
    comes();
#else
    comes();     /* 4 */
    construct(); /* 5 */
#endif
    handler_on = true;
    atomic { way_in = true; printf("the way in is open\n") } /* 6 */
}

inline goes()
{
    lock();
#ifndef NOT_CLOSED
    closed = true;
#endif
    armed = false;
    unlock()
}

inline unload()
{
    atomic { way_in = false; printf("the way in is closed\n") }; /* 1 */
again:
    if
    :: found && !inside -> goto again /* the way in is in use: EBUSY */
    :: else
    fi;
#ifdef SYMBOLS_FIRST
    symbols = false;
#endif
    handler_on = false; /* 3 */
#ifndef NO_QUIESCENCE
    quiesce(); /* 4 */
#endif
#ifndef NO_SCAN
    if
    :: atomic { inside || running } -> goto again /* 5: EBUSY */
    :: else
    fi;
#endif
    goes(); /* 6 */
#ifdef OPENED_EARLY
    closed = false;
#endif
    atomic { symbols = false; printf("its symbols are forgotten\n") }; /* 7 */
    lock();
    closed = false;
    unlock();
#ifndef NO_QUIESCENCE_AT_END
    quiesce(); /* 8 */
#endif
    atomic {
        HOLDS(probe_has_text, !armed);
        printf("the text is freed\n");
        mapped = false; /* 9 */
        table_freed = true
    }
}

proctype loader()
{
    byte n = 0;

    do
    :: n < LOADS ->
        load();
        unload();
        n++
    :: else -> break
    od
}

init
{
    atomic {
        run visitor();
        run hit();
        run look_up();
        run registrar();
        run loader()
    }
}
