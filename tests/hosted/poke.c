/* poke.c - runs code in some threads, while another thread changes it. */
#define _GNU_SOURCE
#include "tests/hosted/poke.h"

#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/kprobe.h"
#include "tests/hosted/posix.h"
#include "tests/unit/symbol_list.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define RUNNERS 4
#define CODE_LEN 5 /* mov $imm32, %eax: a mixture of two of them returns a third value */

static const uint8_t old_code[] = { 0xb8, 0x11, 0x11, 0x11, 0x11, 0xc3 };
static const uint8_t new_code[] = { 0xb8, 0x22, 0x22, 0x22, 0x22, 0xc3 };
#define OLD_VALUE 0x11111111u
#define NEW_VALUE 0x22222222u

static struct {
    uint32_t (*code)(void);
    _Atomic bool stop;
    _Atomic unsigned long runs, torn;
    _Atomic int ready; /* runners that have run the code at least once */
} stress;

/* For poke_parked(): a thread that runs the code holds this lock for reading. Without the
 * preference, the thread that changes the code would wait until no reader is left by chance.
 */
static pthread_rwlock_t parked = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static bool parking;

static uint32_t run_code(void)
{
    uint32_t value;

    if (parking)
        pthread_rwlock_rdlock(&parked);
    value = stress.code();
    if (parking)
        pthread_rwlock_unlock(&parked);
    return value;
}

static void *runner(void *unused UNUSED)
{
    unsigned long runs = 0;

    posix_thread_enter();
    run_code();
    stress.ready++;
    for (; !stress.stop; runs++) {
        uint32_t value = run_code();

        if (value != OLD_VALUE && value != NEW_VALUE)
            stress.torn++;
    }
    stress.runs += runs;
    posix_thread_leave();
    return NULL;
}

void poke_parked(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    pthread_rwlock_wrlock(&parked);
    memcpy(posix_text_alias(addr), bytes, len);
    plat_sync_cores();
    pthread_rwlock_unlock(&parked);
}

void poke_bytewise(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    volatile uint8_t *to = posix_text_alias(addr);

    for (size_t i = 0; i < len; i++)
        to[i] = bytes[i];
}

void poke_unsynced(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    volatile uint8_t *to = posix_text_alias(addr);

    to[0] = INSN_INT3;
    for (size_t i = 1; i < len; i++)
        to[i] = bytes[i];
    to[0] = bytes[0];
}

void poke_engine(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    struct text_poke p = { .addr = addr, .len = (uint8_t)len };

    memcpy(p.bytes, bytes, len);
    plat_lock(PLAT_TEXT);
    text_poke_batch(&p, 1);
    plat_unlock(PLAT_TEXT);
}

static unsigned long poke_all(poke_protocol protocol, unsigned long budget)
{
    unsigned long i = 0;

    for (; i < budget && !stress.torn; i++)
        protocol((uintptr_t)stress.code, i % 2 ? old_code : new_code, CODE_LEN);
    return i;
}

struct poke_result poke_stress(poke_protocol protocol, size_t line_off,
                               unsigned long budget)
{
    uint8_t *text = posix_text_new(2 * 4096);
    /* Every address that the engine patches needs a site. */
    struct kprobe site = { .flags = KPROBE_FLAG_DISABLED };
    struct poke_result result;
    pthread_t threads[RUNNERS];

    site.addr = (uintptr_t)text + 4096 - 64 + line_off;
    stress.code = (uint32_t(*)(void))site.addr;
    posix_text_set(site.addr, old_code, sizeof(old_code));
    symbol_add("poked", site.addr, sizeof(old_code));
    if (register_kprobe(&site))
        abort();
    stress.stop = false;
    stress.runs = stress.torn = 0;
    stress.ready = 0;
    parking = protocol == poke_parked;
    for (int i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, runner, NULL);
    while (stress.ready < RUNNERS)
        sched_yield();
    result.pokes = poke_all(protocol, budget);
    stress.stop = true;
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    if (unregister_kprobe(&site))
        abort();
    result.runs = stress.runs;
    result.torn = stress.torn;
    return result;
}
