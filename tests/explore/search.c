/* search.c - chooses which actor goes on, until all orders within the bound have been run.
 *
 * A schedule is run from its start each time. `path` has its choices: the next schedule has
 * the same ones up to the last that has an alternative left. A schedule is given up as soon
 * as it comes to a state that an earlier one has been in with as many preemptions left.
 */
#define _GNU_SOURCE
#include "tests/explore/parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEPS_MAX 200000
#define LARGE_PAGE (2u << 20)
#define STATES (1u << 22) /* places of the hash table; half of them are used at most */

/* One choice that differs from going on: at this step, this actor or this value. */
struct choice {
    uint64_t step;
    unsigned value;
};

enum mode { ALL, RANDOM, REPLAY };

static struct search {
    enum mode mode;
    unsigned bound, used; /* preemptions */
    uint64_t random;
    ucontext_t main;
    struct {
        unsigned pick, of;
    } path[STEPS_MAX];
    size_t depth, known; /* choices of this schedule; of them given by the last one */
    struct choice log[STEPS_MAX];
    size_t log_count, log_next; /* in a replay: of the file */
    uint64_t states[STATES];
    size_t state_count;
    uint64_t seen[8];
    volatile bool is_back; /* the schedule has ended */
    bool is_given_up;
    struct trace { /* of a replay */
        unsigned actor, kind;
        uintptr_t addr, pc;
    } trace[STEPS_MAX];
    size_t trace_count;
    const char *file;
    uint8_t *data;  /* of the program, as it was at its start */
    uint8_t *arena; /* what scenario.once has allocated, as it was then */
    size_t arena_len;
} * s;

struct explorer *x;

extern char __data_start[], _end[];

/* ---- failing ---- */

static const char *choice_name(const struct choice *c)
{
    return c->value < x->count ? scenario.actors[c->value].name : "";
}

static void schedule_write(void)
{
    FILE *out = fopen(s->file, "w");

    if (!out)
        return;
    for (size_t i = 0; i < s->log_count; i++)
        fprintf(out, "%llu %u %s\n", (unsigned long long)s->log[i].step, s->log[i].value,
                choice_name(&s->log[i]));
    fclose(out);
}

static const char *name(void)
{
    return program_invocation_short_name;
}

/* trace_print - print what the actors did to shared memory, and in which line. */
static void trace_print(void)
{
    char command[200];

    seen_shared_grew();
    fflush(stdout);
    for (size_t i = 0; i < s->trace_count; i++) {
        const struct trace *t = &s->trace[i];

        if (!seen_is_shared(t->addr))
            continue;
        snprintf(command, sizeof(command), "addr2line -spfe %s %#lx",
                 program_invocation_name, t->pc - 1);
        printf("# %-8s %s %#lx: ", scenario.actors[t->actor].name,
               t->kind == SEEN_READ ? "reads  " : "changes", t->addr);
        fflush(stdout);
        if (system(command))
            printf("%#lx\n", t->pc);
    }
}

void explore_fail(const char *what)
{
    x->is_running = false;
    if (s->mode == REPLAY)
        trace_print();
    printf("not ok 1 - %s: %s\n", name(), what);
    if (s->mode != REPLAY) {
        schedule_write();
        printf("# to see it: %s --replay %s\n", program_invocation_name, s->file);
    }
    printf("1..1\n");
    exit(1);
}

void explore_check(bool holds, const char *what)
{
    if (!holds)
        explore_fail(what);
}

static void on_crash(int sig)
{
    explore_fail(strsignal(sig));
}

/* ---- states ---- */

/* is_known_state - tell whether an earlier schedule was here with as few preemptions. */
static bool is_known_state(void)
{
    uint64_t hash = seen_mix(seen_memory(), (uint64_t)(x->now - x->fibers));
    size_t i;

    for (unsigned f = 0; f < x->count; f++)
        hash = seen_mix(hash, x->fibers[f].history);
    hash = (hash | 8) & ~7ul;
    for (i = hash / 8 % STATES; s->states[i]; i = (i + 1) % STATES)
        if ((s->states[i] & ~7ul) == hash) {
            if ((s->states[i] & 7) <= s->used)
                return true;
            s->states[i] = hash | s->used;
            return false;
        }
    if (s->state_count == STATES / 2)
        return false; /* no room to remember it: what follows it may be run again */
    s->state_count++;
    s->states[i] = hash | s->used;
    return false;
}

static uint64_t random_next(void)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    return seen_mix(seen_mix(s->random, 1), 2) >> 8;
}

/* ---- choosing ---- */

/* ASKS - ask a function of the scenario; the scheduler reads then, and no actor. */
#define ASKS(call)                                                                       \
    __extension__({                                                                      \
        bool holds_;                                                                     \
                                                                                         \
        x->is_running = false;                                                           \
        holds_ = call;                                                                   \
        x->is_running = true;                                                            \
        holds_;                                                                          \
    })

static bool is_in(const struct fiber *f)
{
    return f->is_started && !f->is_done;
}

/* is_below - does another actor on the CPU of @f keep it from running? An interrupt does not
 * begin inside of one of its own kind.
 */
static bool is_below(const struct fiber *f)
{
    const struct actor *a = &scenario.actors[f - x->fibers];

    for (unsigned i = 0; i < x->count; i++) {
        const struct actor *other = &scenario.actors[i];

        if (other == a || other->cpu != a->cpu || !is_in(&x->fibers[i]))
            continue;
        if (other->level > a->level ||
            (other->level == a->level && a->level && !f->is_started))
            return true;
    }
    return false;
}

static bool can_begin(const struct actor *a)
{
    if (a->level == EXPLORE_IRQ && x->irqs_off[a->cpu])
        return false;
    return !a->comes || ASKS(a->comes());
}

static bool can_run(const struct fiber *f)
{
    if (f->is_done || is_below(f) || (f->holds && !ASKS(f->holds(f->arg))))
        return false;
    return f->is_started || can_begin(&scenario.actors[f - x->fibers]);
}

static void give_up(void)
{
    s->is_given_up = true;
    setcontext(&s->main);
}

/* pick - return a number below @of: which of the alternatives comes in this schedule. */
static unsigned pick(unsigned of)
{
    if (s->mode == RANDOM)
        return (unsigned)(random_next() % of);
    if (s->depth == STEPS_MAX)
        explore_fail("no end");
    if (s->depth == s->known) {
        s->path[s->known].pick = 0;
        s->path[s->known++].of = of;
    }
    return s->path[s->depth++].pick;
}

static void note(unsigned value)
{
    if (s->log_count == STEPS_MAX)
        explore_fail("no end");
    s->log[s->log_count++] = (struct choice){ x->step, value };
}

static void run(struct fiber *next)
{
    struct fiber *before = x->now;

    if (next == before)
        return;
    x->now = next;
    next->is_started = true;
    swapcontext(&before->context, &next->context);
}

static bool is_next_of_file(unsigned *value)
{
    if (s->log_next == s->log_count || s->log[s->log_next].step != x->step)
        return false;
    *value = s->log[s->log_next++].value;
    return true;
}

/* choose - let another actor run, or go on. Returns when the caller's turn comes again. */
static void choose(void)
{
    struct fiber *list[EXPLORE_ACTORS];
    unsigned count = 0, which = 0, left = 0;
    struct fiber *self = x->now;
    bool may_stay = can_run(self);

    x->step++;
    if (s->mode == REPLAY && is_next_of_file(&which)) {
        run(&x->fibers[which]);
        return;
    }
    if (s->mode == REPLAY && may_stay)
        return;
    if (may_stay)
        list[count++] = x->now;
    for (unsigned i = 0; i < x->count; i++) {
        left +=
            is_in(&x->fibers[i]) || (!x->fibers[i].is_done && !scenario.actors[i].level);
        if (&x->fibers[i] != x->now && (!may_stay || s->used < s->bound) &&
            can_run(&x->fibers[i]))
            list[count++] = &x->fibers[i];
    }
    if (!count && !left) /* interrupts that never came do not matter */
        setcontext(&s->main);
    if (!count)
        explore_fail("all actors wait");
    if (x->step > STEPS_MAX)
        explore_fail("no end");
    if (s->mode == ALL && s->depth == s->known && is_known_state())
        give_up();
    self->history = seen_mix(self->history, 1); /* it is past this point */
    /* At random, most choices are to go on. */
    if (count > 1 && (s->mode == ALL || !may_stay || random_next() % 8 == 0))
        which = pick(count);
    if (list[which] == x->now)
        return;
    s->used += may_stay;
    note((unsigned)(list[which] - x->fibers));
    run(list[which]);
}

void search_access(bool is_shared, uintptr_t addr, unsigned kind, const void *pc)
{
    if ((is_shared || s->mode == REPLAY) && !x->is_together)
        choose();
    else
        x->step++;
    if (s->mode == REPLAY && s->trace_count < STEPS_MAX)
        s->trace[s->trace_count++] =
            (struct trace){ (unsigned)(x->now - x->fibers), kind, addr, (uintptr_t)pc };
}

/* ---- what scenarios call ---- */

void explore_point(void)
{
    if (x->is_running)
        choose();
}

void explore_together(bool on)
{
    if (on)
        explore_point();
    x->is_together = on;
}

/* look - ask @holds in one step, so that what it reads is known to be shared. */
static void look(bool (*holds)(const void *arg), const void *arg)
{
    x->is_together = true;
    holds(arg);
    x->is_together = false;
}

void explore_wait(bool (*holds)(const void *arg), const void *arg)
{
    if (!x->is_running) {
        explore_check(holds(arg), "what is waited for never comes");
        return;
    }
    x->now->holds = holds;
    x->now->arg = arg;
    choose();
    x->now->holds = NULL;
    look(holds, arg);
}

static bool something_changed(const void *arg)
{
    const struct fiber *f = arg;

    for (unsigned i = 0; i < f->read_count && i < SPIN_READS; i++)
        if (seen_has_changed(&f->reads[i]))
            return true;
    return false;
}

/* turn_of - hash this turn of a loop: where it ends, and what it has read. */
static uint64_t turn_of(const struct fiber *f, uintptr_t pc)
{
    uint64_t hash = pc;

    for (unsigned i = 0; i < f->read_count && i < SPIN_READS; i++)
        hash = seen_mix(seen_mix(hash, f->reads[i].addr), f->reads[i].value);
    return hash;
}

/* has_left_a_mark - does memory differ from what it was before this turn, by its writes? */
static bool has_left_a_mark(const struct fiber *f)
{
    if (f->write_count > SPIN_READS)
        return true;
    for (unsigned i = 0; i < f->write_count; i++)
        if (seen_has_changed(&f->writes[i]))
            return true;
    return false;
}

void explore_pause(void)
{
    uint64_t turn;

    if (!x->is_running)
        return;
    turn = turn_of(x->now, (uintptr_t)__builtin_return_address(0));
    if (!has_left_a_mark(x->now) && turn == x->now->turn)
        explore_wait(something_changed, x->now);
    else
        choose();
    x->now->turn = turn;
    x->now->write_count = 0;
    x->now->read_count = 0;
}

unsigned explore_choose(unsigned n)
{
    unsigned value = 0;

    if (!x->is_running)
        return 0;
    x->step++;
    if (s->mode == REPLAY) {
        is_next_of_file(&value);
    } else {
        value = pick(n);
        if (value)
            note(value);
    }
    x->now->history = seen_mix(x->now->history, value);
    return value;
}

unsigned explore_cpu(void)
{
    return x->now ? scenario.actors[x->now - x->fibers].cpu : 0;
}

enum explore_level explore_level(void)
{
    return x->now ? scenario.actors[x->now - x->fibers].level : EXPLORE_THREAD;
}

void explore_irqs(bool on)
{
    x->irqs_off[explore_cpu()] = !on;
    explore_point();
}

void explore_seen(const char *outcome)
{
    for (unsigned i = 0; scenario.outcomes[i]; i++)
        if (strcmp(scenario.outcomes[i], outcome) == 0) {
            s->seen[i]++;
            return;
        }
    explore_fail("an outcome is not in the scenario's list");
}

/* ---- a schedule ---- */

static void actor_main(void)
{
    const struct actor *a = &scenario.actors[x->now - x->fibers];

    for (;;) {
        a->run();
        x->now->history = seen_mix(x->now->history, 2);
        if (!a->comes)
            break;
        x->now->is_started = false; /* until it comes again */
        choose();
        x->now->is_started = true;
    }
    x->now->is_done = true;
    choose();
    abort(); /* nothing runs an actor that is done */
}

static void fiber_start(struct fiber *f)
{
    uint8_t *stack = f->stack;

    memset(f, 0, sizeof(*f));
    f->stack = stack;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_LEN;
    makecontext(&f->context, actor_main, 0);
}

static void begin(void)
{
    memcpy(__data_start, s->data, (size_t)(_end - __data_start));
    memset(x->arena, 0, (size_t)(x->arena_top - x->arena));
    memset(x->freed, 0, (size_t)(x->arena_top - x->arena) / 8 + 1);
    memset(x->irqs_off, 0, sizeof(x->irqs_off));
    x->arena_top = x->arena + s->arena_len;
    memcpy(x->arena, s->arena, s->arena_len);
    x->blocks = 0;
    x->step = 0;
    x->now = NULL;
    for (unsigned i = 0; i < x->count; i++)
        fiber_start(&x->fibers[i]);
    s->used = 0;
    s->depth = 0;
    s->is_given_up = false;
    if (s->mode != REPLAY)
        s->log_count = 0;
}

/* first - begin with each actor that can begin: that is no preemption. */
static void first(void)
{
    unsigned order[EXPLORE_ACTORS], count = 0, which = 0;

    for (unsigned i = 0; i < x->count; i++)
        if (scenario.actors[i].level == EXPLORE_THREAD)
            order[count++] = i;
    if (s->mode == REPLAY)
        is_next_of_file(&which);
    else {
        which = order[count > 1 ? pick(count) : 0];
        note(which);
    }
    x->now = &x->fibers[which];
    x->now->is_started = true;
    x->is_running = true;
    setcontext(&x->now->context);
}

static void schedule(void)
{
    begin();
    if (scenario.start)
        scenario.start();
    s->is_back = false;
    getcontext(&s->main);
    if (!s->is_back) {
        s->is_back = true;
        first();
    }
    x->is_running = false;
    x->now = NULL;
    if (!s->is_given_up && scenario.end)
        scenario.end();
}

/* advance - prepare the next schedule. Return: false: there is none. */
static bool advance(void)
{
    for (; s->known; s->known--)
        if (++s->path[s->known - 1].pick < s->path[s->known - 1].of)
            return true;
    return false;
}

/* all_up_to - run all schedules with at most @bound preemptions, or the first @max, and
 * print how many. Return: whether there are more.
 */
static bool all_up_to(unsigned bound, uint64_t max)
{
    uint64_t count;
    bool more;

    s->mode = ALL;
    s->bound = bound;
    do {
        count = 0;
        s->known = 0;
        s->state_count = 0;
        memset(s->states, 0, sizeof(s->states));
        do {
            schedule();
            count++;
            more = advance();
        } while (more && count < max);
    } while (seen_shared_grew());
    printf("# %s %llu schedules with up to %u preemptions\n",
           more ? "only the first" : "all", (unsigned long long)count, bound);
    return more;
}

static void at_random(uint64_t count, uint64_t seed)
{
    s->mode = RANDOM;
    s->bound = UINT32_MAX;
    s->random = seed;
    for (uint64_t i = 0; i < count; i++)
        schedule();
}

/* replay - run the schedule of a file. */
static int replay(const char *file)
{
    FILE *in = fopen(file, "r");
    unsigned long long step;
    unsigned value;

    s->mode = REPLAY;
    while (in && fscanf(in, "%llu %u%*[^\n]", &step, &value) == 2)
        s->log[s->log_count++] = (struct choice){ step, value };
    if (!in || !s->log_count) {
        fprintf(stderr, "%s: no schedule in %s\n", name(), file);
        return 2;
    }
    fclose(in);
    schedule();
    trace_print();
    printf("ok 1 - %s: this schedule does not fail\n1..1\n", name());
    return 0;
}

/* ---- the program ---- */

static void make_room(void)
{
    x = calloc(1, sizeof(*x));
    s = aligned_alloc(LARGE_PAGE,
                      (sizeof(*s) + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
    if (!x || !s)
        abort();
    madvise(s, sizeof(*s),
            MADV_HUGEPAGE); /* the states are looked up all over the table */
    memset(s, 0, sizeof(*s));
    while (scenario.actors[x->count].run)
        x->count++;
    for (unsigned i = 0; i < x->count; i++)
        x->fibers[i].stack = mmap(NULL, STACK_LEN, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    seen_start();
}

static void catch_crashes(void)
{
    stack_t own = { .ss_sp = malloc(STACK_LEN), .ss_size = STACK_LEN };
    struct sigaction crash = { .sa_handler = on_crash, .sa_flags = SA_ONSTACK };

    sigaltstack(&own, NULL);
    for (const int *sig = (const int[]){ SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0 };
         *sig; sig++)
        sigaction(*sig, &crash, NULL);
}

static int report(bool is_cut, uint64_t random, uint64_t seed)
{
    int missing = 0;

    for (unsigned i = 0; scenario.outcomes[i]; i++) {
        printf("# %llu times: %s\n", (unsigned long long)s->seen[i],
               scenario.outcomes[i]);
        missing += !s->seen[i];
    }
    printf("%s 1 - %s: %s, and %llu at random from seed %llu\n1..1\n",
           missing || is_cut ? "not ok" : "ok", name(),
           is_cut ? "the search was cut short" : "the schedules of its scenario",
           (unsigned long long)random, (unsigned long long)seed);
    return missing || is_cut;
}

static uint64_t option(int argc, char **argv, const char *word, uint64_t usual)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return strtoull(argv[i + 1], NULL, 0);
    return usual;
}

int main(int argc, char **argv)
{
    bool is_long = getenv("LONG");
    unsigned usual = scenario.preemptions ? scenario.preemptions : 2;
    unsigned bound = (unsigned)option(argc, argv, "--preemptions", usual + is_long);
    uint64_t random = option(argc, argv, "--random", is_long ? 50000 : 1000);
    uint64_t most = is_long || !scenario.is_cut ? 500000 : 30000;
    uint64_t max = option(argc, argv, "--most", most);
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    bool is_cut = false;
    char file[4096];

    setvbuf(stdout, NULL, _IOLBF, 0);
    make_room();
    catch_crashes();
    snprintf(file, sizeof(file), "%s.schedule", argv[0]);
    s->file = strdup(file);
    if (scenario.once)
        scenario.once();
    s->data = malloc((size_t)(_end - __data_start));
    memcpy(s->data, __data_start, (size_t)(_end - __data_start));
    s->arena_len = (size_t)(x->arena_top - x->arena);
    s->arena = malloc(s->arena_len);
    memcpy(s->arena, x->arena, s->arena_len);
    if (argc == 3 && strcmp(argv[1], "--replay") == 0)
        return replay(argv[2]);
    for (unsigned n = 0; n <= bound; n++)
        is_cut |= all_up_to(n, max) && n < usual + !scenario.is_cut;
    at_random(random, seed);
    return report(is_cut, random, seed);
}
