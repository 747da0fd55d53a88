/* fetch_parse.h - the compiler of fetch.h, which turns an expression into a program. */
#pragma once

#include "probes/trace/language/error.h"
#include "probes/trace/language/fetch.h"

/* The facts about the probe that the compiler needs. */
struct fetch_context {
    bool is_return;  /* a return probe: $retval is allowed */
    bool is_watch;   /* $addr and $value are allowed, registers and the stack are not */
    bool at_entry;   /* at the entry of a function: $argN is allowed */
    bool entry_args; /* $argN is allowed in a return probe as well */
    unsigned stack_words; /* the greatest N of $stackN */
    /* Set *@addr to the address of a symbol, plus a number. @text: @len bytes, "jiffies"
     * or "table+16". Return: 0; -ENOENT no such symbol; -EINVAL, -ERANGE not a number.
     */
    int (*symbol)(void *arg, const char *text, size_t len, uintptr_t *addr);
    /* As in struct def_host; may be NULL. */
    size_t (*param)(uintptr_t addr, unsigned i, const char **name);
    bool (*param_is_text)(uintptr_t addr, unsigned i);
    uintptr_t function; /* the probe is at the entry of this function; 0: of none */
    void *arg;          /* for @symbol */

    /* Filled in by the compiler. */
    uint16_t entry[FETCH_ENTRY_MAX]; /* the @numbers that fetch_entry() has to save */
    uintptr_t within;                /* out: the function of $depth(); 0: there is none */
    unsigned entry_count;
    int symbol_err; /* the errno of the first symbol that was not found */
};

/* fetch_parse - compile one expression with its type.
 * @text:   the expression, without the argument's name in front of it; must outlive @arg
 * @column: the column of @text in the line, for @error
 * @arg:    its type, count, text and code are filled in, but not its name and its offset
 * @code:   room for FETCH_CODE_MAX instructions; @arg->code points there
 *
 * Context: thread.
 * Return:  0; a negative errno, with @error filled. A symbol that is not found is no
 *          error here: it is noted in @context, because Linux reports it later than other
 *          errors.
 */
int fetch_parse(struct fetch_context *context, const char *text, unsigned column,
                struct fetch_arg *arg, struct fetch_insn *code,
                struct trace_error *error);

/* fetch_number, fetch_signed - read @len bytes that are a number and nothing else. As on
 * Linux, a prefix gives the base, and one '+' may stand in front. In front of a signed
 * number one '-' may stand instead.
 * Return: 0; -EINVAL; -ERANGE.
 */
int fetch_number(const char *text, size_t len, uint64_t *out);
int fetch_signed(const char *text, size_t len, int64_t *out);

/* fetch_name_is_good - tell whether @name, @len bytes, is a C identifier. */
bool fetch_name_is_good(const char *name, size_t len);
