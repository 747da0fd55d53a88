/* shell_state.h - what a shell is made of; for the shell's own files only. */
#pragma once

#include "kernel/console/shell.h"
#include "kernel/console/shell_line.h"
#include "kernel/console/shell_machine.h"
#include "kernel/console/shell_parse.h"

#define SHELL_CTRL_C 0x03

/* Belongs to one thread; no lock. */
struct shell {
    struct console *con;  /* NULL inside shell_execute() */
    struct shell *parent; /* whose command this runs inside of; else NULL */
    unsigned flags;       /* SHELL_HUMAN, SHELL_MACHINE, SHELL_PLAIN */
    bool failed;          /* a typed line has failed */
    const char *tag;      /* of the request that is being answered; NULL: a typed line */
    bool has_progress;    /* a text of shell_progress() is on the terminal */
    bool is_telling;      /* what is printed is a message, which Ctrl-C does not drop */

    struct seq *in;      /* what came through the pipe; NULL: nothing */
    struct seq *out;     /* where the command prints to */
    struct seq *console; /* where errors go */

    struct seq lines; /* drains into the console, line by line */
    struct seq bytes; /* one line as it is sent, or what the editor draws */

    struct shell_pipeline pipeline; /* of the line that runs */
    struct line_editor editor;
    char line[SHELL_LINE_MAX + 1];
    char input[512]; /* read from the console, not yet fed to the editor */
    size_t input_len, input_at;
    const char *script; /* what is still to be taken as typed, before any input */
};

/* A person looks at a terminal, which obeys escape sequences. */
static inline bool shell_on_terminal(const struct shell *sh)
{
    return (sh->flags & (SHELL_HUMAN | SHELL_PLAIN)) == SHELL_HUMAN;
}

/* -- shell_output.c -- */

/* shell_output_init - make @sh print to its console. @sh->con is set.
 * Return:  0; -ENOMEM.
 */
int shell_output_init(struct shell *sh);

/* shell_output_flush - what has no line feed at its end goes to the console too. */
void shell_output_flush(struct shell *sh);

/* shell_echo - a line that came through a pipe, whole, as a terminal would have shown it. */
void shell_echo(struct shell *sh, const char *text, size_t len);

/* shell_send - send a string to the console at once, LF as CR LF. For prompts. */
void shell_send(struct shell *sh, const char *text);

/* -- shell_run.c -- */

/* shell_run_line - parse @line, in place, and run it.
 * Return:  its status.
 */
int shell_run_line(struct shell *sh, char *line);

/* -- shell_table.c -- */

/* shell_table_find - the command @name; NULL: none.
 * shell_table_get - the command at @idx in the order of names; NULL behind the last.
 */
const struct shell_command *shell_table_find(const char *name);
const struct shell_command *shell_table_get(unsigned idx);

/* shell_unknown_command - print that no command is called @name.
 * @head:  begins the message
 * Return: -ENOENT.
 */
int shell_unknown_command(struct shell *sh, const char *head, const char *name);

/* -- shell_complete.c -- */

struct shell_completion {
    const char *word;  /* up to the cursor; the whole of it, a string */
    const char *first; /* the first argument, if @word is a later one; else "" */
    struct seq names;  /* candidates, one per line */
    size_t count;
    struct nearest *nearest; /* not NULL: only the nearest candidate is kept, in there */
};

/* shell_complete - what may stand for the word that ends at the end of @line.
 * @line:  as typed, up to the cursor; changed
 * @out:   to be freed with shell_complete_free(); its words are pieces of @line
 */
void shell_complete(char *line, struct shell_completion *out);
void shell_complete_free(struct shell_completion *c);

/* shell_complete_common - how many bytes all candidates begin with alike. */
size_t shell_complete_common(const struct shell_completion *c);

/* shell_complete_list - the candidates in columns, to @out. */
void shell_complete_list(const struct shell_completion *c, struct seq *out);

/* -- shell_suggest.c -- */

/* shell_nearest_offer - shell_offer() of a completion that has @nearest. */
void shell_nearest_offer(struct nearest *nearest, const char *word, const char *text);

/* -- the commands, grouped by file; each ends with an entry without a name -- */

extern const struct shell_command shell_help_commands[];
extern const struct shell_command shell_file_commands[];
extern const struct shell_command shell_filter_commands[];
extern const struct shell_command shell_system_commands[];
extern const struct shell_command shell_power_commands[];

/* shell_usage - print how the command @argv[0] is called, and which of its @argc words is an
 * option that it does not have.  Return: -EINVAL.
 */
int shell_usage(struct shell *sh, int argc, char **argv);

/* shell_read_file - the whole text of a file, in reads of 4096 bytes, to @out; between
 * them it looks for Ctrl-C.
 * Return:  0; what vfs_open() or vfs_read() says; -EINTR. Nothing is printed about it.
 */
int shell_read_file(struct shell *sh, const char *path, struct seq *out);
