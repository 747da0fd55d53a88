/* shell_parse.c - splits command lines into words; see shell_parse.h. Pure. */
#include "kernel/console/shell_parse.h"

#include "kernel/base/err.h"

#include <string.h>

enum token { TOKEN_END, TOKEN_WORD, TOKEN_PIPE, TOKEN_INTO, TOKEN_ONTO, TOKEN_UNCLOSED };

struct lexer {
    char *line;
    char *at;    /* the next character to read */
    char *start; /* the beginning of the last token */
    char *word;  /* if the last token was a word: its text */
    char held;   /* the character that stood at @at before a NUL replaced it; or 0 */
};

/* peek - read the character at @at. The words are written over the line: a word never
 * needs more bytes than its source. But the NUL that ends the word may replace the
 * character behind it, which has not been read as a token yet. @held keeps this
 * character.
 */
static char peek(const struct lexer *lx)
{
    return lx->held ? lx->held : *lx->at;
}

static void lexer_skip(struct lexer *lx)
{
    lx->at++;
    lx->held = '\0';
}

static bool ends_plain_word(char c)
{
    return c == ' ' || c == '\t';
}

static bool ends_word(char c)
{
    return c == '\0' || ends_plain_word(c) || c == '|' || c == '>';
}

static enum token read_word(struct lexer *lx)
{
    char *to = lx->at;
    char quote = '\0';

    lx->word = to;
    for (;; lexer_skip(lx)) {
        char c = peek(lx);

        if (quote ? c == '\0' : ends_word(c))
            break;
        if (quote ? c == quote : (c == '\'' || c == '"'))
            quote = quote ? '\0' : c;
        else
            *to++ = c;
    }
    if (quote)
        return TOKEN_UNCLOSED;
    lx->held = *lx->at;
    *to = '\0';
    return TOKEN_WORD;
}

static enum token next_token(struct lexer *lx)
{
    while (ends_plain_word(peek(lx)))
        lexer_skip(lx);
    lx->start = lx->at;
    switch (peek(lx)) {
    case '\0':
    case '#':
        return TOKEN_END;
    case '|':
        lexer_skip(lx);
        return TOKEN_PIPE;
    case '>':
        lexer_skip(lx);
        if (peek(lx) != '>')
            return TOKEN_INTO;
        lexer_skip(lx);
        return TOKEN_ONTO;
    default:
        return read_word(lx);
    }
}

struct parser {
    struct lexer lx;
    struct shell_pipeline *out;
    struct shell_parse_error *error;
    size_t word_count; /* entries of out->words in use, with the NULLs of stages */
    size_t typed;      /* words, without the NULLs */
};

static int refuse_parse(struct parser *p, int err, const char *why)
{
    p->error->why = why;
    p->error->column = (size_t)(p->lx.start - p->lx.line) + 1;
    return err;
}

static struct shell_stage *last_stage(struct parser *p)
{
    return &p->out->stages[p->out->stage_count - 1];
}

static void begin_stage(struct parser *p)
{
    p->out->stage_count++;
    last_stage(p)->argc = 0;
    last_stage(p)->argv = &p->out->words[p->word_count];
}

static void end_stage(struct parser *p)
{
    p->out->words[p->word_count++] = NULL;
}

static int add_word(struct parser *p)
{
    if (p->typed == SHELL_WORDS_MAX)
        return refuse_parse(p, -E2BIG, "too many words");
    p->typed++;
    p->out->words[p->word_count++] = p->lx.word;
    last_stage(p)->argc++;
    return 0;
}

static int add_stage(struct parser *p)
{
    if (p->out->target)
        return refuse_parse(p, -EINVAL, "'|' behind a file that takes the output");
    if (last_stage(p)->argc == 0)
        return refuse_parse(p, -EINVAL, "no command before '|'");
    if (p->out->stage_count == SHELL_STAGES_MAX)
        return refuse_parse(p, -E2BIG, "too many '|'");
    end_stage(p);
    begin_stage(p);
    return 0;
}

static int set_target(struct parser *p, bool append)
{
    if (p->out->target)
        return refuse_parse(p, -EINVAL, "a second file to take the output");
    switch (next_token(&p->lx)) {
    case TOKEN_WORD:
        p->out->target = p->lx.word;
        p->out->append = append;
        return 0;
    case TOKEN_UNCLOSED:
        return refuse_parse(p, -EINVAL, "a quote that is not closed");
    default:
        return refuse_parse(p, -EINVAL, "no file behind '>'");
    }
}

static int take_token(struct parser *p, enum token token)
{
    switch (token) {
    case TOKEN_WORD:
        return add_word(p);
    case TOKEN_PIPE:
        return add_stage(p);
    case TOKEN_INTO:
    case TOKEN_ONTO:
        return set_target(p, token == TOKEN_ONTO);
    default:
        return refuse_parse(p, -EINVAL, "a quote that is not closed");
    }
}

int shell_parse(char *line, struct shell_pipeline *out, struct shell_parse_error *error)
{
    struct parser p = { .lx = { .line = line, .at = line }, .out = out, .error = error };
    enum token token;
    int err;

    out->stage_count = 0;
    out->target = NULL;
    out->append = false;
    begin_stage(&p);
    while ((token = next_token(&p.lx)) != TOKEN_END) {
        err = take_token(&p, token);
        if (err)
            return err;
    }
    end_stage(&p);
    if (out->stage_count > 1 && last_stage(&p)->argc == 0)
        return refuse_parse(&p, -EINVAL, "no command behind '|'");
    return 0;
}
