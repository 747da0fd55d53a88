/* error.h - says what is wrong with a line and where, with the texts of Linux, and keeps
 * a log of the last lines that were refused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A row is a name and a text. The rows have the order of Linux's table. */
#define TRACE_ERRORS(X)                                                                  \
    X(BAD_MAXACT_TYPE, "Maxactive is only for function exit")                            \
    X(BAD_MAXACT, "Invalid maxactive number")                                            \
    X(MAXACT_TOO_BIG, "Maxactive is too big")                                            \
    X(BAD_PROBE_ADDR, "Invalid probed address or symbol")                                \
    X(NON_UNIQ_SYMBOL, "The symbol is not unique")                                       \
    X(BAD_RETPROBE, "Retprobe address must be an function entry")                        \
    X(BAD_ADDR_SUFFIX, "Invalid probed address suffix")                                  \
    X(NO_GROUP_NAME, "Group name is not specified")                                      \
    X(GROUP_TOO_LONG, "Group name is too long")                                          \
    X(BAD_GROUP_NAME, "Group name must follow the same rules as C identifiers")          \
    X(NO_EVENT_NAME, "Event name is not specified")                                      \
    X(EVENT_TOO_LONG, "Event name is too long")                                          \
    X(BAD_EVENT_NAME, "Event name must follow the same rules as C identifiers")          \
    X(EVENT_EXIST, "Given group/event name is already used by another event")            \
    X(RETVAL_ON_PROBE, "$retval is not available on probe")                              \
    X(BAD_STACK_NUM, "Invalid stack number")                                             \
    X(BAD_ARG_NUM, "Invalid argument number")                                            \
    X(BAD_VAR, "Invalid $-variable specified")                                           \
    X(BAD_REG_NAME, "Invalid register name")                                             \
    X(BAD_MEM_ADDR, "Invalid memory address")                                            \
    X(BAD_IMM, "Invalid immediate value")                                                \
    X(IMMSTR_NO_CLOSE, "String is not closed with '\"'")                                 \
    X(FILE_ON_KPROBE, "File offset is not available with kprobe")                        \
    X(TOO_MANY_OPS, "Dereference is too much nested")                                    \
    X(DEREF_NEED_BRACE, "Dereference needs a brace")                                     \
    X(BAD_DEREF_OFFS, "Invalid dereference offset")                                      \
    X(DEREF_OPEN_BRACE, "Dereference brace is not closed")                               \
    X(COMM_CANT_DEREF, "$comm can not be dereferenced")                                  \
    X(BAD_FETCH_ARG, "Invalid fetch argument")                                           \
    X(ARRAY_NO_CLOSE, "Array is not closed")                                             \
    X(BAD_ARRAY_SUFFIX, "Array has wrong suffix")                                        \
    X(BAD_ARRAY_NUM, "Invalid array size")                                               \
    X(ARRAY_TOO_BIG, "Array number is too big")                                          \
    X(BAD_TYPE, "Unknown type is specified")                                             \
    X(BAD_STRING, "String accepts only memory argument")                                 \
    X(BAD_SYMSTRING, "Symbol String doesn't accept data/userdata")                       \
    X(BAD_BITFIELD, "Invalid bitfield")                                                  \
    X(ARG_NAME_TOO_LONG, "Argument name is too long")                                    \
    X(NO_ARG_NAME, "Argument name is not specified")                                     \
    X(BAD_ARG_NAME, "Argument name must follow the same rules as C identifiers")         \
    X(USED_ARG_NAME, "This argument name is already used")                               \
    X(ARG_TOO_LONG, "Argument expression is too long")                                   \
    X(NO_ARG_BODY, "No argument expression")                                             \
    X(BAD_INSN_BNDRY, "Probe point is not an instruction boundary")                      \
    X(FAIL_REG_PROBE, "Failed to register probe event")                                  \
    X(DIFF_PROBE_TYPE, "Probe type is different from existing probe")                    \
    X(DIFF_ARG_TYPE, "Argument type or name is different from existing probe")           \
    X(SAME_PROBE, "There is already the exact same probe event")                         \
    X(NO_BTFARG, "This variable is not found at this probe point")                       \
    X(BAD_TYPE4STR, "This type does not fit for string.")                                \
    X(NOFENTRY_ARGS, "$arg* can be used only on function entry or exit")                 \
    X(NEED_STRING_TYPE, "$comm and immediate-string only accepts string type")           \
    X(TOO_MANY_ARGS, "Too many arguments are specified")                                 \
    X(TOO_MANY_EARGS, "Too many entry arguments specified")                              \
    X(EVENT_TOO_BIG, "Event too big (too many fields?)")                                 \
    X(BAD_AGENT, "Invalid program of gdb")                                               \
    X(BAD_ACCESS_FMT, "Access memory address requires @")                                \
    X(BAD_ACCESS_TYPE, "Bad memory access type")                                         \
    X(BAD_ACCESS_LEN, "This memory access length is not supported")                      \
    X(BAD_ACCESS_ADDR, "Invalid access memory address")                                  \
    X(WPROBE_NO_SIBLING, "A wprobe event has one probe only")                            \
    X(WPROBE_NOT_FOUND, "There is no such wprobe event")                                 \
    X(WPROBE_BUSY, "The wprobe event is enabled")                                        \
    X(NO_EVENT_FIELD, "The event has no such field")                                     \
    X(WPROBE_BAD_FIELD, "The field is not as long as an address")

#define TRACE_ERROR_ID(name, text) TRACE_##name,
enum trace_error_id {
    TRACE_NO_ERROR,
    TRACE_ERRORS(TRACE_ERROR_ID) TRACE_ERROR_COUNT,
};

/* Why a line was refused. */
struct trace_error {
    int err;                /* negative errno */
    enum trace_error_id id; /* TRACE_NO_ERROR: the line gets no entry in the log */
    unsigned column;        /* of the caret, when single blanks join the line's words */
};

/* trace_error_text - return the text of an error; "" for TRACE_NO_ERROR. Context: any. */
const char *trace_error_text(enum trace_error_id id);

#define ERROR_LOG_KEPT 8       /* lines */
#define ERROR_LOG_COMMAND 4096 /* bytes of each, NUL included */

/* The last refusals of one instance of the tracer. Zeroed, it is empty. */
struct error_log {
    struct error_entry {
        uint64_t ns; /* the time of the refusal, on the clock of the trace */
        const char *subsystem, *text;
        unsigned column;
        char command[ERROR_LOG_COMMAND];
    } entry[ERROR_LOG_KEPT];
    unsigned next, count;
};

/* error_log_add - note a refusal. In a full log the new entry replaces the oldest one.
 * @subsystem: "trace_kprobe", "event filter parse error", "hist:G:E"; must outlive @log
 * @text:      the text of the error; must outlive @log
 * @command:   the refused line; copied, and cut at ERROR_LOG_COMMAND - 1 bytes
 *
 * Context: thread.  Locks: the caller's lock held. So it is for the two functions below.
 */
void error_log_add(struct error_log *log, uint64_t ns, const char *subsystem,
                   const char *text, const char *command, unsigned column);
void error_log_clear(struct error_log *log);

/* error_log_print - print entry @index as the file error_log shows it; 0 is the oldest.
 * Return: the length of the whole text, without its NUL; 0 when there is no such entry.
 */
size_t error_log_print(const struct error_log *log, unsigned index, char *buf,
                       size_t size);
