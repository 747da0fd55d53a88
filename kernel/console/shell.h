/* shell.h - the console's command interpreter, one thread for each serial line.
 *
 * A shell serves people (prompt, editing, history, completion) and tools (requests "@TAG
 * COMMAND", answered in lines that begin with "#TAG"). A command works alike for both: it
 * prints with shell_printf() and returns 0 or a negative errno.
 *
 * Other subsystems add their commands with shell_add_command().
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

#define SHELL_HUMAN 1u   /* print a prompt, echo the input, and let the user edit lines */
#define SHELL_MACHINE 2u /* lines that begin with '@' are requests of tools */
#define SHELL_PLAIN 4u /* with SHELL_HUMAN: a pipe, not a terminal; no escape sequences */

struct shell;
struct shell_completion;

struct shell_command {
    const char *name;
    const char *usage; /* the arguments, "" when there are none: "[-n N] [FILE]" */
    const char *help;  /* one line; `help NAME` prints further lines as well */

    /* run - execute the command. argv[0] is its name, argv[argc] is NULL. run may change
     * the words. Context: thread. It is that of the shell, or of shell_execute().
     * Return:  0 or a negative errno, after run has printed a line about it with
     *          shell_error().
     */
    int (*run)(struct shell *sh, int argc, char **argv);

    /* complete - offer what may stand for word @index (1 = first argument). shell_offer()
     * drops what does not begin with the letters that are typed already. NULL: there is
     * nothing to offer.
     */
    void (*complete)(struct shell_completion *c, int index);
};

/* shell_init - make the built-in commands known.
 * Context: boot, once, before shell_add_command().
 */
void shell_init(void);

/* shell_add_command - a socket: add a command to the table. @cmd is borrowed for ever.
 * Context: boot or thread. In `thread`, only the constructor of a module calls this; then
 * the module cannot go any more.
 * Return:  0; -EEXIST the name is taken; -ENOSPC.
 */
int shell_table_add(const struct shell_command *cmd, bool for_developers);
static inline int shell_add_command(const struct shell_command *cmd)
{
    return shell_table_add(cmd, false);
}

/* shell_add_developer_command - add a command that serves the work on the kernel itself,
 * as shell_add_command(). `help` lists such commands below the other commands.
 */
static inline int shell_add_developer_command(const struct shell_command *cmd)
{
    return shell_table_add(cmd, true);
}

/* shell_has_command - does the table have a struct shell_command that lies in [@start, @end)
 * or points there? A command cannot be taken out of the table. Context: thread.
 */
bool shell_has_command(uintptr_t start, uintptr_t end);

/* shell_table_find - find the command @name; NULL: there is none. Context: any. */
const struct shell_command *shell_table_find(const char *name);

/* shell_set_power - a socket: set the functions that switch off and reset the machine.
 * @off:  its argument is true when the console is a pipe and a command on it has failed
 *
 * Neither function returns. Until they are set, the commands answer ENOSYS.
 * Context: boot.
 */
void shell_set_power(void (*off)(bool failed), void (*reset)(void));

/* shell_start - create a thread that serves @con for ever.
 * @flags:  SHELL_HUMAN, SHELL_MACHINE or both; SHELL_PLAIN as well
 * @script: lines that the shell takes as if typed, before the input of @con; borrowed for
 *          ever
 *
 * Return:  0; -ENOMEM.
 */
int shell_start(struct console *con, unsigned flags, const char *script);

/* shell_execute - run one command line without a console.
 * @line:  as typed, not a request; up to SHELL_LINE_MAX bytes
 * @out:   takes the output and the error messages
 *
 * Context: thread or held. In `held`, only commands that only read
 *          (probes/gdb/gdb_monitor.c).
 * Return:  the status of the line, 0 or a negative errno.
 */
int shell_execute(const char *line, struct seq *out);

/* shell_run_around - do as shell_run_inside(). @around is called with @arg directly before
 * and directly behind each function of a command, and each access to the file that takes
 * the output, from this thread.
 */
int shell_run_around(struct shell *sh, int argc, char **argv,
                     void (*around)(void *arg, bool begins), void *arg);

/* shell_run_inside - run another command as a part of the command that runs now: the new
 * command prints to the output of @sh, and the same Ctrl-C stops both.
 * @argv:  its @argc words, at least one; they are copied. A single word is a whole
 *         command line, with pipes, files and words of its own
 *
 * Return:  its status. If it failed, the user has been told why.
 */
static inline int shell_run_inside(struct shell *sh, int argc, char **argv)
{
    return shell_run_around(sh, argc, argv, NULL, NULL);
}

/* shell_set_window - a socket: call @fn as @around is called, for commands that are typed at
 * a console for users; NULL: no more. Context: thread.
 */
void shell_set_window(void (*fn)(bool begins));

/* shell_run_beside - do as shell_run_around(), but in a thread of its own. What the command
 * prints is printed when it has ended; until then @watch is called ten times in a second,
 * from this thread.
 */
int shell_run_beside(struct shell *sh, int argc, char **argv,
                     void (*around)(void *arg, bool begins), void (*watch)(void *arg),
                     void *arg);

/* shell_is_read - is the output read on a terminal? Else it goes to a file or a tool. */
bool shell_is_read(const struct shell *sh);

/* shell_page - begin a page that takes the place of all that a terminal shows. If the output
 * goes elsewhere, nothing happens.  Return: how many lines a page may have; 0: any number.
 */
unsigned shell_page(struct shell *sh);

/* shell_printf - print to the output of the command: the console, a pipe or a file. The
 * console gets it when the thread owns no mutex.
 */
void shell_printf(struct shell *sh, const char *fmt, ...) PRINTF(2, 3);

/* shell_out - return this output as a seq, for functions that print to a seq. */
struct seq *shell_out(struct shell *sh);

/* shell_error - print "fmt: text of err" to the console, never into a pipe or a file. The
 * message is printed even after a Ctrl-C, which drops all other output.
 * @err:  an errno, positive or negative; 0: no text is added
 *
 * Return:  @err, negative, so that a command can `return shell_error(...)`.
 */
int shell_error(struct shell *sh, int err, const char *fmt, ...) PRINTF(3, 4);

/* shell_refuse - print a message like shell_error(), but without the text of @err,
 * because the message is complete.
 * Return: @err, negative, so that a command can `return shell_refuse(...)`.
 */
int shell_refuse(struct shell *sh, int err, const char *fmt, ...) PRINTF(3, 4);

/* shell_interrupted - is there a Ctrl-C in the input? A command with a long loop calls
 * this function in the loop, and returns -EINTR if there is. When the command has ended,
 * the shell drops the input up to the Ctrl-C.
 */
bool shell_interrupted(struct shell *sh);

/* shell_take_interrupt - if there is a Ctrl-C, drop it now, with what was typed before it. So
 * what the command prints from here on is printed, and goes through the pipe.
 * Return:  whether there was one.
 */
bool shell_take_interrupt(struct shell *sh);

/* shell_parse_address - read an address as users type it: 0x..., or 16 hexadecimal
 * digits, as lists print it. A word that is the name of a symbol is no address.
 * Return: 0 with @addr filled; -EINVAL.
 */
int shell_parse_address(const char *word, uintptr_t *addr);

/* shell_stop - do the same as shell_interrupted() for the struct shell @sh; for functions
 * that take such a function as a parameter. Context: thread. @sh waits for the thread.
 */
bool shell_stop(void *sh);

/* shell_progress - show how far a long command is; on a terminal only. Each text takes
 * the place of the text before. NULL removes the last text: a command does this before
 * other output. The call does not wait for the terminal, so the thread may own mutexes.
 */
void shell_progress(struct shell *sh, const char *fmt, ...) PRINTF(2, 3);
/* shell_show_progress - do the same with a text, for functions that take such a function
 * as a parameter.
 */
void shell_show_progress(void *sh, const char *text);

/* shell_offer - offer a candidate for the word that is being completed.
 * @text:  the whole word; a blank is added behind it unless it ends in '/' or ':'
 */
void shell_offer(struct shell_completion *c, const char *text);

/* shell_word - return the word that is being completed, as far as it was typed. */
const char *shell_word(const struct shell_completion *c);

/* shell_first - return the first argument if a later one is being completed; else "". */
const char *shell_first(const struct shell_completion *c);

/* Ready-made completions: a `complete` may be one of these functions, or call them. */
void shell_complete_commands(struct shell_completion *c, int index);
void shell_complete_paths(struct shell_completion *c, int index);
void shell_complete_symbols(struct shell_completion *c, int index);

/* shell_complete_options - offer the options that @usage names: "[--post] [-n N]". */
void shell_complete_options(struct shell_completion *c, const char *usage);

#define SHELL_SUGGESTION_MAX 72 /* bytes of a suggestion, its NUL included */

/* shell_suggest - write " (did you mean `NAME`?)" for a word that has no meaning; the
 * caller adds this text to its message. The text is "" if no name is near.
 * @buf:       SHELL_SUGGESTION_MAX bytes, for the text
 * @complete:  the function that completes the word on Tab; called for argument @index
 *
 * Context: any.  Return: @buf.
 */
const char *shell_suggest(char *buf, const char *word,
                          void (*complete)(struct shell_completion *c, int index),
                          int index);

/* shell_error_name - print a line like shell_error() about @word, with the same suggestion if
 * the word names nothing: "HEAD: WORD: No such file or directory (did you mean `NAME`?)".
 */
int shell_error_name(struct shell *sh, int err, const char *head, const char *word,
                     void (*complete)(struct shell_completion *c, int index), int index);

/* shell_blame_option - if one of the @argc words is an option that @usage does not have,
 * print this word, and which option may have been meant.
 * @head:  begins the message, "probe add" for instance
 */
void shell_blame_option(struct shell *sh, const char *head, const char *usage, int argc,
                        char **argv);
