/* program_join.c - stage 4: gives the program of a probe its memory, and a pre-handler that
 * runs it in C.
 */
#include "probes/jump/program_join.h"

#include "probes/core/life.h"
#include "probes/jump/counter.h"
#include "probes/program/program.h"

static int program_handler(struct kprobe *p, struct pt_regs *regs)
{
    uint64_t *words = plat_this_cpu()->plat.counters + p->program->first;

    program_run(p->program, words, regs, p->addr);
    return 0;
}

static bool has_handlers(const struct kprobe *p)
{
    return p->pre_handler || p->light_handler || p->post_handler || p->fault_handler ||
           p->kind != KPROBE_KIND_PROBE;
}

static void words_begin(const struct kprobe_program *program)
{
    for (size_t i = 0; i < program_words(program); i++)
        for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
            *counter_word(cpu, program->first + (uint32_t)i) =
                program_word_begins(program, i);
}

int program_join(struct kprobe *p, uintptr_t addr, struct probe_reject *why)
{
    struct kprobe_program *program = p->program;

    if (!program)
        return 0;
    if (has_handlers(p) || program_verify(program, NULL) || program->first)
        return probe_refuse(why, PROBE_BAD_PROGRAM, addr);
    if (program_words(program)) {
        program->first = counter_words_get(program_words(program));
        if (!program->first)
            return probe_refuse(why, PROBE_NO_MEMORY, addr);
        words_begin(program);
    }
    p->pre_handler = program_handler;
    return 0;
}

void program_part(struct kprobe *p)
{
    struct kprobe_program *program = p->program;

    if (!program || !p->pre_handler)
        return;
    p->pre_handler = NULL;
    if (program->first)
        counter_words_put(program->first, program_words(program));
    program->first = 0;
}

bool program_is_all(const struct kprobe *p)
{
    return p->program && p->pre_handler == program_handler;
}

uint64_t program_word_of(const struct kprobe_program *program, unsigned cpu, size_t i)
{
    return READ_ONCE(*counter_word(cpu, program->first + (uint32_t)i));
}

uint64_t program_sum(const struct kprobe_program *program, size_t i)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
        sum += program_word_of(program, cpu, i);
    return sum;
}
