/* work_text.c - workloads about text: strings, formatting, numbers, symbols. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void random_word(struct work *w, char *word, size_t len)
{
    for (size_t i = 0; i < len; i++)
        word[i] = (char)('a' + work_random(w) % 4);
    word[len] = '\0';
}

/* -- strings ------------------------------------------------------------------------- */

static int strings_run(struct work *w)
{
    char a[32], b[32], both[64];

    w->function = "strcmp";
    for (unsigned i = 0; i < 200; i++) {
        int order;

        random_word(w, a, work_random(w) % 8);
        random_word(w, b, work_random(w) % 8);
        order = strcmp(a, b);
        w->calls++;
        strlcpy(both, a, sizeof(both));
        strlcat(both, b, sizeof(both));
        if (!strstr(both, b) || strncmp(both, a, strlen(a)) != 0)
            return -EIO;
        work_mix(w, work_hash_text(both, strlen(both)) +
                        (uint64_t)((order > 0) - (order < 0)));
    }
    return 0;
}
WORKLOAD(strings, strings_run, "compare, join and search strings");

/* -- format: numbers to text and back ------------------------------------------------ */

static int work_format_run(struct work *w)
{
    char text[80], word[16];

    w->function = "snprintf";
    for (unsigned i = 0; i < 100; i++) {
        uint64_t x = work_random(w) >> work_random(w) % 64;
        int len;

        random_word(w, word, work_random(w) % 12);
        len = snprintf(text, sizeof(text), "%lu %#lx %+d|%-12s|%c|%8.3s", x, x,
                       (int)(x & 0xffff) - 0x8000, word, 'a' + (int)(x % 26), word);
        w->calls++;
        if (strtoull(text, NULL, 10) != x)
            return -EIO;
        work_mix(w, work_hash_text(text, (uint64_t)len));
    }
    return 0;
}
WORKLOAD(format, work_format_run, "print numbers and words into text");

/* -- numbers: text to numbers -------------------------------------------------------- */

static int numbers_run(struct work *w)
{
    static const char digits[] = "0123456789abcdefg";
    char text[24];

    w->function = "parse_u64";
    for (unsigned i = 0; i < 200; i++) {
        size_t len = 1 + work_random(w) % 20;
        uint64_t value = 0;
        int err;

        for (size_t k = 0; k < len; k++)
            text[k] = digits[work_random(w) % (sizeof(digits) - 1)];
        text[len] = '\0';
        err = parse_u64(text, 16, &value);
        w->calls++;
        work_mix(w, value ^ (uint64_t)err);
    }
    return 0;
}
WORKLOAD(numbers, numbers_run, "read numbers, good and bad ones, from text");

/* -- symbols: names to addresses and back -------------------------------------------- */

static const char *const known[] = {
    "strlen",   "kernel_clone", "do_exit",      "vfs_open",
    "vfs_read", "kmalloc",      "kfree",        "schedule",
    "strcmp",   "copy_nofault", "workload_run", "linux_proc_banner"
};

/* The checksum must not contain addresses, because they differ from build to build. */
static int symbols_run(struct work *w)
{
    w->function = "ksyms_find";
    for (unsigned i = 0; i < 100; i++) {
        const char *name = known[work_random(w) % ARRAY_LEN(known)];
        struct ksym by_name, by_address;

        w->calls++;
        if (ksyms_find(name, &by_name))
            return -ENOENT;
        if (ksyms_at(by_name.start + (by_name.size > 1), &by_address))
            return -EIO;
        if (strcmp(by_address.name, name) != 0)
            return -EIO;
        work_mix(w, work_hash_text(name, strlen(name)));
    }
    return 0;
}
WORKLOAD(symbols, symbols_run, "look up symbols by name and by address");
