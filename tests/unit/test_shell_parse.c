/* test_shell_parse.c - tests of the parser of command lines. */
#include "kernel/console/shell_parse.h"
#include "tests/unit/unit.h"

static struct shell_pipeline line;
static struct shell_parse_error error;
static int status;

/* parsed - parse @source, and return the result as text: words in [], stages with |
 * between them, then the target of the output.
 */
static const char *parsed(const char *source)
{
    static char text[8 * SHELL_WORDS_MAX];
    char *copy = strdup(source); /* the sanitizer catches accesses behind the text */
    size_t len = 0;

    text[0] = '\0';
    status = shell_parse(copy, &line, &error);
    for (unsigned s = 0; !status && s < line.stage_count; s++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", s ? "|" : "");
        for (int i = 0; i < line.stages[s].argc; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "[%s]",
                                    line.stages[s].argv[i]);
        CHECK(line.stages[s].argv[line.stages[s].argc] == NULL);
    }
    if (!status && line.target)
        snprintf(text + len, sizeof(text) - len, "%s%s", line.append ? ">>" : ">",
                 line.target);
    free(copy);
    return text;
}

UNIT_TEST(blanks_separate_words)
{
    CHECK_STR(parsed("cat /proc/version"), "[cat][/proc/version]");
    CHECK_STR(parsed("  a\t b  "), "[a][b]");
    CHECK_STR(parsed(""), "");
    CHECK_STR(parsed("   "), "");
    CHECK_EQ(status, 0);
}

UNIT_TEST(quotes_keep_everything)
{
    CHECK_STR(parsed("echo 'a  b|c>d#e$\"\\x41'"), "[echo][a  b|c>d#e$\"\\x41]");
    CHECK_STR(parsed("echo \"it's\""), "[echo][it's]");
    CHECK_STR(parsed("a'b c'd\"e f\"g"), "[ab cde fg]");
    CHECK_STR(parsed("echo ''"), "[echo][]");
    CHECK_STR(parsed("echo a\\ b"), "[echo][a\\][b]");
}

UNIT_TEST(operators_need_no_blanks)
{
    CHECK_STR(parsed("a|b|c>f"), "[a]|[b]|[c]>f");
    CHECK_STR(parsed("a>>f"), "[a]>>f");
    CHECK_STR(parsed("echo 1 > /f 2"), "[echo][1][2]>/f");
    CHECK_STR(parsed("> f"), ">f");
    CHECK_STR(parsed("echo '>'>'> f'"), "[echo][>]>> f");
    CHECK_STR(parsed("a 'x'|b"), "[a][x]|[b]");
}

UNIT_TEST(comments_begin_at_a_word)
{
    CHECK_STR(parsed("# all of it"), "");
    CHECK_STR(parsed("a b#c # d | e"), "[a][b#c]");
}

UNIT_TEST(bad_lines_say_where)
{
    parsed("echo 'abc");
    CHECK_EQ(status, -EINVAL);
    CHECK_EQ(error.column, 6);
    CHECK_STR(error.why, "a quote that is not closed");
    parsed("a >");
    CHECK_EQ(status, -EINVAL);
    CHECK_STR(error.why, "no file behind '>'");
    parsed("a > 'x");
    CHECK_EQ(status, -EINVAL);
    parsed("a > | b");
    CHECK_EQ(status, -EINVAL);
    parsed("| b");
    CHECK_EQ(status, -EINVAL);
    CHECK_EQ(error.column, 1);
    parsed("a |");
    CHECK_EQ(status, -EINVAL);
    CHECK_STR(error.why, "no command behind '|'");
    parsed("a | | b");
    CHECK_EQ(status, -EINVAL);
    parsed("a > f > g");
    CHECK_EQ(status, -EINVAL);
    parsed("a > f | b");
    CHECK_EQ(status, -EINVAL);
}

UNIT_TEST(counts_are_limited)
{
    char source[4 * SHELL_WORDS_MAX] = "";
    char pipes[64] = "a";

    for (int i = 0; i < SHELL_WORDS_MAX; i++)
        strcat(source, "x ");
    parsed(source);
    CHECK_EQ(status, 0);
    CHECK_EQ(line.stages[0].argc, SHELL_WORDS_MAX);
    strcat(source, "x");
    parsed(source);
    CHECK_EQ(status, -E2BIG);
    for (int i = 1; i < SHELL_STAGES_MAX; i++)
        strcat(pipes, "|a");
    parsed(pipes);
    CHECK_EQ(status, 0);
    CHECK_EQ(line.stage_count, SHELL_STAGES_MAX);
    strcat(pipes, "|a");
    parsed(pipes);
    CHECK_EQ(status, -E2BIG);
}

UNIT_TEST(random_lines_never_break_out)
{
    static const char letters[] = "ab '\"|># \t";
    char source[40];

    for (int i = 0; i < 20000; i++) {
        size_t len = unit_random() % (sizeof(source) - 1);

        for (size_t k = 0; k < len; k++)
            source[k] = letters[unit_random() % (sizeof(letters) - 1)];
        source[len] = '\0';
        parsed(source);
        CHECK(status == 0 || error.column <= len + 1);
    }
}

UNIT_TESTS()
