/* test_error.c - tests of probes/trace/error: the text of the file that lists refused
 * lines.
 */
#include "probes/trace/language/error.h"

#include "tests/unit/unit.h"

static struct error_log log;

UNIT_TEST(a_refusal_is_shown_with_its_line_and_a_caret)
{
    char text[512];

    error_log_clear(&log);
    error_log_add(&log, 12345678901234, "trace_kprobe",
                  trace_error_text(TRACE_BAD_REG_NAME), "p:ev vfs_read %none", 14);
    CHECK(error_log_print(&log, 0, text, sizeof(text)) == strlen(text));
    CHECK_STR(text, "[12345.678901] trace_kprobe: error: Invalid register name\n"
                    "  Command: p:ev vfs_read %none\n"
                    "                         ^\n");
    CHECK_EQ(error_log_print(&log, 1, text, sizeof(text)), 0);
}

UNIT_TEST(the_oldest_makes_room)
{
    char text[512], name[32];

    error_log_clear(&log);
    CHECK_EQ(error_log_print(&log, 0, text, sizeof(text)), 0);
    for (int i = 0; i < ERROR_LOG_KEPT + 3; i++) {
        snprintf(name, sizeof(name), "line %d", i);
        error_log_add(&log, 0, "trace_kprobe", "text", name, 0);
    }
    CHECK(error_log_print(&log, 0, text, sizeof(text)) > 0);
    CHECK_STR(text, "[    0.000000] trace_kprobe: error: text\n"
                    "  Command: line 3\n"
                    "           ^\n");
    CHECK(error_log_print(&log, ERROR_LOG_KEPT - 1, text, sizeof(text)) > 0);
    CHECK(strstr(text, "line 10\n"));
    CHECK_EQ(error_log_print(&log, ERROR_LOG_KEPT, text, sizeof(text)), 0);
}

UNIT_TEST(every_error_has_a_text)
{
    for (int id = TRACE_NO_ERROR + 1; id < TRACE_ERROR_COUNT; id++)
        CHECK(strlen(trace_error_text((enum trace_error_id)id)) > 10);
    CHECK_STR(trace_error_text(TRACE_NO_ERROR), "");
    CHECK_STR(trace_error_text(TRACE_ERROR_COUNT), "");
}

UNIT_TESTS()
