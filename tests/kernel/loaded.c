/* loaded.c - loads and unloads modules, and reaches what is in them. */
#include "tests/kernel/loaded.h"

#include "kernel/debug/ksyms.h"
#include "tests/kernel/ktest.h"

long guest_total;
bool guest_holds;
struct kprobe lent_probe;
struct watch lent_watch;
char loaded_why[MODULE_WHY_MAX];

int load_guest(void)
{
    int err = LOAD(guest);

    if (err)
        ktest_note("guest: %d %s", err, loaded_why);
    return err;
}

int unload(const char *name)
{
    int err = module_unload(name, loaded_why);

    if (err)
        ktest_note("%s: %d %s", name, err, loaded_why);
    return err;
}

uintptr_t of(const char *name)
{
    struct ksym sym;

    return ksyms_find(name, &sym) ? 0 : sym.start;
}

long call(const char *name, long a, long b)
{
    return ((long (*)(long, long))of(name))(a, b);
}

long value(const char *name)
{
    return *(const volatile long *)of(name);
}
