/* program_run.c - runs a program in C. Pure; any context.
 *
 * The functions belong to the re-entry core as the handlers of hits do not: a probe on them
 * is a hit inside of a hit.
 */
#include "probes/core/kprobe.h"
#include "probes/program/program_parts.h"

void program_run(const struct kprobe_program *program, uint64_t *words,
                 const struct program_hit *hit)
{
    struct program_state s = {
        .hit = hit,
        .words = words,
        .faults = &words[program->words],
    };

    while (s.next < program->count) {
        const struct kprobe_op *op = &program->ops[s.next++];

        program_rows[op->code]->run(&s, op);
    }
}
