/* program_join.c - stage 4: gives the program of a probe its memory, and a pre-handler
 * that runs it in C; exchanges it; and lists the programs of a site for its detour.
 */
#include "probes/jump/program_join.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/core/aggr.h"
#include "probes/core/life.h"
#include "probes/jump/counter.h"
#include "probes/jump/platform_jump.h"
#include "probes/program/program_code.h"
#include "probes/text/text_part.h"

/* The program may be exchanged at any time: it is read once. */
static int program_handler(struct kprobe *p, struct pt_regs *regs)
{
    const struct kprobe_program *program = READ_ONCE(p->program);

    kprobe_program_run(program,
                       &(struct program_hit){ .p = p, .ip = p->addr, .regs = regs });
    return 0;
}

void kprobe_program_run(const struct kprobe_program *program,
                        const struct program_hit *hit)
{
    program_run(program, plat_this_cpu()->plat.counters + program->first, hit);
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

void program_begin_words(const struct kprobe_program *program, size_t first, size_t count)
{
    uint64_t *words = plat_this_cpu()->plat.counters + program->first;

    for (size_t i = first; i < first + count; i++)
        WRITE_ONCE(words[i], program_word_begins(program, i));
}

/* program_begin - give @program its words. Return: 0; -EINVAL; -ENOMEM. */
static int program_begin(struct kprobe_program *program)
{
    if (program_verify(program, NULL) || program->first)
        return -EINVAL;
    if (!program_words(program))
        return 0;
    program->first = counter_words_get(program_words(program));
    if (!program->first)
        return -ENOMEM;
    words_begin(program);
    return 0;
}

static void program_give_back(struct kprobe_program *program)
{
    if (program->first)
        counter_words_put(program->first, program_words(program));
    program->first = 0;
}

/* program_is_all - is a program all that @p does? */
static bool program_is_all(const struct kprobe *p)
{
    return p->program && p->pre_handler == program_handler;
}

int program_join(struct kprobe *p, uintptr_t addr, struct probe_reject *why)
{
    int err;

    if (!p->program)
        return 0;
    if (program_is_all(p) && (p->program->first || !program_words(p->program)))
        return 0; /* it has waited for its text */
    err = (has_handlers(p) && !program_is_all(p)) || p->program->in_c
              ? -EINVAL
              : program_begin(p->program);
    if (err)
        return probe_refuse(why, err == -ENOMEM ? PROBE_NO_MEMORY : PROBE_BAD_PROGRAM,
                            addr);
    p->pre_handler = program_handler;
    return 0;
}

void program_part(struct kprobe *p)
{
    if (!p->program || p->pre_handler != program_handler)
        return;
    p->pre_handler = NULL;
    program_give_back(p->program);
}

/* ---- exchange ---- */

/* program_exchange_check - may the probe of @x get another program or handler? If a
 * program is given, it gets its words.
 */
static int program_exchange_check(const struct kprobe_exchange *x)
{
    const struct kprobe *p = x->p;

    if (!p->site || p->light_handler || p->post_handler || p->fault_handler ||
        p->kind != KPROBE_KIND_PROBE || !x->program == !x->handler)
        return -EINVAL;
    if (!x->program)
        return 0;
    return x->program->in_c ? -EINVAL : program_begin(x->program);
}

/* exchange_publish - from now on, hits begin with what @x says. A hit reads the handler,
 * and then the program: so the program is there before program_handler() is, and stays
 * while hits may be in program_handler(). Return: may hits run what was there before?
 */
static bool exchange_publish(const struct kprobe_exchange *x, struct site_list *list)
{
    bool was_program = x->p->program;

    if (x->program)
        WRITE_ONCE(x->p->program, x->program);
    __atomic_store_n(&x->p->pre_handler, x->program ? program_handler : x->handler,
                     __ATOMIC_RELEASE);
    if (!site_is_armed(x->p->site))
        return was_program;
    site_list_add(list, x->p->site);
    return true;
}

static int exchange_locked(const struct kprobe_exchange *x, size_t count,
                           struct site_list *list)
{
    bool in_use = false;
    int err = 0;
    size_t done;

    for (done = 0; done < count && !err; done++)
        err = program_exchange_check(&x[done]);
    if (err) {
        while (--done)
            if (x[done - 1].program)
                program_give_back(x[done - 1].program);
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        text_own_changes(x[i].p, -1);
        in_use |= exchange_publish(&x[i], list);
    }
    site_list_close(list);
    kprobe_arm(list->sites, list->count);
    if (in_use)
        plat_quiesce();
    for (size_t i = 0; i < count; i++) {
        x[i].p->program = x[i].program;
        text_own_changes(x[i].p, 1);
    }
    return 0;
}

COLD int kprobe_exchange(const struct kprobe_exchange *x, size_t count)
{
    struct site_list list;
    int err = register_check_caller(__func__, NULL);

    if (!err)
        err = site_list_make(&list, count, NULL);
    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = exchange_locked(x, count, &list);
    plat_unlock(PLAT_PROBES);
    site_list_free(&list);
    return err;
}

int kprobe_program_begin(struct kprobe_program *program)
{
    int err;

    plat_lock(PLAT_PROBES);
    err = program_begin(program);
    plat_unlock(PLAT_PROBES);
    return err;
}

void kprobe_program_end(struct kprobe_program *program)
{
    plat_lock(PLAT_PROBES);
    program_give_back(program);
    plat_unlock(PLAT_PROBES);
}

/* ---- the programs of a site ---- */

/* is_code - is all that a hit of @p does a program, a light handler, or only counting? */
static bool is_code(const struct kprobe *p)
{
    bool is_silent = !p->pre_handler && !p->post_handler;

    return p->kind == KPROBE_KIND_PROBE && (is_silent || program_is_all(p));
}

/* add_call - the program of probe @i is a call of @fn. */
static void add_call(struct programs *out, unsigned i, uintptr_t fn)
{
    out->light_op[i] = (struct kprobe_op)KPROBE_CALL(fn);
    out->light[i] = (struct kprobe_program){ .ops = &out->light_op[i], .count = 1 };
    out->of[i].program = &out->light[i];
}

static void programs_add(struct programs *out, struct kprobe *p)
{
    unsigned i = out->count++;

    out->of[i].probe = p;
    out->of[i].program = p->program;
    out->of[i].hits = plat_counter_disp(p->counter);
    if (p->program)
        out->of[i].words = plat_counter_disp(p->program->first);
    if (p->light_handler)
        add_call(out, i, (uintptr_t)p->light_handler);
}

bool programs_of(const struct site *site, struct programs *out)
{
    bool masked = false;

    *out =
        (struct programs){ .addr = site->addr, .returned = site_is_call(site) ? 8 : 0 };
    for (struct kprobe *p = site->probes; p; p = p->next) {
        if (aggr_is_off(p))
            continue;
        if (!is_code(p) || out->count == PROGRAM_PROBES_MAX)
            return false;
        masked |= p->flags & KPROBE_FLAG_IRQS_OFF;
        programs_add(out, p);
    }
    return !masked || !programs_call(out);
}

void programs_of_handler(const struct site *site, struct programs *out)
{
    *out = (struct programs){ .addr = site->addr };
    programs_add(out, site->probes);
    add_call(out, 0, (uintptr_t)site->probes->pre_handler);
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
