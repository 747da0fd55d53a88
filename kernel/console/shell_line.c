/* shell_line.c - the line editor of the shell; see shell_line.h. Runs in the shell's
 * thread.
 *
 * Bytes become keys (several bytes of an escape sequence are one key), a key changes the
 * text, and the text is drawn later. Lines that begin with '@' come from tools, and are
 * taken unchanged.
 */
#include "kernel/console/shell_line.h"

#include "kernel/base/compiler.h"

#include <string.h>

#define CTRL(letter) ((letter)-64)

enum key {
    KEY_NONE,
    KEY_TEXT,
    KEY_ENTER,
    KEY_CANCEL,
    KEY_COMPLETE,
    KEY_CLEAR,
    KEY_REDRAW,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_OLDER,
    KEY_NEWER,
    KEY_BACKSPACE,
    KEY_DELETE,
    KEY_DELETE_OR_END,
    KEY_KILL_BEFORE,
    KEY_KILL_AFTER,
    KEY_KILL_WORD,
};

void line_init(struct line_editor *e, char *text, size_t size, bool takes_raw)
{
    memset(e, 0, sizeof(*e));
    e->text = text;
    e->size = size;
    e->takes_raw = takes_raw;
    line_reset(e);
}

void line_reset(struct line_editor *e)
{
    e->len = e->cursor = e->lost = e->shown = 0;
    e->text[0] = '\0';
    e->raw = false;
    e->redraw = false;
    e->tabs = 0;
    e->escape = ESCAPE_NONE;
    history_leave(&e->history);
}

/* -- from bytes to keys -------------------------------------------------------------- */

static const uint8_t control_keys[32] = {
    [CTRL('A')] = KEY_HOME,      [CTRL('B')] = KEY_LEFT,
    [CTRL('C')] = KEY_CANCEL,    [CTRL('D')] = KEY_DELETE_OR_END,
    [CTRL('E')] = KEY_END,       [CTRL('F')] = KEY_RIGHT,
    [CTRL('H')] = KEY_BACKSPACE, [CTRL('I')] = KEY_COMPLETE,
    [CTRL('J')] = KEY_ENTER,     [CTRL('K')] = KEY_KILL_AFTER,
    [CTRL('L')] = KEY_CLEAR,     [CTRL('M')] = KEY_ENTER,
    [CTRL('N')] = KEY_NEWER,     [CTRL('P')] = KEY_OLDER,
    [CTRL('R')] = KEY_REDRAW,    [CTRL('U')] = KEY_KILL_BEFORE,
    [CTRL('W')] = KEY_KILL_WORD,
};

/* key_of_letter - the key of "ESC [ parameters LETTER" and of "ESC O LETTER". */
static enum key key_of_letter(char letter)
{
    switch (letter) {
    case 'A':
        return KEY_OLDER;
    case 'B':
        return KEY_NEWER;
    case 'C':
        return KEY_RIGHT;
    case 'D':
        return KEY_LEFT;
    case 'F':
        return KEY_END;
    case 'H':
        return KEY_HOME;
    default:
        return KEY_NONE;
    }
}

/* key_of_number - the key of "ESC [ NUMBER ~". */
static enum key key_of_number(unsigned number)
{
    switch (number) {
    case 1:
    case 7:
        return KEY_HOME;
    case 3:
        return KEY_DELETE;
    case 4:
    case 8:
        return KEY_END;
    default:
        return KEY_NONE;
    }
}

static void begin_parameters(struct line_editor *e)
{
    e->escape = ESCAPE_PARAMETERS;
    e->parameter = 0;
    e->in_first = true;
}

static void take_parameter(struct line_editor *e, char byte)
{
    if (byte < '0' || byte > '9')
        e->in_first = false;
    else if (e->in_first && e->parameter < 100)
        e->parameter = e->parameter * 10 + (unsigned)(byte - '0');
}

/* continue_escape - take a further byte of an escape sequence. */
static enum key continue_escape(struct line_editor *e, char byte)
{
    if (e->escape == ESCAPE_START) {
        e->escape = ESCAPE_NONE;
        if (byte == '[' || byte == 'O')
            begin_parameters(e);
        return KEY_NONE;
    }
    if (byte >= 0x20 && byte <= 0x3f) {
        take_parameter(e, byte);
        return KEY_NONE;
    }
    e->escape = ESCAPE_NONE;
    return byte == '~' ? key_of_number(e->parameter) : key_of_letter(byte);
}

static enum key decode_key(struct line_editor *e, char byte)
{
    if (byte == 0x1b) {
        e->escape = ESCAPE_START;
        return KEY_NONE;
    }
    if (byte >= 0 && byte < 0x20) {
        e->escape = ESCAPE_NONE;
        return control_keys[(int)byte];
    }
    if (e->escape != ESCAPE_NONE)
        return continue_escape(e, byte);
    return byte == 0x7f ? KEY_BACKSPACE : KEY_TEXT;
}

/* -- from keys to text --------------------------------------------------------------- */

void line_insert(struct line_editor *e, const char *text, size_t len)
{
    size_t room = e->size - e->len;

    if (len > room) {
        e->lost += len - room;
        len = room;
    }
    if (e->cursor < e->len)
        e->redraw = true;
    memmove(e->text + e->cursor + len, e->text + e->cursor, e->len - e->cursor + 1);
    memcpy(e->text + e->cursor, text, len);
    e->len += len;
    e->cursor += len;
}

static void delete_range(struct line_editor *e, size_t start, size_t end)
{
    if (start == end)
        return;
    memmove(e->text + start, e->text + end, e->len - end + 1);
    e->len -= end - start;
    if (e->len == 0)
        e->lost = 0; /* nothing is left of the line that was too long */
    e->cursor = start;
    e->redraw = true;
}

static void move_to(struct line_editor *e, size_t cursor)
{
    e->redraw |= cursor != e->cursor;
    e->cursor = cursor;
}

/* word_start - find where the word before the cursor begins. Blanks between the word and
 * the cursor are skipped.
 */
static size_t word_start(const struct line_editor *e)
{
    size_t at = e->cursor;

    while (at > 0 && e->text[at - 1] == ' ')
        at--;
    while (at > 0 && e->text[at - 1] != ' ')
        at--;
    return at;
}

static void replace_all(struct line_editor *e, const char *text)
{
    if (!text)
        return;
    delete_range(e, 0, e->len);
    line_insert(e, text, strlen(text));
}

static enum line_event end_or_delete(struct line_editor *e)
{
    if (e->len == 0)
        return LINE_END;
    if (e->cursor < e->len)
        delete_range(e, e->cursor, e->cursor + 1);
    return LINE_MORE;
}

static void edit(struct line_editor *e, enum key key)
{
    size_t here = e->cursor;

    switch (key) {
    case KEY_LEFT:
        move_to(e, here - (here > 0));
        break;
    case KEY_RIGHT:
        move_to(e, here + (here < e->len));
        break;
    case KEY_HOME:
        move_to(e, 0);
        break;
    case KEY_END:
        move_to(e, e->len);
        break;
    case KEY_OLDER:
        replace_all(e, history_older(&e->history, e->text));
        break;
    case KEY_NEWER:
        replace_all(e, history_newer(&e->history));
        break;
    case KEY_BACKSPACE:
        delete_range(e, here - (here > 0), here);
        break;
    case KEY_DELETE:
        delete_range(e, here, here + (here < e->len));
        break;
    case KEY_KILL_BEFORE:
        delete_range(e, 0, here);
        break;
    case KEY_KILL_AFTER:
        delete_range(e, here, e->len);
        break;
    case KEY_KILL_WORD:
        delete_range(e, word_start(e), here);
        break;
    case KEY_REDRAW:
        line_forget_screen(e);
        break;
    default:
        break;
    }
}

static enum line_event feed_raw(struct line_editor *e, char byte)
{
    if (byte == CTRL('C'))
        return LINE_CANCEL;
    if (byte == '\r' || byte == '\n')
        return LINE_DONE;
    line_insert(e, &byte, 1);
    return LINE_MORE;
}

static enum line_event feed_key(struct line_editor *e, enum key key, char byte)
{
    switch (key) {
    case KEY_TEXT:
        line_insert(e, &byte, 1);
        return LINE_MORE;
    case KEY_ENTER:
        return LINE_DONE;
    case KEY_CANCEL:
        return LINE_CANCEL;
    case KEY_DELETE_OR_END:
        return end_or_delete(e);
    case KEY_COMPLETE:
        return LINE_COMPLETE;
    case KEY_CLEAR:
        return LINE_CLEAR;
    default:
        edit(e, key);
        return LINE_MORE;
    }
}

enum line_event line_put_byte(struct line_editor *e, char byte)
{
    bool second_half = e->after_cr && byte == '\n';
    enum key key;

    e->after_cr = byte == '\r';
    if (e->raw)
        return feed_raw(e, byte);
    if (second_half)
        return LINE_MORE;
    key = decode_key(e, byte);
    e->tabs = key == KEY_COMPLETE ? e->tabs + 1 : 0;
    if (key == KEY_TEXT && byte == '@' && e->len == 0 && e->takes_raw)
        e->raw = true;
    return feed_key(e, key, byte);
}

/* -- drawing ------------------------------------------------------------------------- */

/* A byte that is not printable is drawn as '?', so each byte takes one column. */
static void draw_line_part(const struct line_editor *e, size_t start, size_t end,
                           struct seq *out)
{
    for (size_t i = start; i < end; i++) {
        char c = e->text[i];

        seq_write(out, c >= 0x20 && c < 0x7f ? &c : "?", 1);
    }
}

/* Of a line that is wider than the screen, only a part with the cursor in it is drawn. */
static void draw_all(struct line_editor *e, const char *prompt, struct seq *out)
{
    size_t width = LINE_COLUMNS - 1 - strlen(prompt);
    size_t start = e->cursor > width ? e->cursor - width : 0;
    size_t end = e->len - start > width ? start + width : e->len;

    seq_printf(out, "\r%s", prompt);
    draw_line_part(e, start, end, out);
    seq_puts(out, "\033[K");
    if (e->cursor < end)
        seq_printf(out, "\033[%zuD", end - e->cursor);
    e->redraw = start > 0 || e->cursor < e->len;
    e->shown = e->len;
}

void line_draw(struct line_editor *e, const char *prompt, struct seq *out)
{
    size_t width = LINE_COLUMNS - 1 - strlen(prompt);

    if (e->raw || (!e->redraw && e->shown == e->len))
        return;
    if (e->redraw || e->len > width) {
        draw_all(e, prompt, out);
        return;
    }
    draw_line_part(e, e->shown, e->len, out);
    e->shown = e->len;
}

void line_forget_screen(struct line_editor *e)
{
    e->redraw = true;
}
