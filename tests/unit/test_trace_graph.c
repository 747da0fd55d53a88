/* test_trace_graph.c - tests of the tree that `trace graph` prints. */
#include "probes/console/trace_graph.h"
#include "tests/unit/unit.h"

static char said[4096];

static void say(void *to UNUSED, const char *text, size_t len)
{
    strncat(said, text, len);
}

static size_t symbol(char *buf, size_t size, uintptr_t addr)
{
    return addr < 128 ? (size_t)snprintf(buf, size, "%c+0x0/0x9", (char)addr) : 0;
}

static bool comm(int pid, char *buf)
{
    sprintf(buf, "t%d", pid);
    return true;
}

/* tree - print the tree of @text: for each return its thread, depth, and function. */
static const char *tree(const char *text)
{
    const struct print p = { .write = say, .symbol = symbol, .comm = comm };
    struct graph_call calls[32] = { 0 };
    size_t count = 0;

    for (; *text; text += text[3] ? 4 : 3, count++)
        calls[count] = (struct graph_call){ .pid = text[0] - '0',
                                            .depth = text[1] - '0',
                                            .func = (uint8_t)text[2],
                                            .ns = count };
    said[0] = '\0';
    trace_graph_print(calls, count, &p);
    return said + strcspn(said, "\n") + 1;
}

UNIT_TEST(a_caller_is_above_its_calls)
{
    CHECK_STR(tree("12c 11b 11d 10a 10a"), "t1-1\n"
                                           "           3    0  a\n"
                                           "           1    0    b\n"
                                           "           0    0      c\n"
                                           "           2    0    d\n"
                                           "           4    0  a\n");
}

UNIT_TEST(threads_have_trees_of_their_own)
{
    CHECK_STR(tree("11b 21c 10a 20a"), "t1-1\n"
                                       "           2    0  a\n"
                                       "           0    0    b\n"
                                       "t2-2\n"
                                       "           3    0  a\n"
                                       "           1    0    c\n");
}

UNIT_TEST(callers_may_be_missing)
{
    CHECK_STR(tree("12c 10a 13d 11b"), "t1-1\n"
                                       "           1    0  a\n"
                                       "           0    0      c\n"
                                       "           3    0    b\n"
                                       "           2    0        d\n");
    CHECK_STR(tree(""), "");
}

UNIT_TESTS()
