/* ring.pml - models probes/trace/ring/ring.h: the writers of one CPU, and a reader. A writer
 * may interrupt another writer, and ends before the interrupted writer goes on. No writer
 * waits for the reader.
 *
 * A record is one word: its number. Records get their numbers in the order in which
 * they move the tail. Dropped records get numbers, too, so the reader knows which
 * number must come next.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef ROOM
#define ROOM 1 /* records that a page can hold */
#endif
#ifndef EVENTS
#define EVENTS 5
#endif
#define LEVELS 2          /* a writer, and a writer that interrupts it */
#define PAGES  (SLOTS + 1) /* one for each slot, and the reader's spare page */

#define FREE   0 /* enum ring_state */
#define OPEN   1
#define UNREAD 2

#define NO_SEQ 99

typedef word_t { byte page; byte seq; byte state };
typedef slot_t { word_t word; byte end; byte dropped; byte first; byte lost };
typedef page_t { byte commit; byte cell[ROOM] };
typedef tail_t { byte seq; byte off; bool closed; byte drops };

tail_t tail;
slot_t slots[SLOTS];
page_t pages[PAGES];
byte published = 0;
byte depth = 0;
byte begun = 0;  /* the number of records that writers have begun */
byte last_id = 0;
bool busy[LEVELS];
bool overwrite;
byte drops = 0; /* only for DROPS_APART */

hidden byte record_is_next, only_the_overwritten_is_gone, all_are_read_or_lost;
#define HOLDS(fact, what) fact = (what); assert(fact)

/* MY_TURN - may writer @l execute a step? It waits for the writer that
 * has interrupted it.
 */
#define MY_TURN(l) (l == LEVELS - 1 || !busy[LEVELS - 1])

#define SLOT(seq_) slots[(seq_) % SLOTS]
#define SAME_TAIL(t)                                                                     \
    (tail.seq == t.seq && tail.off == t.off && tail.closed == t.closed &&                \
     tail.drops == t.drops)
#define SAME_WORD(s, w) (s.page == w.page && s.seq == w.seq && s.state == w.state)

inline copy_tail(to)
{
    to.seq = tail.seq;
    to.off = tail.off;
    to.closed = tail.closed;
    to.drops = tail.drops
}

inline copy_word(to, from)
{
    to.page = from.page;
    to.seq = from.seq;
    to.state = from.state
}

/* next_id - give the next number to the record that has just moved the tail. */
inline next_id(l)
{
    last_id++;
    id = last_id;
    printf("writer %d: record %d\n", l, id)
}

/* close_page - close the page that was published last, and publish the next page. */
inline close_page(l)
{
#ifndef FIRST_LATE
    atomic { MY_TURN(l) -> SLOT(published + 1).first = SLOT(published).first + SLOT(published).end };
    atomic { MY_TURN(l) -> SLOT(published + 1).lost = SLOT(published).lost + SLOT(published + 1).dropped };
#endif
#ifndef PUBLISHED_FIRST
    atomic {
        MY_TURN(l) -> SLOT(published).word.state = (SLOT(published).end -> UNREAD : FREE)
    };
    atomic { MY_TURN(l) -> published++ };
#else
    atomic { MY_TURN(l) -> published++ };
    atomic {
        MY_TURN(l) -> SLOT(published - 1).word.state = (SLOT(published - 1).end -> UNREAD : FREE)
    };
#endif
#ifdef FIRST_LATE
    atomic {
        MY_TURN(l) -> SLOT(published).first = SLOT(published - 1).first + SLOT(published - 1).end;
        SLOT(published).lost = SLOT(published - 1).lost + SLOT(published).dropped
    };
#endif
    printf("writer %d: page %d is published\n", l, published)
}

proctype writer(byte l)
{
    tail_t t;
    word_t w;
    byte id, p, off;

end:
    atomic {
        MY_TURN(l) && begun < EVENTS && !busy[l] -> begun++;
        busy[l] = true;
        depth++
    };

again:
    atomic { MY_TURN(l) -> copy_tail(t) };
    if
    :: !t.closed && t.off < ROOM ->
        atomic {
            MY_TURN(l);
            if
            :: SAME_TAIL(t) -> tail.off++; next_id(l)
            :: else -> goto again
            fi
        };
        p = SLOT(t.seq).word.page;
        off = t.off;
        goto fill
    :: !t.closed && t.off == ROOM ->
        atomic {
            MY_TURN(l);
            if
            :: SAME_TAIL(t) -> tail.closed = true; tail.drops = 0
            :: else
            fi
        };
        goto again
    :: t.closed
    fi;

claim:
    atomic { MY_TURN(l) -> copy_word(w, SLOT(t.seq + 1).word) };
    if
    :: w.state == OPEN && w.seq == t.seq + 1
#ifndef HELD_OVERWRITTEN
    :: w.state == OPEN && w.seq != t.seq + 1 -> goto drop
#endif
    :: w.state == UNREAD && !overwrite -> goto drop
    :: else ->
        atomic {
            MY_TURN(l);
            if
#ifdef CLAIMED_BLINDLY
            :: true ->
                SLOT(t.seq + 1).word.page = w.page;
#else
            :: SAME_WORD(SLOT(t.seq + 1).word, w) ->
#endif
                SLOT(t.seq + 1).word.seq = t.seq + 1;
                SLOT(t.seq + 1).word.state = OPEN;
                printf("writer %d: slot of page %d is claimed\n", l, t.seq + 1)
#ifndef CLAIMED_BLINDLY
            :: else -> goto claim
#endif
            fi
        }
    fi;
    atomic {
        MY_TURN(l);
        if
        :: SAME_TAIL(t) ->
            tail.seq = t.seq + 1;
            tail.off = 1;
            tail.closed = false;
            tail.drops = 0;
            next_id(l)
        :: else -> goto again
        fi
    };
    atomic { MY_TURN(l) -> SLOT(t.seq).end = t.off };
#ifdef DROPS_APART
    atomic { MY_TURN(l) -> SLOT(t.seq + 1).dropped = drops; drops = 0 };
#else
    atomic { MY_TURN(l) -> SLOT(t.seq + 1).dropped = t.drops };
#endif
    p = SLOT(t.seq + 1).word.page;
    off = 0;
    atomic { MY_TURN(l) -> pages[p].commit = 0 };

fill:
    atomic { MY_TURN(l) -> pages[p].cell[off] = id };
    goto commit;

drop:
#ifdef DROPS_APART
    atomic { MY_TURN(l) -> next_id(l) };
    atomic { MY_TURN(l) -> drops++ };
#else
    atomic {
        MY_TURN(l);
        if
        :: SAME_TAIL(t) -> tail.drops++; next_id(l)
        :: else -> goto again
        fi
    };
#endif

commit:
    atomic {
        MY_TURN(l);
        if
#ifndef ALL_PUBLISH
        :: depth > 1 -> depth--; goto done
#endif
        :: else
        fi
    };

publish:
    atomic { MY_TURN(l) -> copy_tail(t) };
    do
    :: published != t.seq -> close_page(l)
    :: published == t.seq -> break
    od;
    atomic { MY_TURN(l) -> pages[SLOT(published).word.page].commit = t.off };
    atomic { MY_TURN(l) -> depth-- };
#ifndef NO_LOOK_AGAIN
    atomic {
        MY_TURN(l);
        if
        :: !SAME_TAIL(t) -> depth++; goto publish
        :: else
        fi
    };
#endif

done:
    atomic {
        busy[l] = false;
        id = 0; /* so that there are fewer different states */
        p = 0;
        off = 0;
        t.seq = 0;
        t.off = 0;
        t.closed = false;
        t.drops = 0;
        w.page = 0;
        w.seq = 0;
        w.state = 0
    };
    goto end
}

/* look - let the reader read the numbers of slot @s, before it takes or copies its page.
 */
inline look(s)
{
    limit = s.end;
    first = s.first;
    lost = s.lost
}

/* give - give the reader the records [off, limit) of page @p. */
inline give(p)
{
    atomic {
        if
        :: off == 0 -> events = first; lost_before = lost
        :: else
        fi;
        do
        :: off < limit ->
            HOLDS(record_is_next, pages[p].cell[off] == events + lost_before + 1);
            printf("reader: record %d\n", pages[p].cell[off]);
            events++;
            off++
        :: else -> break
        od
    }
}

proctype reader()
{
    word_t w;
    byte at = 0, off = 0;   /* struct ring_cursor */
    byte events = 0, lost_before = 0;
    byte spare = SLOTS;
    byte pub, limit, first, lost, i;

end:
    do
    :: atomic {
        pub = published;
        if
        :: at + SLOTS <= pub -> at = pub - SLOTS + 1; off = 0
        :: else
        fi;
        limit = 0;
        first = 0;
        lost = 0;
        copy_word(w, SLOT(at).word)
    };
        if
        :: at == pub && (w.seq != pub || w.state == FREE) /* the ring went around */
        :: at == pub && w.seq == pub && w.state != FREE ->
            look(SLOT(at));
            limit = pages[w.page].commit;
            if
            :: limit <= off ->
                atomic {
                    if
                    :: begun == EVENTS && depth == 0 && pub == published && w.seq == pub &&
                       limit == pages[w.page].commit && !busy[0] && !busy[1] ->
                        HOLDS(all_are_read_or_lost,
                              events + lost_before + (tail.closed -> tail.drops : 0) == last_id);
                        break
                    :: else
                    fi
                }
            :: else ->
                i = off;
                do /* copy the page into the spare page, word by word */
                :: i < limit -> atomic { pages[spare].cell[i] = pages[w.page].cell[i]; i++ }
                :: else -> break
                od;
                i = 0;
#ifndef NO_SECOND_LOOK
                if
                :: SLOT(at).word.page != w.page || SLOT(at).word.seq != w.seq
                :: else -> give(spare)
                fi
#else
                give(spare)
#endif
            fi
        :: at != pub && (w.seq != at || w.state != UNREAD) ->
            HOLDS(only_the_overwritten_is_gone, w.seq != at || w.state == FREE);
            at++;
            off = 0
        :: at != pub && w.seq == at && w.state == UNREAD ->
#ifndef LOOK_AFTER
            look(SLOT(at));
#endif
            atomic {
                if
#ifdef NO_LAP
                :: SLOT(at).word.page == w.page && SLOT(at).word.state == UNREAD ->
#else
                :: SAME_WORD(SLOT(at).word, w) ->
#endif
                    SLOT(at).word.state = FREE;
#ifndef SPARE_LATE
                    SLOT(at).word.page = spare;
#endif
                    i = spare;
                    spare = w.page;
                    printf("reader: page %d is taken\n", at)
                :: else -> i = PAGES
                fi
            };
#ifdef LOOK_AFTER
            look(SLOT(at));
#endif
            if
            :: i != PAGES ->
                give(spare);
#ifdef SPARE_LATE
                SLOT(at).word.page = i
#endif
            :: else
            fi;
            atomic { at++; off = 0; i = 0 }
        fi
    od
}

init
{
    byte k;

    atomic {
        for (k : 0 .. SLOTS - 1) {
            slots[k].word.page = k;
            slots[k].word.seq = NO_SEQ
        };
        slots[0].word.seq = 0;
        slots[0].word.state = OPEN;
        tail.closed = true;
        k = 0;
        if
        :: overwrite = true
        :: overwrite = false
        fi;
        run writer(0);
        run writer(1);
        run reader()
    }
}
