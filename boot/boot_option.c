/* boot_option.c - boot arguments: words and key=value pairs. Pure; host tested. */
#include "kernel/base/boot_info.h"
#include "kernel/base/compiler.h"

static bool option_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *blanks_skip(const char *s)
{
    while (option_is_blank(*s))
        s++;
    return s;
}

/* Return: the address behind the word at @s; blanks between quotes belong to the word. */
static const char *word_end(const char *s)
{
    bool quoted = false;

    while (*s && (quoted || !option_is_blank(*s))) {
        if (*s == '\\' && s[1])
            s++;
        else if (*s == '"')
            quoted = !quoted;
        s++;
    }
    return s;
}

/* Return: the value, which may be empty, if [word, end) is @key or @key=...; else NULL. */
static const char *word_value(const char *word, const char *end, const char *key)
{
    if (word < end && *word == '"')
        word++;
    while (*key && word < end && *word == *key) {
        word++;
        key++;
    }
    if (*key)
        return NULL;
    if (word == end || *word == '"')
        return end;
    return *word == '=' ? word + 1 : NULL;
}

static void value_copy(char *out, size_t len, const char *value, const char *end)
{
    size_t used = 0;

    for (; value < end && used + 1 < len; value++) {
        bool escapes = *value == '\\' && value + 1 < end &&
                       (value[1] == '"' || value[1] == '\'' || value[1] == '\\');

        value += escapes;
        if (*value != '"')
            out[used++] = *value;
    }
    out[used] = '\0';
}

bool boot_option(const char *cmdline, const char *key, char *out, size_t len)
{
    const char *found = NULL;
    const char *found_end = NULL;

    for (const char *word = blanks_skip(cmdline); *word;) {
        const char *end = word_end(word);
        const char *value = word_value(word, end, key);

        if (value) {
            found = value;
            found_end = end;
        }
        word = blanks_skip(end);
    }
    if (!found)
        return false;
    if (out && len)
        value_copy(out, len, found, found_end);
    return true;
}

const char *boot_option_next(const char *at, char *key, size_t len)
{
    const char *word = blanks_skip(at), *end = word_end(word);
    const char *stop = word;

    if (!*word)
        return NULL;
    while (stop < end && *stop != '=')
        stop++;
    value_copy(key, len, word, stop);
    return end;
}

INIT void boot_info_append(struct boot_info *info, const char *more)
{
    size_t used = 0;

    more = blanks_skip(more);
    if (!*more)
        return;
    while (info->cmdline_buf[used])
        used++;
    if (used && used + 1 < BOOT_CMDLINE_MAX)
        info->cmdline_buf[used++] = ' ';
    while (*more && used + 1 < BOOT_CMDLINE_MAX)
        info->cmdline_buf[used++] = *more++;
    info->cmdline_buf[used] = '\0';
}
