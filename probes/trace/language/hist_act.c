/* hist_act.c - sets and reads the variables of histograms at a hit, and carries out the
 * actions.
 *
 * Two hits may change one entry at the same time only if they have the same keys. Then
 * each value is that of one of them. But what save() keeps may be of both, as on Linux.
 */
#include "probes/trace/language/hist_parts.h"

#include "kernel/base/compiler.h"

#include <string.h>

static struct hist_word_of_var *words_of(const struct hist *hist,
                                         struct hist_entry *entry)
{
    return hist_entry_more(hist, entry);
}

/* read_variable - read a variable in the entry of @key of another histogram. */
static bool read_variable(const struct hist_ref *ref, const uint8_t *key, uint64_t *value)
{
    struct hist_entry *entry = hist_look(ref->of, key);
    struct hist_word_of_var *var;

    if (!entry)
        return false;
    var = &words_of(ref->of, entry)[ref->var];
    if (ref->unsets ? !__atomic_exchange_n(&var->is_set, 0, __ATOMIC_ACQ_REL)
                    : !__atomic_load_n(&var->is_set, __ATOMIC_ACQUIRE))
        return false;
    *value = __atomic_load_n(&var->value, __ATOMIC_RELAXED);
    return true;
}

bool hist_more_read(struct hist *hist, const uint8_t *key, uint64_t *refs)
{
    for (unsigned i = 0; i < hist->more->ref_count; i++)
        if (hist->more->ref[i].of && !read_variable(&hist->more->ref[i], key, &refs[i])) {
            __atomic_fetch_add(&hist->table->unmatched, 1, __ATOMIC_RELAXED);
            return false;
        }
    return true;
}

static uint64_t op_applied(enum hist_op_kind kind, uint64_t a, uint64_t b)
{
    switch (kind) {
    case HIST_ADD:
        return a + b;
    case HIST_SUBTRACT:
        return a - b;
    case HIST_MULTIPLY:
        return a * b;
    default:
        return b ? a / b : UINT64_MAX; /* as on Linux */
    }
}

static uint64_t value_of(const struct hist *hist, const struct hist_var *var,
                         const struct hist_hit *hit, const struct hist_time *time,
                         const uint64_t *refs)
{
    uint64_t stack[HIST_OPS_MAX];
    unsigned top = 0;

    for (unsigned i = 0; i < var->op_count; i++) {
        const struct hist_op *op = &var->op[i];

        if (op->kind == HIST_CONSTANT) {
            stack[top++] = op->value;
        } else if (op->kind == HIST_REF) {
            stack[top++] = refs[op->value];
        } else if (op->kind == HIST_FIELD) {
            stack[top++] = hist_number(hist, &op->part, hit, time);
        } else {
            top--;
            stack[top - 1] = op_applied(op->kind, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

void hist_more_set(struct hist *hist, struct hist_entry *entry,
                   const struct hist_hit *hit, const struct hist_time *time,
                   uint64_t *refs)
{
    struct hist_more *more = hist->more;
    struct hist_word_of_var *word = words_of(hist, entry);
    bool was_unread = false;

    for (unsigned i = 0; i < more->var_count; i++) {
        uint64_t value = value_of(hist, &more->var[i], hit, time, refs);

        for (unsigned j = 0; j < more->ref_count; j++)
            if (!more->ref[j].of && more->ref[j].var == i)
                refs[j] = value;
        __atomic_store_n(&word[i].value, value, __ATOMIC_RELAXED);
        was_unread |= __atomic_exchange_n(&word[i].is_set, 1, __ATOMIC_ACQ_REL) &&
                      READ_ONCE(more->var[i].readers);
    }
    if (was_unread)
        __atomic_fetch_add(&hist->table->unread, 1, __ATOMIC_RELAXED);
}

/* text_of - return the text of a field; "" if it could not be read. */
static const char *text_of(const struct hist_arg *arg, const struct hist_hit *hit,
                           size_t *size)
{
    const char *text =
        filter_field_string(&arg->op.part.field, hit->record, hit->len, hit->comm, size);

    return *size ? text : "";
}

static uint64_t argument_of(const struct hist *hist, const struct hist_arg *arg,
                            const struct hist_hit *hit, const struct hist_time *time,
                            const uint64_t *refs)
{
    if (arg->is_text)
        return (uintptr_t)text_of(arg, hit, &(size_t){ 0 });
    return arg->op.kind == HIST_REF ? refs[arg->op.value]
                                    : hist_number(hist, &arg->op.part, hit, time);
}

static void save_fields(const struct hist *hist, const struct hist_action *action,
                        uint8_t *words, const struct hist_hit *hit,
                        const struct hist_time *time)
{
    for (unsigned i = 0; i < action->arg_count; i++) {
        const struct hist_arg *arg = &action->arg[i];
        uint64_t value;

        if (arg->is_text) {
            size_t size;
            const char *text = text_of(arg, hit, &size);

            if (size > HIST_STRING_MAX - 1)
                size = HIST_STRING_MAX - 1;
            memset(words + arg->at, 0, HIST_STRING_MAX);
            memcpy(words + arg->at, text, strnlen(text, size));
        } else {
            value = argument_of(hist, arg, hit, time, NULL);
            memcpy(words + arg->at, &value, sizeof(value));
        }
    }
}

/* is_due - tell whether the action of onmax or onchange is due, and note the value. */
static bool is_due(const struct hist_action *action, struct hist_word_of_var *last,
                   uint64_t value)
{
    bool was_set = __atomic_exchange_n(&last->is_set, 1, __ATOMIC_RELAXED);
    uint64_t old = __atomic_load_n(&last->value, __ATOMIC_RELAXED);

    do {
        if (was_set && (action->handler == HIST_ONMAX ? value <= old : value == old))
            return false;
    } while (!__atomic_compare_exchange_n(&last->value, &old, value, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

static void emit_synth(const struct hist *hist, const struct hist_action *action,
                       const struct hist_hit *hit, const struct hist_time *time,
                       const uint64_t *refs)
{
    uint64_t values[HIST_ARGS_MAX];

    if (!hit->emit)
        return;
    for (unsigned i = 0; i < action->arg_count; i++)
        values[i] = argument_of(hist, &action->arg[i], hit, time, refs);
    hit->emit(hit, action->synth, values);
}

void hist_more_act(struct hist *hist, struct hist_entry *entry,
                   const struct hist_hit *hit, const struct hist_time *time,
                   const uint64_t *refs)
{
    uint8_t *words = hist_entry_more(hist, entry);

    for (unsigned i = 0; i < hist->more->action_count; i++) {
        const struct hist_action *action = &hist->more->action[i];

        if (action->handler != HIST_ONMATCH &&
            !is_due(action, (struct hist_word_of_var *)(void *)(words + action->at),
                    refs[action->tracked]))
            continue;
        if (action->synth)
            emit_synth(hist, action, hit, time, refs);
        else
            save_fields(hist, action, words, hit, time);
    }
}

/* ---- what did not match ---- */

uint64_t hist_unmatched(const struct hist *hist)
{
    return READ_ONCE(hist->table->unmatched);
}

/* is_unread - is a variable set that other histograms unset when they read it? */
static bool is_unread(const struct hist *hist, struct hist_entry *entry)
{
    const struct hist_word_of_var *word = words_of(hist, entry);

    for (unsigned i = 0; i < hist->more->var_count; i++)
        if (hist->more->var[i].readers && READ_ONCE(word[i].is_set))
            return true;
    return false;
}

uint64_t hist_unread(const struct hist *hist)
{
    uint64_t count = READ_ONCE(hist->table->unread);

    for (size_t i = 0; hist->more && i < 2 * hist->table->size; i++) {
        uint32_t seen = __atomic_load_n(&hist->table->slot[i], __ATOMIC_ACQUIRE);

        count += seen && is_unread(hist, hist_entry(hist, seen - 1));
    }
    return count;
}
