/* poke_targets.c - changes instructions of five bytes, and runs threads
 * that execute them.
 */
#include "tests/kernel/poke_targets.h"

#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "tests/kernel/ktest.h"

#define OLD 0x11111111u
#define NEW 0x22222222u
#define CODE_LEN 5

const uint8_t old_code[] = { 0xb8, 0x11, 0x11, 0x11, 0x11 };
const uint8_t new_code[] = { 0xb8, 0x22, 0x22, 0x22, 0x22 };

struct seen seen[MAX_CPUS], seen_in_nmi[MAX_CPUS];
struct kprobe target_probes[TARGETS];
unsigned targets_failed;

/* ---- making changes -------------------------------------------------------------------- */

void targets_in(uint32_t flags)
{
    struct kprobe *ps[TARGETS];

    for (size_t i = 0; i < TARGETS; i++) {
        target_probes[i] = (struct kprobe){ .addr = poke_targets[i], .flags = flags };
        ps[i] = &target_probes[i];
    }
    targets_failed += register_kprobes(ps, TARGETS) != 0;
}

void targets_out(void)
{
    struct kprobe *ps[TARGETS];

    for (size_t i = 0; i < TARGETS; i++)
        ps[i] = &target_probes[i];
    targets_failed += unregister_kprobes(ps, TARGETS) != 0;
    for (size_t i = 0; i < TARGETS; i++)
        targets_failed += memcmp((const void *)poke_targets[i], old_code, CODE_LEN) != 0;
}

void targets_begin(void)
{
    targets_failed = 0;
    targets_in(KPROBE_FLAG_DISABLED);
}

void targets_end(void)
{
    targets_out();
    ktest_report(targets_failed == 0, "%d places are as they were", TARGETS);
}

void poke(struct text_poke *pokes, size_t count)
{
    plat_lock(PLAT_TEXT);
    text_poke_batch(pokes, count);
    plat_unlock(PLAT_TEXT);
}

void targets_poke(const uint8_t *code)
{
    struct text_poke pokes[TARGETS] = { 0 };

    for (size_t i = 0; i < TARGETS; i++) {
        pokes[i].addr = poke_targets[i];
        pokes[i].len = CODE_LEN;
        memcpy(pokes[i].bytes, code, CODE_LEN);
    }
    poke(pokes, TARGETS);
}

void targets_poke_one(size_t i, const uint8_t *code)
{
    struct text_poke p = { .addr = poke_targets[i], .len = CODE_LEN };

    memcpy(p.bytes, code, CODE_LEN);
    poke(&p, 1);
}

/* Four batches in each round: all targets to the new code, one of them back to the old
 * code and to the new code once more, and all targets back to the old code.
 */
void targets_poke_rounds(uint64_t rounds)
{
    for (uint64_t n = 0; n < rounds; n++) {
        targets_poke(new_code);
        targets_poke_one(n % TARGETS, old_code);
        targets_poke_one(n % TARGETS, new_code);
        targets_poke(old_code);
        thread_yield();
    }
}

/* ---- running what changes -------------------------------------------------------------- */

static volatile bool running;

void targets_run(struct seen *s)
{
    for (size_t i = 0; i < TARGETS; i++) {
        uint32_t value = ((uint32_t(*)(void))poke_targets[i])();

        s->old += value == OLD;
        s->new += value == NEW;
        s->torn += value != OLD && value != NEW;
        s->calls++;
    }
}

static int run_forever(void *arg)
{
    while (running) {
        targets_run(arg);
        thread_yield();
    }
    return 0;
}

void runners_start(int tids[MAX_CPUS])
{
    memset(seen, 0, sizeof(seen));
    memset(seen_in_nmi, 0, sizeof(seen_in_nmi));
    running = true;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = ktest_thread(run_forever, &seen[cpu], BIT(cpu));
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        while (!seen[cpu].calls)
            thread_yield();
}

void runners_stop(const int tids[MAX_CPUS])
{
    running = false;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        thread_join(tids[cpu], NULL);
}

struct seen seen_sum(const struct seen *of)
{
    struct seen all = { 0 };

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        all.calls += of[cpu].calls;
        all.old += of[cpu].old;
        all.torn += of[cpu].torn;
    }
    return all;
}

void seen_report(const char *where, struct seen all)
{
    ktest_report(all.torn == 0, "%s: %lu calls, %lu saw the old one, none anything else",
                 where, all.calls, all.old);
}
