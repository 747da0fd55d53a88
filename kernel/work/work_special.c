/* work_special.c - a workload about a function of which the compiler makes a special
 * copy. gcc gives such copies names like special_weigh.constprop.0 or
 * special_weigh.isra.0. A kernel built with all optimizations has many of them; here,
 * only this file is built so, see the Makefile.
 */
#include "kernel/base/compiler.h"
#include "kernel/debug/ksyms.h"
#include "kernel/work/work.h"

#include <string.h>

struct load {
    uint64_t amount, unused[7];
};

/* special_weigh - compute a sum. Every caller passes the same @scale, and the function
 * reads only one field of @load. Each is a reason for the compiler to make a copy without
 * that parameter.
 */
static NOINLINE uint64_t special_weigh(const struct load *load, uint64_t scale)
{
    uint64_t sum = 0;

    for (uint64_t i = 1; i <= scale; i++)
        sum = work_hash(sum + load->amount * i);
    return sum;
}

/* special_name - return the name that special_weigh() has in this image. */
static const char *special_name(void)
{
    char base[16];
    struct ksym sym;

    for (size_t i = 0; ksyms_get(i, &sym); i++) {
        ksyms_base_name(sym.name, base, sizeof(base));
        if (strcmp(base, "special_weigh") == 0)
            return sym.name;
    }
    return "special_weigh";
}

static int special_run(struct work *w)
{
    struct load load = { 0 };

    w->function = special_name();
    for (unsigned i = 0; i < 100; i++) {
        load.amount = work_random(w);
        work_mix(w, special_weigh(&load, 7));
        w->calls++;
    }
    return 0;
}
WORKLOAD(special, special_run,
         "a function of which the compiler has made a special copy");
