/* commands_cost.c - the part of `probe explain` about time: measures what a hit of this
 * kind costs on this machine now. The measurement probes a function of the benchmark and
 * calls it, because only the program may execute the instruction itself.
 */
#include "probes/bench/bench.h"
#include "probes/console/commands_explain.h"
#include "probes/explain/explain.h"

static const char *jump_kind(const struct explanation *e)
{
    switch (e->detour) {
    case DETOUR_PROGRAM:
        return "opt_count";
    case DETOUR_RETURN:
        return "kret_opt";
    case DETOUR_LIGHT:
        return "opt_light";
    case DETOUR_CALL:
        if (e->detour_no_image)
            return "opt_no_image";
        return e->jump.pad ? "opt_pad" : "opt";
    case DETOUR_POST:
        return "opt_posthandler";
    default:
        return NULL;
    }
}

static const char *trap_kind(const struct explanation *e)
{
    switch (e->way) {
    case WAY_BOOST:
        return "int3_boostable";
    case WAY_EMULATE:
        return e->with_post ? "int3_emulated_posthandler" : "int3_emulated";
    case WAY_STEP:
        return step_get_engine() == STEP_TF ? "int3_tf" : "int3_posthandler";
    default:
        return NULL;
    }
}

/* cost_kind - return the name that `bench hit` has for hits of this kind; NULL: none. */
static const char *cost_kind(const struct explanation *e)
{
    switch (e->jump.state) {
    case JUMP_IS_THERE:
    case JUMP_POSSIBLE:
        return jump_kind(e);
    case JUMP_OFF:
        return trap_kind(e);
    default:
        return NULL; /* at the benchmark's function such a probe would be a jump */
    }
}

void explain_print_cost(struct shell *sh, const struct explanation *e)
{
    const char *kind = cost_kind(e);
    struct bench_cost cost;
    int64_t cycles;

    if (!kind || bench_hit_like(kind, &cost)) {
        shell_printf(
            sh, "cost       not measured: a probe of this kind cannot be made now\n");
        return;
    }
    cycles = cost.median > 0 ? cost.median : 0;
    shell_printf(sh, "cost       %lu.%02lu cycles for each hit, as hit.%s\n",
                 (unsigned long)cycles / 100, (unsigned long)cycles % 100, kind);
}
