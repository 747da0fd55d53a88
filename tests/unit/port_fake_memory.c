/* port_fake_memory.c - port_fake's allocations. A test can choose one that fails. */
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

static unsigned fail_in; /* allocations until one fails; 0: none fails */
static bool has_failed;
static uint8_t boot_memory[1 << 16]; /* for allocations inside fake_boot() */
static size_t boot_used;
static bool booting;

void fake_fail_at(unsigned n)
{
    fail_in = n;
    has_failed = false;
}

bool fake_failed(void)
{
    return has_failed;
}

bool fake_must_fail(void)
{
    if (!fail_in || --fail_in)
        return false;
    has_failed = true;
    return true;
}

/* ---- boot ---- */

int fake_boot(int (*init)(void))
{
    int err;

    booting = true;
    err = init();
    booting = false;
    return err;
}

static void *boot_alloc(size_t len)
{
    void *p = boot_memory + boot_used;

    boot_used += (len + 15) / 16 * 16;
    if (boot_used > sizeof(boot_memory))
        abort();
    return p;
}

/* ---- platform.h ---- */

void *plat_alloc(size_t len)
{
    void *p;

    if (booting)
        return boot_alloc(len);
    fake_check_may_lock(__func__);
    if (fake.on_alloc)
        fake.on_alloc();
    if (fake_must_fail())
        return NULL;
    p = calloc(1, len ? len : 1);
    if (!p)
        abort();
    fake.blocks++;
    return p;
}

void plat_free(void *p)
{
    if ((uint8_t *)p >= boot_memory && (uint8_t *)p < boot_memory + sizeof(boot_memory))
        return; /* such memory is not counted */
    fake_check_may_lock(__func__);
    fake_note_free(p);
    fake.blocks -= p != NULL;
    free(p);
}
