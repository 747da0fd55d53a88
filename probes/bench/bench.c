/* bench.c - adds the console's `bench`. What measures is a module, which the first `bench`
 * loads: users who measure nothing have no code of it. Code of hits stays in the image, so
 * that hits in the module's time are those of the image.
 */
#include "probes/bench/bench.h"

#include "kernel/base/compiler.h"
#include "kernel/module/module.h"

#define BENCH_FILE "/boot/bench.o"

int (*bench_module)(struct shell *sh, int argc, char **argv);

/* The functions of crowd.asm, which only `make bench` links. These weak symbols are defined,
 * not only declared: a weak symbol without a definition has address 0, which a copy of an
 * instruction that reads it could not reach.
 */
const struct bench_among bench_among_all __attribute__((weak)) = { .count = 0 };
uintptr_t bench_among_called[2] __attribute__((weak));

void bench_complete(struct shell_completion *c, int index UNUSED)
{
    static const char *const names[] = { "hit",    "scale",  "cache",  "counted",
                                         "starve", "marker", "events", "text" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        shell_offer(c, names[i]);
}

static int bench_run(struct shell *sh, int argc, char **argv)
{
    char why[MODULE_WHY_MAX] = "";
    int (*run)(struct shell * sh, int argc, char **argv) = READ_ONCE(bench_module);
    int err = run ? 0 : module_load_path(BENCH_FILE, false, why);

    if (!run)
        run = READ_ONCE(bench_module);
    return run ? run(sh, argc, argv)
               : shell_error(sh, err, "bench: " BENCH_FILE "%s%s", *why ? ": " : "", why);
}

static const struct shell_command command = {
    .name = "bench",
    .usage = "[GROUP[.PART]...]",
    .help =
        "measure what probes cost: sonde.NAME VALUE UNIT, one a line\n"
        "  hit       one hit, by the way its instruction is run\n"
        "  scale     registering many probes, their memory, and hits among them\n"
        "  cache     how many hits find their site in the CPU's own cache\n"
        "  counted   what work costs with every function, and every instruction, "
        "counted\n"
        "  starve    how late others wake beside handlers that take long\n"
        "  marker    a condition that is hardly ever true: as an immediate, a key, a "
        "load\n"
        "  events    a thousand events of the tracer: defined line by line, enabled, "
        "deleted\n"
        "  text      changes of text, by each engine: time, how long other CPUs stand\n"
        "Without a GROUP, all of them are measured. docs/bench.md tells what each figure "
        "means.",
    .run = bench_run,
    .complete = bench_complete,
};

INIT int probes_add_bench(void)
{
    return shell_add_command(&command);
}
