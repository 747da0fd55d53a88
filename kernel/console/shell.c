/* shell.c - the thread of a shell: it makes lines of the input, and answers each line.
 *
 * The shell runs a line that a user has typed, and shows its output. A line that begins
 * with '@' is a request of a tool; its output goes into the lines of the reply. Wrong
 * input cannot disturb the shell: a line that is too long, an unknown command or a bad
 * request is answered with an error, and then forgotten.
 *
 * A pipe instead of a terminal (SHELL_PLAIN) gets each line once, when it is complete,
 * because editing a line on the screen needs escape sequences.
 */
#include "kernel/console/shell.h"

#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"

#include <stdio.h>
#include <string.h>

#define END_OF_INPUT_NS UINT64_C(20000000)

/* -- input --------------------------------------------------------------------------- */

static void draw_prompt(struct shell *sh)
{
    if (!shell_on_terminal(sh))
        return;
    seq_resize(&sh->bytes, 0);
    sh->bytes.err = 0;
    line_draw(&sh->editor, SHELL_PROMPT, &sh->bytes);
    if (sh->bytes.len > 0)
        sh->con->write(sh->con, sh->bytes.text, sh->bytes.len);
}

/* end_line - show the rest of a complete line, and then @end. */
static void end_line(struct shell *sh, const char *end)
{
    if (sh->flags & SHELL_PLAIN)
        shell_echo(sh, sh->editor.text, sh->editor.len);
    draw_prompt(sh);
    shell_send(sh, end);
}

static bool more_input(struct shell *sh)
{
    if (sh->input_at < sh->input_len)
        return true;
    return sh->con->input_pending && sh->con->input_pending(sh->con);
}

/* next_byte - return the next byte of input. If no input is waiting, draw the line first.
 */
static char next_byte(struct shell *sh)
{
    if (*sh->script)
        return *sh->script++;
    if (!more_input(sh))
        draw_prompt(sh);
    while (sh->input_at == sh->input_len) {
        long len = sh->con->read(sh->con, sh->input, sizeof(sh->input));

        sh->input_at = 0;
        sh->input_len = len > 0 ? (size_t)len : 0;
    }
    return sh->input[sh->input_at++];
}

bool shell_take_interrupt(struct shell *sh)
{
    if (!shell_interrupted(sh))
        return false;
    sh = sh->outermost;
    while (next_byte(sh) != SHELL_CTRL_C)
        continue;
    if (sh->lines.err == -EINTR) {
        sh->lines.err = 0;
        seq_resize(&sh->lines, 0);
    }
    if (!sh->tag)
        shell_send(sh, "^C\n");
    return true;
}

/* -- lines --------------------------------------------------------------------------- */

static void new_line(struct shell *sh)
{
    line_reset(&sh->editor);
    if (sh->flags & SHELL_HUMAN)
        shell_send(sh, SHELL_PROMPT);
}

static int check_length(struct shell *sh)
{
    const struct line_editor *e = &sh->editor;

    if (e->lost == 0)
        return 0;
    return shell_error(sh, E2BIG, "sh: line of %zu bytes, the limit is %d",
                       e->len + e->lost, SHELL_LINE_MAX);
}

static void answer_request(struct shell *sh)
{
    struct machine_request request;
    char status_line[MACHINE_STATUS_MAX];
    int status;

    status = machine_parse(sh->line, sh->editor.len, &request);
    if (status == -EINVAL) {
        shell_error(sh, EINVAL, "sh: a request begins with @TAG and a blank");
        return;
    }
    sh->tag = request.tag;
    if (status)
        shell_error(sh, status, "sh: a request has no byte 0 in it");
    if (!status)
        status = check_length(sh);
    if (!status)
        status = shell_run_line(sh, request.command);
    shell_take_interrupt(sh);
    shell_output_flush(sh);
    sh->tag = NULL;
    sh->con->write(sh->con, status_line,
                   machine_format_status(status_line, request.tag, status));
}

static void answer_typed(struct shell *sh)
{
    int status;

    end_line(sh, "\n");
    status = check_length(sh);
    if (!status) {
        history_add(&sh->editor.history, sh->line);
        status = shell_run_line(sh, sh->line);
    }
    sh->failed |= status != 0;
    shell_output_flush(sh);
    shell_take_interrupt(sh);
}

/* refuse_typed - answer a line without '@' on a console that only tools use. */
static void refuse_typed(struct shell *sh)
{
    if (sh->editor.len > 0)
        shell_error(sh, EINVAL, "sh: only requests here: @TAG COMMAND");
}

/* answer_line - answer the line. A reply must begin at the beginning of a line, so if a
 * prompt was printed, a new line is begun first.
 */
static void answer_line(struct shell *sh)
{
    if (sh->editor.raw) {
        if (sh->flags & SHELL_HUMAN)
            shell_send(sh, "\n");
        answer_request(sh);
    } else if (sh->flags & SHELL_HUMAN) {
        answer_typed(sh);
    } else {
        refuse_typed(sh);
    }
    shell_output_flush(sh);
    new_line(sh);
}

/* -- keys that are more than editing ------------------------------------------------- */

/* show_line_again - draw prompt and line again after text was written below the line. */
static void show_line_again(struct shell *sh)
{
    line_forget_screen(&sh->editor);
    draw_prompt(sh);
}

static void show_candidates(struct shell *sh, const struct shell_completion *c)
{
    draw_prompt(sh);
    shell_send(sh, "\n");
    shell_complete_list(c, &sh->lines);
    shell_output_flush(sh);
    show_line_again(sh);
}

/* complete_line - insert the letters that all candidates have in common. If there are none, a
 * second Tab lists the candidates.
 */
static void complete_line(struct shell *sh)
{
    struct line_editor *e = &sh->editor;
    struct shell_completion c;
    size_t typed, common;
    char *copy = kmalloc(e->cursor + 1);

    if (!copy)
        return;
    memcpy(copy, e->text, e->cursor);
    copy[e->cursor] = '\0';
    shell_complete(copy, &c);
    typed = strlen(c.word);
    common = shell_complete_common(&c);
    if (common > typed)
        line_insert(e, c.names.text + typed, common - typed);
    if (c.count == 1 && !strchr("/:", c.names.text[common - 1]))
        line_insert(e, " ", 1);
    else if (c.count > 1 && common == typed && e->tabs > 1)
        show_candidates(sh, &c);
    shell_complete_free(&c);
    kfree(copy);
}

/* end_input - switch the machine off, because a Ctrl-D has ended the input. If more input
 * follows the Ctrl-D, it was only noise on the line, and is ignored. If `poweroff` fails,
 * it prints the reason itself.
 */
static void end_input(struct shell *sh)
{
    char command[] = "poweroff";

    thread_sleep_ns(END_OF_INPUT_NS);
    if (more_input(sh))
        return;
    shell_send(sh, "\n");
    shell_run_line(sh, command);
    shell_output_flush(sh);
    new_line(sh);
}

static void cancel(struct shell *sh)
{
    if (sh->flags & SHELL_HUMAN)
        end_line(sh, "^C\n");
    new_line(sh);
}

static void clear_screen(struct shell *sh)
{
    shell_send(sh, "\033[H\033[2J");
    show_line_again(sh);
}

/* Only users press these keys. In a text that comes through a pipe, a tab is a blank. */
static void handle_key(struct shell *sh, enum line_event event)
{
    if (event == LINE_END)
        end_input(sh);
    else if (shell_on_terminal(sh) && event == LINE_COMPLETE)
        complete_line(sh);
    else if (shell_on_terminal(sh) && event == LINE_CLEAR)
        clear_screen(sh);
    else if (event == LINE_COMPLETE)
        line_insert(&sh->editor, "\t", 1);
}

static void handle(struct shell *sh, enum line_event event)
{
    if (event == LINE_DONE)
        answer_line(sh);
    else if (event == LINE_CANCEL)
        cancel(sh);
    else if (sh->flags & SHELL_HUMAN)
        handle_key(sh, event);
}

/* -- the thread ---------------------------------------------------------------------- */

static _Noreturn void serve_lines(struct shell *sh)
{
    if (!(sh->flags & SHELL_HUMAN))
        shell_send(sh, "sonde: machine interface, version 1\n");
    new_line(sh);
    for (;;)
        handle(sh, line_put_byte(&sh->editor, next_byte(sh)));
}

static int shell_thread(void *arg)
{
    serve_lines(arg);
    return 0;
}

int shell_start(struct console *con, unsigned flags, const char *script)
{
    char name[THREAD_NAME_LEN];
    struct clone_args args = {
        .fn = shell_thread, .name = name, .stack_len = SHELL_STACK_LEN, .detached = true
    };
    struct shell *sh = kzalloc(sizeof(*sh));
    int tid;

    if (!sh)
        return -ENOMEM;
    sh->con = con;
    sh->flags = flags;
    sh->script = script;
    line_init(&sh->editor, sh->line, SHELL_LINE_MAX, flags & SHELL_MACHINE);
    args.arg = sh;
    snprintf(name, sizeof(name), "shell/%s", con->name);
    tid = shell_output_init(sh);
    if (!tid)
        tid = kernel_clone(&args);
    if (tid > 0)
        return 0;
    seq_free(&sh->lines);
    seq_free(&sh->bytes);
    kfree(sh);
    return tid;
}
