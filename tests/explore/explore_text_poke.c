/* explore_text_poke.c - an instruction of five bytes is changed while a CPU executes it.
 * Until the CPU is synchronised it may fetch each byte as it was, or as it is.
 */
#include "kernel/base/compiler.h"
#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "probes/kprobe.h"
#include "tests/explore/text.h"

#include <string.h>

static const uint8_t old[] = { 0xb8, 0x11, 0x11, 0x11, 0x11 };
static const uint8_t new[] = { 0xb9, 0x22, 0x11, 0x11, 0x22 };
static struct kprobe probe;
static uintptr_t fn;
static bool is_done;

static void start(void)
{
    text_start();
    fn = text_function("fn", "b8 11 11 11 11 c3");
    probe = (struct kprobe){ .addr = fn, .flags = KPROBE_FLAG_DISABLED };
    explore_check(!register_kprobe(&probe), "the place has a site");
}

static void poke(const uint8_t *bytes)
{
    struct text_poke poke = { .addr = fn, .len = sizeof(new) };

    memcpy(poke.bytes, bytes, sizeof(new));
    plat_lock(PLAT_TEXT);
    text_poke_batch(&poke, 1);
    plat_unlock(PLAT_TEXT);
}

static void change(void)
{
    poke(new);
    WRITE_ONCE(is_done, true);
}

/* run_copy - the hit of a place that is being changed runs the old instruction. */
static void run_copy(uintptr_t at)
{
    explore_point();
    explore_check(!memcmp((const void *)at, old, sizeof(old)), "the copy is the old one");
    explore_seen("an int3");
}

static void run(void)
{
    bool is_behind = READ_ONCE(is_done);
    uint8_t bytes[sizeof(new)];
    uintptr_t ip = fn;

    do {
        text_fetch(fn, bytes, sizeof(bytes));
        explore_check(!is_behind || !memcmp(bytes, new, sizeof(new)),
                      "behind the change a CPU fetches the new instruction");
        if (bytes[0] == 0xcc) {
            ip = text_trap(fn);
            if (ip != fn)
                run_copy(ip);
            text_leave();
        } else if (!memcmp(bytes, old, sizeof(old))) {
            explore_seen("the old instruction");
            return;
        } else {
            explore_check(!memcmp(bytes, new, sizeof(new)), "an instruction is whole");
            explore_seen("the new instruction");
            return;
        }
    } while (ip == fn);
}

static void end(void)
{
    poke(old);
    explore_check(!unregister_kprobe(&probe), "the site goes");
}

const struct scenario scenario = {
    .once = text_once,
    .start = start,
    .end = end,
    .actors = { { "change", change, 0, EXPLORE_THREAD },
                { "program", run, 1, EXPLORE_THREAD } },
    .outcomes = { "the old instruction", "an int3", "the new instruction" },
};
