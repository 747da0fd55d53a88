/* fetch_parse.h - the compiler of fetch.h: an expression in, a program out. */
#pragma once

#include "probes/trace/error.h"
#include "probes/trace/fetch.h"

/* What the compiler must know of the probe. */
struct fetch_context {
    bool is_return;       /* $retval can be had */
    bool is_watch;        /* $addr and $value can; neither registers nor the stack */
    bool at_entry;        /* $argN can */
    bool entry_args;      /* $argN can be had at a return too */
    unsigned stack_words; /* the greatest N of $stackN */
    /* @text: @len bytes, "jiffies" or "table+16"; the address of that symbol, plus the
     * number. Return: 0; -ENOENT no such symbol; -EINVAL, -ERANGE not a number.
     */
    int (*symbol)(void *arg, const char *text, size_t len, uintptr_t *addr);
    /* Parameter @i of the function at @addr, as struct def_host has it; or NULL. */
    size_t (*param)(uintptr_t addr, unsigned i, const char **name);
    bool (*param_is_text)(uintptr_t addr, unsigned i);
    uintptr_t function; /* at whose entry the probe is, or 0 */
    void *arg;

    /* Filled in. */
    uint16_t entry[FETCH_ENTRY_MAX]; /* what is to be saved at the entry */
    unsigned entry_count;
    int symbol_err; /* the first symbol that was not found: @symbol's answer */
};

/* fetch_parse - compile one expression with its type.
 * @text:   the expression, without a name before it; must outlive @arg
 * @column: where @text stands in the line, for @error
 * @arg:    its type, count and text are filled in, not its name and its offset
 * @code:   FETCH_CODE_MAX instructions; @arg->code points there
 *
 * Context: thread.
 * Return:  0; a negative errno, with @error filled. A symbol that is not found is no error
 *          yet, but noted in @context: Linux tells of it later.
 */
int fetch_parse(struct fetch_context *context, const char *text, unsigned column,
                struct fetch_arg *arg, struct fetch_insn *code,
                struct trace_error *error);

/* fetch_number, fetch_signed - @len bytes that are a number and nothing else, as Linux reads
 * it: base by its prefix, one '+' or, if signed, '-' before it.
 *
 * Return: 0; -EINVAL; -ERANGE.
 */
int fetch_number(const char *text, size_t len, uint64_t *out);
int fetch_signed(const char *text, size_t len, int64_t *out);

/* fetch_name_is_good - is it a C identifier? */
bool fetch_name_is_good(const char *name, size_t len);
