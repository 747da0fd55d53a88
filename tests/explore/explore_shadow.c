/* explore_shadow.c - a call returns, and an NMI comes with a call of its own, while another
 * CPU looks for holders that no shadow entry points at: their return probes have gone.
 */
#include "kernel/base/compiler.h"
#include "probes/returns/holder.h"
#include "probes/returns/shadow.h"
#include "tests/explore/machine.h"

#define STACK 64 /* bytes of each stack */

const char kretprobe_trampoline[1];

static struct shadow *shadow;
static struct kretprobe goes, stays;

/* ---- the platform ---- */

void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg)
{
    fn(shadow, arg);
}

/* A CPU answers when it lets interrupts in, and is in no NMI. */
void __wrap_plat_sync_cores(void);
void __wrap_plat_sync_cores(void)
{
    explore_wait(machine_takes_irqs, &machine[0]);
}

/* ---- the actors ---- */

static void call(struct kretprobe *rp, uint32_t below)
{
    struct shadow_entry *e = shadow_claim(shadow);

    explore_check(e, "there is room");
    if (rp->holder->extras) {
        WRITE_ONCE(shadow->data_used, shadow->data_used + rp->holder->data_len);
        __atomic_add_fetch(&rp->holder->active, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&e->holder, rp->holder, __ATOMIC_RELAXED);
    __atomic_store_n(&e->below, below, __ATOMIC_RELEASE);
}

static struct kretprobe_holder *holder_of(struct kretprobe *rp)
{
    rp->data_size = 8;
    rp->maxactive = 4;
    rp->holder = holder_new(rp);
    return rp->holder;
}

static void start(void)
{
    struct kretprobe_holder *leaves = holder_of(&goes);

    holder_of(&stays);
    shadow = shadow_new(4096, STACK);
    explore_check(shadow && !shadow_add_data(shadow), "there is a shadow");
    call(&goes, 8);
    leaves->rp = NULL;
    holder_retire(leaves);
}

static void program(void)
{
    shadow_pop(shadow);
    call(&stays, 16);
    shadow_drop(shadow);
}

/* What an NMI calls returns before it ends. */
static void nmi(void)
{
    machine_self()->irqs_off = true;
    (void)READ_ONCE(shadow->last->holder);
    call(&stays, 32);
    shadow_pop(shadow);
    machine_self()->irqs_off = false;
}

static void sweep(void)
{
    holder_sweep();
    explore_seen(explore_blocks() > 3 ? "the holder stays" : "the holder is freed");
}

static void end(void)
{
    explore_check(shadow_is_empty(shadow) && !shadow->data_used, "no entry is in use");
    explore_check(!stays.holder->active, "no instance is active");
    holder_sweep();
    holder_retire(stays.holder);
    holder_sweep();
    shadow_free(shadow);
    explore_check(!explore_blocks(), "no memory is left");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "program", program, 0, EXPLORE_THREAD },
                { "nmi", nmi, 0, EXPLORE_NMI },
                { "sweep", sweep, 1, EXPLORE_THREAD } },
    .outcomes = { "the holder stays", "the holder is freed" },
};
