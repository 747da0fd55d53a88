/* port_fake.c - implements platform.h over arrays: start and end of the machine, locks,
 * counters, the clock. Text, memory and CPUs have files of their own; port_fake_parts.h
 * names them.
 */
#include "tests/unit/port_fake.h"

#include "probes/core/registry.h"
#include "probes/program/platform_program.h"
#include "tests/unit/port_fake_parts.h"

#include <stdarg.h>

struct fake_machine fake;
jmp_buf fake_bug_exit;
bool fake_bug_expected;

static bool held[2];

void fake_breach(const char *fn, const char *what)
{
    unit_check(false, fn, 0, what);
}

/* ---- start and end ---- */

void fake_start(void)
{
    fake_text_start();
    fake_cpus_start();
    memset(&fake, 0, sizeof(fake));
    fake_rooms_start();
    fake.cpus = 1;
    fake.stack_left = 16384;
    fake_known_start();
    fake_log_start(0);
    fake_fail_at(0);
    step_set_engine(STEP_INT3);
}

void fake_end(void)
{
    fake_fail_at(0);
    boundary_forget();
    fake_rooms_end();
    CHECK_EQ(registry_count(), 0);
    CHECK_EQ(fake.blocks, 0);
    CHECK_EQ(fake.exec_bytes, 0);
    CHECK_EQ(fake.pad_pages, 0);
    CHECK_EQ(fake.pad_frames, 0);
    CHECK_EQ(fake.irqs_off, 0);
    CHECK_EQ(plat_probe_cpu(fake.this_cpu)->depth, 0);
    CHECK(!held[PLAT_PROBES] && !held[PLAT_TEXT]);
    CHECK(fake_text_is_original());
}

/* ---- locks ---- */

void plat_lock(enum plat_lock lock)
{
    fake_check_may_lock(__func__);
    if (held[lock])
        fake_breach(__func__, "this lock is held already");
    if (lock == PLAT_PROBES && held[PLAT_TEXT])
        fake_breach(__func__, "PLAT_PROBES comes before PLAT_TEXT");
    held[lock] = true;
}

void plat_unlock(enum plat_lock lock)
{
    if (!held[lock])
        fake_breach(__func__, "this lock is not held");
    held[lock] = false;
}

bool plat_lock_held(enum plat_lock lock)
{
    return held[lock];
}

/* ---- counters and flags ---- */

int plat_counters_map(size_t count)
{
    if (!held[PLAT_PROBES])
        fake_breach(__func__, "PLAT_PROBES is not held");
    return count > FAKE_COUNTERS || fake_must_fail() ? -ENOMEM : 0;
}

void plat_preempt_enable(void)
{
    fake.preempt_enables++;
}

void plat_flags_as(unsigned long flags)
{
    fake.flags_as = flags;
}

/* ---- handlers ---- */

int plat_read(uint64_t *out, uintptr_t addr)
{
    if (fake_is_bad(addr, sizeof(*out)))
        return -EFAULT;
    memcpy(out, (const void *)addr, sizeof(*out));
    return 0;
}

int plat_load(uint64_t *out, uintptr_t addr)
{
    return plat_read(out, addr);
}

uintptr_t plat_seg_base(unsigned seg)
{
    return seg == INSN_SEG_FS ? fake.fs_base : fake.gs_base;
}

void plat_given_up(const struct kprobe *p, uintptr_t sp)
{
    fake.given_up = p;
    fake.given_up_sp = sp;
}

/* ---- the clock, the log, the end ---- */

uint64_t plat_clock_ns(void)
{
    return fake.ns;
}

void plat_log(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(fake.logged, sizeof(fake.logged), fmt, args);
    va_end(args);
    unit_note("%s", fake.logged);
}

void plat_bug(const char *what, uintptr_t where)
{
    if (fake_bug_expected)
        longjmp(fake_bug_exit, 1);
    printf("Bail out! probes: %s (at 0x%lx)\n", what, where);
    abort();
}
