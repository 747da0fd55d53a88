/* shell_state.h - the state of a shell; only the files of the shell include it. */
#pragma once

#include "kernel/console/shell.h"
#include "kernel/console/shell_line.h"
#include "kernel/console/shell_machine.h"
#include "kernel/console/shell_parse.h"

#define SHELL_CTRL_C 0x03
#define SHELL_STACK_LEN (32 * 1024) /* of each thread that runs commands */
#define SHELL_DEPTH_MAX 8u          /* commands inside of each other share a stack */

/* Belongs to one thread, so it needs no lock. */
struct shell {
    struct console *con; /* NULL in shells of shell_execute() and shell_run_inside() */
    struct shell *outermost; /* of the shells that run inside of each other; or itself */
    unsigned depth;          /* how many shells are around this one */
    unsigned flags;          /* SHELL_HUMAN, SHELL_MACHINE, SHELL_PLAIN */
    bool failed;             /* a line that was typed has failed */
    const char *tag;         /* of the request that is answered; NULL: a typed line */
    bool has_progress;       /* a text of shell_progress() is on the terminal */
    size_t told; /* Ctrl-C does not drop so much of @lines: there are messages */

    struct seq *in;      /* the output of the stage before; NULL: no pipe */
    struct seq *out;     /* the output of the command */
    struct seq *console; /* the output for error messages */

    struct seq lines; /* its drain sends each complete line to the console */
    struct seq bytes; /* the bytes that are sent: one line, or what the editor draws */

    struct shell_pipeline pipeline; /* the line that runs now */
    struct line_editor editor;
    char line[SHELL_LINE_MAX + 1];
    char input[512]; /* read from the console, not yet fed to the editor */
    size_t input_len, input_at;
    void (*around)(void *arg, bool begins); /* see shell_run_around(); or NULL */
    void *around_arg;
    const char *script; /* the rest of the script, taken as typed before input */
};

/* Is the output shown on a terminal, which obeys escape sequences? */
static inline bool shell_on_terminal(const struct shell *sh)
{
    return (sh->flags & (SHELL_HUMAN | SHELL_PLAIN)) == SHELL_HUMAN;
}

/* Was the command typed at a console for users? One that runs inside of another was not. */
static inline bool shell_is_for_users(const struct shell *sh)
{
    return sh->flags & SHELL_HUMAN;
}

/* -- shell_run.c -- */

/* shell_run_into - do as shell_run_around(), but print to @out, and messages to @console. */
int shell_run_into(struct shell *sh, int argc, char **argv,
                   void (*around)(void *arg, bool begins), void *arg, struct seq *out,
                   struct seq *console);

/* -- shell_output.c -- */

/* shell_output_init - make @sh print to its console. The caller has set @sh->con.
 * Return:  0; -ENOMEM.
 */
int shell_output_init(struct shell *sh);

/* shell_output_flush - send the rest of the output as well, which has no line feed.
 * Context: thread. It owns no mutex, as in shell_send().
 */
void shell_output_flush(struct shell *sh);

/* shell_echo - print a line that came through a pipe as a terminal would show it. */
void shell_echo(struct shell *sh, const char *text, size_t len);

/* shell_send - send a string to the console at once, LF as CR LF. Used for prompts.
 * Context: thread. It owns no mutex, since the console may take nothing for ever.
 */
void shell_send(struct shell *sh, const char *text);

/* -- shell_run.c -- */

/* shell_run_line - parse @line, in place, and run it.
 * Return:  its status.
 */
int shell_run_line(struct shell *sh, char *line);

/* -- shell_table.c -- */

/* shell_table_get - return the command at @idx in the order of names; NULL behind the
 * last one.
 */
const struct shell_command *shell_table_get(unsigned idx);

/* shell_unknown_command - print that no command is called @name.
 * @head:  begins the message
 * Return: -ENOENT.
 */
int shell_unknown_command(struct shell *sh, const char *head, const char *name);

/* -- shell_complete.c -- */

struct shell_completion {
    const char *word;  /* the word up to the cursor, a string */
    const char *first; /* the first argument, if @word is a later argument; else "" */
    struct seq names;  /* the candidates, one in each line */
    size_t count;
    struct nearest *nearest; /* not NULL: *nearest keeps the nearest candidate only */
};

/* shell_complete - find what may stand for the word that ends at the end of @line.
 * @line:  as typed, up to the cursor; changed
 * @out:   to be freed with shell_complete_free(); its words are pieces of @line
 */
void shell_complete(char *line, struct shell_completion *out);
void shell_complete_free(struct shell_completion *c);

/* shell_complete_common - return how many bytes at the beginning are equal in all
 * candidates.
 */
size_t shell_complete_common(const struct shell_completion *c);

/* shell_complete_list - write the candidates to @out, in columns. */
void shell_complete_list(const struct shell_completion *c, struct seq *out);

/* -- shell_suggest.c -- */

/* shell_nearest_offer - keep the candidate @text in @nearest if it is nearer to @word.
 * shell_offer() calls this if the completion has a @nearest.
 */
void shell_nearest_offer(struct nearest *nearest, const char *word, const char *text);

/* -- the commands, one table for each file; an entry without a name ends it -- */

extern const struct shell_command shell_help_commands[];
extern const struct shell_command shell_file_commands[];
extern const struct shell_command shell_filter_commands[];
extern const struct shell_command shell_system_commands[];
extern const struct shell_command shell_power_commands[];

/* shell_usage - print how the command @argv[0] is called, and which of its @argc words is an
 * option that it does not have.  Return: -EINVAL.
 */
int shell_usage(struct shell *sh, int argc, char **argv);

/* shell_read_file - append the whole text of a file to @out. After each 4096 bytes it
 * checks for Ctrl-C.
 * Return:  0; an errno of vfs_open() or vfs_read(); -EINTR. It prints nothing about
 *          errors.
 */
int shell_read_file(struct shell *sh, const char *path, struct seq *out);
