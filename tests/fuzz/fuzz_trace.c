/* fuzz_trace.c - libFuzzer: gives any line to the files of the tracer.
 *
 *     make build/fuzz/fuzz_trace && build/fuzz/fuzz_trace -max_len=200
 *
 * The first byte chooses the language. Behind it, a byte below 128 is a character, and a
 * larger byte is a word of the grammar, so that many lines have a meaning. These facts
 * must hold:
 *   - a line is accepted or refused. If it is refused, the column of the error is inside
 *   the line,
 *     and no memory is left allocated;
 *   - an accepted definition is listed as a line. This line is accepted again, and a line
 *   made
 *     from it deletes the definition;
 *   - an accepted definition can be run, with any registers and memory, into a record of
 *   any
 *     size, and does not write outside of the record.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/language/def.h"
#include "probes/trace/language/filter.h"
#include "probes/trace/language/hist.h"
#include "probes/trace/language/trigger.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/unit/trace_host.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096
#define RECORD_MAX 8192
#define HEAD 24

#define MUST(cond)                                                                       \
    do {                                                                                 \
        if (!(cond))                                                                     \
            abort();                                                                     \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = {
    " ",
    "p:",
    "r",
    "w:",
    "rw@",
    "r5:grp/ev ",
    "ev ",
    "vfs_read",
    " vfs_write",
    "+0x4",
    "%return",
    "twice",
    "mod:mod_init",
    "gone:x",
    " a=",
    " b=",
    "%di",
    "%si",
    "%sp",
    "$stack",
    "$retval",
    "$arg1",
    "$comm",
    "$arg7",
    "@jiffies",
    "@0x10000",
    "+0(",
    "-8(",
    "+u8(",
    ")",
    "))))",
    "\\-1",
    "\\\"text\"",
    ":u8",
    ":s64",
    ":string",
    ":ustring",
    ":symstr",
    ":symbol",
    ":char",
    "[3]",
    "[64]",
    ":b3@2/8",
    ":b64@0/64",
    "-:",
    "grp/",
    " && ",
    " || ",
    "!",
    "(",
    "a == ",
    "b <= ",
    "s ~ ",
    "\"a*\"",
    "'x'",
    "common_pid",
    "CPU",
    "comm",
    "0x7fffffff",
    "-1",
    "18446744073709551615",
    "010",
    " & ",
    " != ",
    "keys=",
    ":vals=",
    ":sort=",
    ":size=",
    "hitcount",
    ".hex",
    ".log2",
    ".buckets=",
    ".descending",
    ".execname",
    "stacktrace",
    ",",
    ":pause",
    "traceon",
    "enable_event:",
    "set_wprobe:",
    ":unlimited",
    "hist:",
    " if ",
    ":5",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static size_t write_text(char *text, const uint8_t *data, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < size; i++) {
        const char letter[2] = { (char)data[i], '\0' };
        const char *word =
            data[i] < 128 ? letter : words[(data[i] - 128u) % ARRAY_LEN(words)];
        size_t more = strlen(word);

        if (len + more >= TEXT_MAX)
            break;
        memcpy(text + len, word, more);
        len += more;
    }
    text[len] = '\0';
    return len;
}

/* ---- running ---- */

static int read_memory(void *dst, uintptr_t addr, size_t len, bool user)
{
    (void)user;
    return memory_read(dst, addr, len);
}

static void run_fetch(const struct def *def, uint64_t seed)
{
    static uint8_t record[RECORD_MAX + 16];
    uint64_t saved[FETCH_ENTRY_MAX];
    struct pt_regs regs;
    struct fetch_from from = { .regs = &regs, .comm = "init", .read = read_memory };
    struct fetch_to to = { .record = record };

    if (HEAD + def->args_size > RECORD_MAX)
        return;
    fill_memory(seed);
    memcpy(&regs, memory, sizeof(regs));
    regs.di = 0x10000 + seed % 8300;
    to.size = HEAD + def->args_size;
    to.size += seed % (RECORD_MAX - to.size + 1);
    memset(record, 0xee, sizeof(record));
    fetch_entry(def->entry, def->entry_count, &from, saved);
    from.entry = saved;
    fetch_args(def->args, def->arg_count, HEAD, &from, &to);
    MUST(to.used >= HEAD + def->args_size && to.used <= to.size);
    for (size_t i = 0; i < 16; i++)
        MUST(record[to.size + i] == 0xee);
    for (size_t i = 0; i < HEAD; i++)
        MUST(record[i] == 0xee);
    /* The memory has not changed meanwhile, so the size is exactly what was used. */
    if (!to.cut)
        MUST(fetch_strings_size(def->args, def->arg_count, &from) ==
             to.used - HEAD - def->args_size);
}

/* ---- languages ---- */

/* try_delete - check that a line made from the listed line @listed deletes @def. */
static void try_delete(const char *listed, const struct def *def)
{
    static struct def_delete delete;
    static char line[4 * TEXT_MAX];

    strcpy(line, "-:");
    strcat(line, strchr(listed, ':') + 1);
    if (strlen(line) < TEXT_MAX)
        MUST(!def_delete_parse(line, &delete) && def_delete_matches(&delete, def));
}

static void try_def(const char *text, uint64_t seed)
{
    static char once[4 * TEXT_MAX], again[4 * TEXT_MAX], joined[TEXT_MAX];
    static struct def_delete delete;
    struct trace_error error;
    struct def *def, *second;
    int err;

    if (def_is_delete(text)) {
        def_delete_parse(text, &delete);
        return;
    }
    trace_host.entry_args = seed & 1;
    err = def_parse(&trace_host, text, &def, &error);
    if (err) {
        MUST(err < 0 && error.err == err && !def);
        MUST(error.id < TRACE_ERROR_COUNT);
        MUST(error.column <= 3 * FETCH_TEXT_MAX + def_join(text, joined, TEXT_MAX) + 1);
        return;
    }
    if (!def)
        return;
    MUST(def_print(def, once, sizeof(once)) < sizeof(once));
    run_fetch(def, seed);
    try_delete(once, def);
    if (strlen(once) < TEXT_MAX) {
        MUST(!def_parse(&trace_host, once, &second, &error));
        def_print(second, again, sizeof(again));
        MUST(!strcmp(once, again));
        MUST(def_append(second, def, once, &error) < 0);
        MUST(error.id == (def->is_watch ? TRACE_WPROBE_NO_SIBLING : TRACE_SAME_PROBE));
        def_free(&trace_host, second);
    }
    def_free(&trace_host, def);
}

static const struct filter_field fields[] = {
    { "a", 8, 4, false, FILTER_NUMBER },   { "b", 12, 8, true, FILTER_NUMBER },
    { "c", 20, 1, true, FILTER_NUMBER },   { "s", 24, 4, false, FILTER_STRING },
    { "odd", 0, 3, false, FILTER_NUMBER },
};

static void try_filter(const char *text, uint64_t seed)
{
    static char block[2 * TEXT_MAX + 128];
    struct filter_error error;
    struct filter *filter;
    int err = filter_parse(&trace_host, text, fields, ARRAY_LEN(fields), &filter, &error);

    fill_memory(seed);
    if (!err) {
        for (size_t i = 0; i < 16; i++)
            filter_match(filter, memory + 64 * i, 64, (unsigned)i, "init");
        MUST(!strcmp(filter_text(filter), text));
        filter_free(&trace_host, filter);
        return;
    }
    MUST(err < 0 && !filter && error.id < FILTER_ERROR_COUNT);
    MUST(error.column <= strlen(text) + 2);
    MUST(filter_block(text, &error, block, sizeof(block)) < sizeof(block));
}

static void try_hist(const char *text, uint64_t seed)
{
    static uint32_t numbers[HIST_SIZE_MAX];
    static const uint64_t stack[] = { 1, 2, 3 };
    char line[1024];
    struct hist_error error;
    struct hist *hist;
    size_t count;

    if (strstr(text, "size=")) /* clearing large tables would take most of the time */
        return;
    if (hist_parse(&trace_host, text, fields, ARRAY_LEN(fields), NULL, &hist, &error)) {
        MUST(error.id < HIST_ERROR_COUNT && error.column <= strlen(text) + 5);
        return;
    }
    fill_memory(seed);
    for (size_t i = 0; i < 200; i++) {
        struct hist_hit hit = { memory + 32 * i, 64,    (unsigned)i, "init",
                                stack,           i % 4, NULL };

        hist_add(hist, &hit);
    }
    count = hist_sorted(hist, numbers);
    for (size_t i = 0; i < count; i++)
        hist_print_entry(hist, numbers[i], NULL, line, sizeof(line));
    hist_print_spec(hist, "a", line, sizeof(line));
    hist_free(&trace_host, hist);
}

/* try_without_count - check that the line means the same without ":unlimited". (An event
 * may have this name, too; such lines are left out.)
 */
static void try_without_count(const struct trigger *trigger, char *line)
{
    char *unlimited = strstr(line, ":unlimited");
    struct trigger *again;

    if (!unlimited || strstr(unlimited + 1, ":unlimited"))
        return;
    memset(unlimited, ' ', strlen(":unlimited"));
    MUST(!trigger_parse(&trace_host, line, &again));
    MUST(trigger_is_same(trigger, again));
    trigger_free(&trace_host, again);
}

static void try_trigger(const char *text, uint64_t seed)
{
    static char line[2 * TEXT_MAX];
    struct trigger *trigger;

    if (trigger_parse(&trace_host, text, &trigger))
        return;
    if (trigger->filter)
        try_filter(trigger->filter, seed);
    if (trigger->spec) {
        try_hist(trigger->spec, seed);
    } else {
        trigger_take(trigger);
        trigger_print(trigger, line, sizeof(line));
        if (trigger->count == TRIGGER_UNLIMITED)
            try_without_count(trigger, line);
    }
    trigger_free(&trace_host, trigger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    uint64_t seed = 1;

    if (!size)
        return 0;
    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    write_text(text, data + 1, size - 1);
    switch (data[0]) {
    case 'd':
        try_def(text, seed);
        break;
    case 'f':
        try_filter(text, seed);
        break;
    case 'h':
        try_hist(text, seed);
        break;
    case 't':
        try_trigger(text, seed);
        break;
    default:
        return -1; /* no language: the fuzzer need not keep the input */
    }
    MUST(!trace_host_blocks());
    return 0;
}
