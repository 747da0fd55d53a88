/* shell.h - the console's command interpreter, one thread per serial line.
 *
 * One shell serves people (prompt, editing, history, completion) and tools (requests
 * "@TAG COMMAND", answered in lines that begin "#TAG"). A command does not see the
 * difference: it prints with shell_printf() and returns 0 or a negative errno.
 *
 * Commands of other subsystems come in through shell_add_command().
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/debug/console.h"
#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHELL_PROMPT "sonde> "
#define SHELL_LINE_MAX 16384 /* bytes in one line; more is refused with E2BIG */

#define SHELL_HUMAN 1u   /* prompt, echo and line editing */
#define SHELL_MACHINE 2u /* lines that begin with '@' are requests of tools */
#define SHELL_PLAIN 4u /* with SHELL_HUMAN: a pipe, not a terminal; no escape sequences */

struct shell;
struct shell_completion;

struct shell_command {
    const char *name;
    const char *usage; /* the arguments, "" when there are none: "[-n N] [FILE]" */
    const char *help;  /* one line; further lines only in `help NAME` */

    /* run - do it. argv[0] is the name, argv[argc] NULL; the words may be changed.
     *
     * Context: thread of the shell, or of shell_execute().
     * Return:  0 or a negative errno, about which run has already printed a line with
     *          shell_error(). */
    int (*run)(struct shell *sh, int argc, char **argv);

    /* complete - offer what may stand for word @index (1 = first argument); shell_offer()
     * leaves out what does not fit what is typed already. NULL: nothing to offer.
     */
    void (*complete)(struct shell_completion *c, int index);
};

/* shell_init - make the built-in commands known.
 *
 * Context: boot, once, before shell_add_command().
 */
void shell_init(void);

/* shell_add_command - a socket: one more command. @cmd is borrowed for ever.
 *
 * Context: boot; shells read the table without a lock.
 * Return:  0; -EEXIST the name is taken; -ENOSPC.
 */
int shell_add_command(const struct shell_command *cmd);

/* shell_add_developer_command - the same for a command that serves the work on the kernel
 * itself: `help` lists it below the others.
 */
int shell_add_developer_command(const struct shell_command *cmd);

/* shell_has_command - does a struct shell_command in [@start, @end) stand in the table? It
 * cannot be taken out. Context: thread.
 */
bool shell_has_command(uintptr_t start, uintptr_t end);

/* shell_set_power - a socket: how the machine is switched off and reset.
 * @off:  its argument is true when the console is a pipe and a command on it has failed
 *
 * Neither function returns. Without them the commands answer ENOSYS.
 * Context: boot.
 */
void shell_set_power(void (*off)(bool failed), void (*reset)(void));

/* shell_start - serve @con by a thread of its own, for ever.
 * @flags:  SHELL_HUMAN, SHELL_MACHINE or both; SHELL_PLAIN as well
 * @script: lines that are taken as typed, before what comes from @con; borrowed for ever
 *
 * Return:  0; -ENOMEM.
 */
int shell_start(struct console *con, unsigned flags, const char *script);

/* shell_execute - run one command line without a console.
 * @line:  as typed, not a request; up to SHELL_LINE_MAX bytes
 * @out:   takes the output and the error messages
 *
 * Return:  the status of the line, 0 or a negative errno.
 */
int shell_execute(const char *line, struct seq *out);

/* shell_run_inside - run another command as a part of the one that runs: its output goes
 * where that of @sh goes, and the same Ctrl-C stops it.
 * @argv:  its @argc words, at least one; they are copied. A single word is a whole command
 *         line, with pipes, files and words of its own
 *
 * Return:  its status; what went wrong is told already.
 */
int shell_run_inside(struct shell *sh, int argc, char **argv);

/* shell_printf - print to wherever the command's output goes. */
void shell_printf(struct shell *sh, const char *fmt, ...) PRINTF(2, 3);

/* shell_out - the same as a text to write to, for functions that print to a seq. */
struct seq *shell_out(struct shell *sh);

/* shell_error - print "fmt: text of err" to the console, past pipes and files, and also when
 * Ctrl-C was pressed, which drops all other output.
 * @err:  an errno, positive or negative; 0: no text is added
 *
 * Return:  @err, negative, so that a command can `return shell_error(...)`.
 */
int shell_error(struct shell *sh, int err, const char *fmt, ...) PRINTF(3, 4);

/* shell_refuse - print a message that says everything by itself: no text of @err follows.
 * Return: @err, negative, so that a command can `return shell_refuse(...)`.
 */
int shell_refuse(struct shell *sh, int err, const char *fmt, ...) PRINTF(3, 4);

/* shell_interrupted - is there a Ctrl-C in the input? A command that loops asks, and
 * returns -EINTR. When it has ended, the input up to the Ctrl-C is dropped.
 */
bool shell_interrupted(struct shell *sh);

/* shell_parse_address - an address as people type it: 0x..., or 16 hexadecimal digits, as
 * lists show it. The name of a symbol is no address.
 * Return: 0 with @addr filled; -EINVAL.
 */
int shell_parse_address(const char *word, uintptr_t *addr);

/* shell_stop - shell_interrupted() of the struct shell @sh, for functions that are given what
 * to ask. Context: any thread that @sh waits for.
 */
bool shell_stop(void *sh);

/* shell_progress - how far a long command is; on a terminal only. Each text takes
 * the place of the one before; NULL takes the last one away, before other output.
 */
void shell_progress(struct shell *sh, const char *fmt, ...) PRINTF(2, 3);

/* shell_offer - a candidate for the word that is being completed.
 * @text:  the whole word; a blank is added behind it unless it ends in '/'
 */
void shell_offer(struct shell_completion *c, const char *text);

/* shell_word - the word that is being completed, as far as it was typed. */
const char *shell_word(const struct shell_completion *c);

/* shell_first - the first argument, when a later one is being completed; else "". */
const char *shell_first(const struct shell_completion *c);

/* Ready-made completions: a `complete` may be one of them or call them. */
void shell_complete_commands(struct shell_completion *c, int index);
void shell_complete_paths(struct shell_completion *c, int index);
void shell_complete_symbols(struct shell_completion *c, int index);

/* shell_complete_options - offer the options that @usage names, as in "[--post] [-n N]". */
void shell_complete_options(struct shell_completion *c, const char *usage);

#define SHELL_SUGGESTION_MAX 72 /* bytes of a suggestion, its NUL included */

/* shell_suggest - " (did you mean `NAME`?)" for a word that means nothing, as a part of the
 * message about it; "" when no name is near.
 * @buf:       SHELL_SUGGESTION_MAX bytes, for the text
 * @complete:  what would complete the word on Tab; asked for argument @index
 *
 * Context: thread.  Return: @buf.
 */
const char *shell_suggest(char *buf, const char *word,
                          void (*complete)(struct shell_completion *c, int index),
                          int index);

/* shell_blame_option - print which of @argc words is an option that @usage does not have,
 * if one is, and which option may have been meant.
 * @head:  begins the message, "probe add" for instance
 */
void shell_blame_option(struct shell *sh, const char *head, const char *usage, int argc,
                        char **argv);
