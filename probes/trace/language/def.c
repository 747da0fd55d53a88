/* def.c - parses a line of kprobe_events into a definition.
 *
 * The parts of a line are checked in Linux's order: number of instances, place, names,
 * arguments. The order decides which of several mistakes is reported.
 */
#include "probes/trace/language/def.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/def_words.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define STACK_WORDS 2048 /* words of a stack of 16 KiB */
#define PLACE 1          /* index of the word that is the place */
#define FIRST_ARG 2

/* A definition while it is made. */
struct making {
    const struct def_host *host;
    const char *line;
    struct trace_error *error;
    struct def_word head, place;
    bool is_return, is_watch, of_writes;
    uint8_t watch_len;
    unsigned maxactive;
    struct def_word symbol; /* len 0: an address */
    uintptr_t addr;
    unsigned offset;
    bool at_entry;
    char group[DEF_NAME_MAX], event[DEF_NAME_MAX];
};

static int def_refuse(struct making *making, size_t word, size_t offset,
                      enum trace_error_id id, int err)
{
    *making->error = (struct trace_error){
        .err = err,
        .id = id,
        .column = def_word_column(making->line, word) + (unsigned)offset,
    };
    return err;
}

/* ---- the beginning of the first word: p, r5, w ---- */

static int parse_kind(struct making *making)
{
    const char *colon = memchr(making->head.p, ':', making->head.len);
    size_t len = (colon ? (size_t)(colon - making->head.p) : making->head.len) - 1;
    uint64_t count = 0;

    making->is_return = *making->head.p == 'r';
    making->is_watch = *making->head.p == 'w';
    if (making->head.len == 1 || !isdigit((unsigned char)making->head.p[1]))
        return 0;
    if (!making->is_return)
        return def_refuse(making, 0, 1, TRACE_BAD_MAXACT_TYPE, -EINVAL);
    if (len >= DEF_NAME_MAX || fetch_number(making->head.p + 1, len, &count) || !count ||
        count > UINT32_MAX)
        return def_refuse(making, 0, 1, TRACE_BAD_MAXACT, -EINVAL);
    if (count > DEF_MAXACTIVE_MAX && count <= INT32_MAX)
        return def_refuse(making, 0, 1, TRACE_MAXACT_TOO_BIG, -EINVAL);
    /* Linux reads the number into an int, and ignores an int below 0. */
    making->maxactive = count <= INT32_MAX ? (unsigned)count : 0;
    return 0;
}

/* ---- the place ---- */

/* find_symbol - look up [MODULE:]NAME. Return: as def_host.symbol. */
static int find_symbol(const struct def_host *host, const char *text, size_t len,
                       uintptr_t *addr)
{
    const char *colon = memchr(text, ':', len);
    size_t module_len = colon ? (size_t)(colon - text) : 0;

    if (!colon)
        return host->symbol(NULL, 0, text, len, addr);
    return host->symbol(text, module_len, colon + 1, len - module_len - 1, addr);
}

/* parse_suffixes - cut "%return" and the offset off the symbol. */
static int parse_suffixes(struct making *making)
{
    static const char suffix[] = "%return";
    struct def_word *symbol = &making->symbol;
    const char *percent = memchr(symbol->p, '%', symbol->len);
    int64_t offset = 0;
    size_t len;

    if (percent) {
        len = symbol->len - (size_t)(percent - symbol->p);
        symbol->len -= len;
        if (len != sizeof(suffix) - 1 || memcmp(percent, suffix, len) != 0)
            return def_refuse(making, PLACE, symbol->len, TRACE_BAD_ADDR_SUFFIX, -EINVAL);
        making->is_return = true;
    }
    for (len = 0; len < symbol->len && !strchr("+-", symbol->p[len]); len++)
        ;
    if (len < symbol->len && fetch_signed(symbol->p + len, symbol->len - len, &offset))
        return def_refuse(making, PLACE, 0, TRACE_BAD_PROBE_ADDR, -EINVAL);
    if (offset < 0 || offset > UINT32_MAX)
        return def_refuse(making, PLACE, 0, TRACE_BAD_PROBE_ADDR, -EINVAL);
    symbol->len = len;
    making->offset = (unsigned)offset;
    return 0;
}

static int def_parse_symbol(struct making *making)
{
    int err, found;

    making->symbol = making->place;
    if (memchr(making->place.p, '/', making->place.len) &&
        memchr(making->place.p, ':', making->place.len))
        return def_refuse(making, 0, 0, TRACE_NO_ERROR, -EINVAL); /* a uprobe */
    err = parse_suffixes(making);
    if (err)
        return err;
    found =
        find_symbol(making->host, making->symbol.p, making->symbol.len, &making->addr);
    if (found > 1)
        return def_refuse(making, PLACE, 0, TRACE_NON_UNIQ_SYMBOL, -EADDRNOTAVAIL);
    if (!found)
        return def_refuse(making, PLACE, 0, TRACE_BAD_PROBE_ADDR, -ENOENT);
    if (found < 0) /* the module may be loaded later: until then nothing can be checked */
        return 0;
    making->addr += making->offset;
    making->at_entry = making->host->is_entry(making->addr);
    /* A symbol of data is not refused here: registering the probe refuses it, and the
     * error has another text.
     */
    if (making->is_return && !making->at_entry && making->offset)
        return def_refuse(making, PLACE, 0, TRACE_BAD_RETPROBE, -EINVAL);
    return 0;
}

/* ---- [w|rw]@BYTES[:LENGTH] ---- */

#define WATCH_LEN 4 /* without a LENGTH, as on Linux */

static int refuse_access(struct making *making, const char *at, enum trace_error_id id,
                         int err)
{
    return def_refuse(making, PLACE, (size_t)(at - making->place.p), id, err);
}

/* parse_access - read the kind of access, which ends at @at. Linux accepts r as well, for
 * processors that can watch reads alone. An x86 processor cannot.
 */
static int parse_access(struct making *making, const char *at)
{
    size_t len = (size_t)(at - making->place.p);

    making->of_writes = len == 1 && *making->place.p == 'w';
    if (len && !making->of_writes && (len != 2 || memcmp(making->place.p, "rw", 2) != 0))
        return def_refuse(making, PLACE, 0, TRACE_BAD_ACCESS_TYPE, -EINVAL);
    return 0;
}

/* parse_watch_len - cut ":LENGTH" off @bytes. The text behind a colon may instead be the
 * symbol of a module.
 */
static int parse_watch_len(struct making *making, struct def_word *bytes)
{
    const char *colon = NULL;
    uintptr_t addr;
    uint64_t len;
    size_t rest;

    making->watch_len = WATCH_LEN;
    for (size_t i = 0; i < bytes->len; i++)
        if (bytes->p[i] == ':')
            colon = bytes->p + i;
    if (!colon)
        return 0;
    rest = bytes->len - (size_t)(colon + 1 - bytes->p);
    if (fetch_number(colon + 1, rest, &len)) {
        for (rest = 0; rest < bytes->len && !strchr("+-", bytes->p[rest]); rest++)
            ;
        if (find_symbol(making->host, bytes->p, rest, &addr) > 0)
            return 0;
        len = 0;
    }
    if (len != 1 && len != 2 && len != 4 && len != 8)
        return refuse_access(making, colon + 1, TRACE_BAD_ACCESS_LEN, -EINVAL);
    making->watch_len = (uint8_t)len;
    bytes->len = (size_t)(colon - bytes->p);
    return 0;
}

static int parse_watched_symbol(struct making *making, struct def_word bytes)
{
    int64_t offset = 0;
    size_t len = 0;
    int found;

    while (len < bytes.len && !strchr("+-", bytes.p[len]))
        len++;
    if (len < bytes.len && (fetch_signed(bytes.p + len, bytes.len - len, &offset) ||
                            offset < INT32_MIN || offset > INT32_MAX))
        return refuse_access(making, bytes.p + len, TRACE_BAD_PROBE_ADDR, -EINVAL);
    found = find_symbol(making->host, bytes.p, len, &making->addr);
    if (found > 1)
        return refuse_access(making, bytes.p, TRACE_NON_UNIQ_SYMBOL, -EADDRNOTAVAIL);
    if (found < 1)
        return refuse_access(making, bytes.p, TRACE_BAD_ACCESS_ADDR, -ENOENT);
    making->symbol = (struct def_word){ bytes.p, len };
    making->offset = (unsigned)(int)offset;
    making->addr += (uintptr_t)offset;
    return 0;
}

/* parse_watched - read the place of a watch. -1 and 0 mean that it watches nothing yet: a
 * trigger will set the address.
 */
static int parse_watched(struct making *making)
{
    const char *at = memchr(making->place.p, '@', making->place.len);
    struct def_word bytes;
    uint64_t addr;
    int err;

    if (!at)
        return def_refuse(making, PLACE, 0, TRACE_BAD_ACCESS_FMT, -EINVAL);
    err = parse_access(making, at);
    if (err)
        return err;
    bytes.p = at + 1;
    bytes.len = making->place.len - (size_t)(bytes.p - making->place.p);
    err = parse_watch_len(making, &bytes);
    if (err)
        return err;
    if (bytes.len == 2 && !memcmp(bytes.p, "-1", 2))
        return 0;
    if (fetch_number(bytes.p, bytes.len, &addr))
        err = parse_watched_symbol(making, bytes);
    else
        making->addr = addr;
    if (!err && (making->addr % making->watch_len ||
                 (making->addr && making->addr < (uintptr_t)1 << 63)))
        err = refuse_access(making, bytes.p, TRACE_BAD_ACCESS_ADDR, -EINVAL);
    return err;
}

static int parse_place(struct making *making)
{
    uint64_t addr;

    if (making->is_watch)
        return parse_watched(making);
    if (fetch_number(making->place.p, making->place.len, &addr))
        return def_parse_symbol(making);
    making->addr = addr;
    making->at_entry = making->host->is_entry(addr);
    return 0;
}

/* ---- names ---- */

static bool is_good_group(const char *name, size_t len)
{
    if (!len || isdigit((unsigned char)*name))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-", name[i]))
            return false;
    return true;
}

static int parse_group(struct making *making, const char *name, size_t len)
{
    size_t at = (size_t)(name - making->head.p);

    if (!len)
        return def_refuse(making, 0, at, TRACE_NO_GROUP_NAME, -EINVAL);
    if (len >= DEF_NAME_MAX)
        return def_refuse(making, 0, at, TRACE_GROUP_TOO_LONG, -EINVAL);
    if (!is_good_group(name, len))
        return def_refuse(making, 0, at, TRACE_BAD_GROUP_NAME, -EINVAL);
    memcpy(making->group, name, len);
    making->group[len] = '\0';
    return 0;
}

static int def_parse_event(struct making *making, const char *name, size_t len)
{
    size_t at = (size_t)(name - making->head.p);

    if (len >= DEF_NAME_MAX)
        return def_refuse(making, 0, at, TRACE_EVENT_TOO_LONG, -EINVAL);
    if (!fetch_name_is_good(name, len))
        return def_refuse(making, 0, at, TRACE_BAD_EVENT_NAME, -EINVAL);
    memcpy(making->event, name, len);
    making->event[len] = '\0';
    return 0;
}

/* name_after_place - make the name of an event from its place. */
static void name_after_place(struct making *making)
{
    if (making->symbol.len && making->is_watch)
        snprintf(making->event, sizeof(making->event), "%.*s", (int)making->symbol.len,
                 making->symbol.p);
    else if (making->symbol.len)
        snprintf(making->event, sizeof(making->event), "%c_%.*s_%u",
                 making->is_return ? 'r' : 'p', (int)making->symbol.len, making->symbol.p,
                 making->offset);
    else
        snprintf(making->event, sizeof(making->event), "%c_0x%lx",
                 making->is_watch ? 'w' : (making->is_return ? 'r' : 'p'),
                 (unsigned long)making->addr);
    for (char *p = making->event; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
}

static int parse_names(struct making *making)
{
    const char *colon = memchr(making->head.p, ':', making->head.len);
    const char *name = colon ? colon + 1 : NULL, *slash;
    size_t len = colon ? making->head.len - (size_t)(name - making->head.p) : 0;
    int err;

    strlcpy(making->group, making->is_watch ? DEF_WATCH_GROUP : DEF_GROUP,
            sizeof(making->group));
    if (!name) {
        name_after_place(making);
        return 0;
    }
    slash = memchr(name, '/', len);
    if (!slash)
        slash = memchr(name, '.', len);
    if (slash) {
        err = parse_group(making, name, (size_t)(slash - name));
        if (err)
            return err;
        len -= (size_t)(slash + 1 - name);
        name = slash + 1;
    }
    if (len)
        return def_parse_event(making, name, len);
    if (!slash)
        return def_refuse(making, 0, (size_t)(name - making->head.p), TRACE_NO_EVENT_NAME,
                          -EINVAL);
    name_after_place(making);
    return 0;
}

/* ---- arguments ---- */

/* Memory behind the definition, which is handed out piece by piece. There is always
 * enough, because room_size() has computed the size.
 */
struct room {
    uint8_t *at;
};

static void *room_take(struct room *room, size_t size)
{
    void *piece = room->at;

    room->at += (size + 7) & ~(size_t)7;
    return piece;
}

static char *room_text(struct room *room, const char *text, size_t len)
{
    char *copy = room_take(room, len + 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

static bool is_reserved(const char *name)
{
    static const char *const reserved[] = {
        "common_type", "common_flags", "common_preempt_count", "common_pid",
        "common_tgid", "__probe_ip",   "__probe_ret_ip",       "__probe_func",
    };

    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (!strcmp(reserved[i], name))
            return true;
    return false;
}

static bool is_used(const struct def *def, const char *name)
{
    for (unsigned i = 0; i < def->arg_count; i++)
        if (!strcmp(def->args[i].name, name))
            return true;
    return false;
}

/* is_parameter - tell whether @word, without its type, is the name of a parameter.
 * @len: set to the length of @word without its type
 */
static bool is_parameter(const struct making *making, struct def_word word, size_t *len)
{
    const struct def_host *host = making->host;
    const char *colon = memchr(word.p, ':', word.len), *name;
    size_t found;

    *len = colon ? (size_t)(colon - word.p) : word.len;
    if (!host->param || !making->at_entry)
        return false;
    for (unsigned i = 0; (found = host->param(making->addr, i, &name)) != 0; i++)
        if (found == *len && !memcmp(name, word.p, found))
            return true;
    return false;
}

/* parse_arg_name - set the name of an argument: NAME of a @word NAME=EXPRESSION, the name
 * of a parameter, or argN.
 * @body: set to the number of bytes in front of the expression
 */
static int parse_arg_name(struct making *making, struct def *def, struct def_word word,
                          struct room *room, size_t *body)
{
    const char *equal = memchr(word.p, '=', word.len);
    size_t at = FIRST_ARG + def->arg_count, len = equal ? (size_t)(equal - word.p) : 0;
    bool names_itself = !equal && is_parameter(making, word, &len);
    char number[16];
    const char *name;

    *body = equal ? len + 1 : 0;
    if (equal && len > FETCH_NAME_MAX)
        return def_refuse(making, at, 0, TRACE_ARG_NAME_TOO_LONG, -EINVAL);
    if (equal && !len)
        return def_refuse(making, at, 0, TRACE_NO_ARG_NAME, -EINVAL);
    if (!equal && !names_itself)
        len = (size_t)snprintf(number, sizeof(number), "arg%u", def->arg_count + 1);
    name = room_text(room, equal || names_itself ? word.p : number, len);
    if (!fetch_name_is_good(name, len))
        return def_refuse(making, at, 0, TRACE_BAD_ARG_NAME, -EINVAL);
    if (is_reserved(name) || is_used(def, name))
        return def_refuse(making, at, 0, TRACE_USED_ARG_NAME, -EINVAL);
    def->args[def->arg_count].name = name;
    return 0;
}

/* named_argument - replace $argN[:TYPE] of a return probe by NAME[:TYPE], with the name
 * of the parameter, because Linux lists it so. Return: the new word, in @buf; or @word,
 * if there is nothing to replace.
 */
static struct def_word named_argument(const struct making *making, struct def_word word,
                                      char buf[FETCH_NAME_MAX + FETCH_TEXT_MAX + 1])
{
    const struct def_host *host = making->host;
    const char *colon = memchr(word.p, ':', word.len), *name;
    size_t digits = (colon ? (size_t)(colon - word.p) : word.len), len;
    uint64_t n;

    if (!making->is_return || !making->at_entry || !host->param || digits < 5 ||
        word.len > FETCH_TEXT_MAX || memcmp(word.p, "$arg", 4) != 0 ||
        strspn(word.p + 4, "0123456789") != digits - 4 ||
        fetch_number(word.p + 4, digits - 4, &n) || !n || n > FETCH_REG_ARGS)
        return word;
    len = host->param(making->addr, (unsigned)n - 1, &name);
    if (!len || len > FETCH_NAME_MAX)
        return word;
    memcpy(buf, name, len);
    memcpy(buf + len, word.p + digits, word.len - digits);
    return (struct def_word){ buf, len + word.len - digits };
}

static int parse_arg(struct making *making, struct def *def, struct def_word word,
                     struct fetch_context *context, struct room *room)
{
    struct fetch_arg *arg = &def->args[def->arg_count];
    char named[FETCH_NAME_MAX + FETCH_TEXT_MAX + 1];
    struct fetch_insn code[FETCH_CODE_MAX], *kept;
    const char *text;
    size_t body, size;
    int err;

    word = named_argument(making, word, named);
    err = parse_arg_name(making, def, word, room, &body);
    if (err)
        return err;
    text = room_text(room, word.p + body, word.len - body);
    err = fetch_parse(context, text,
                      def_word_column(making->line, FIRST_ARG + def->arg_count) +
                          (unsigned)body,
                      arg, code, making->error);
    if (err)
        return err;
    size = fetch_code_len(code) * sizeof(*code);
    kept = room_take(room, size);
    memcpy(kept, code, size);
    arg->code = kept;
    arg->offset = def->args_size;
    def->args_size += (unsigned)fetch_fixed_size(arg);
    if (def->args_size > DEF_ARGS_SIZE_MAX)
        return def_refuse(making, FIRST_ARG + def->arg_count, body, TRACE_EVENT_TOO_BIG,
                          -E2BIG);
    def->has_strings |= arg->type->kind == FETCH_STRING;
    def->arg_count++;
    return 0;
}

static int parse_args(struct making *making, struct def *def, const char *words,
                      struct fetch_context *context, struct room *room)
{
    struct def_word word;
    int err;

    while (word = def_word_next(&words), word.len) {
        err = parse_arg(making, def, word, context, room);
        if (err)
            return err;
    }
    /* If an argument's symbol is missing, the caret goes to the place. So does Linux's,
     * which looks up the symbols of arguments only when it registers the probe.
     */
    if (context->symbol_err == -ENOENT)
        return def_refuse(making, PLACE, 0, TRACE_BAD_PROBE_ADDR, -ENOENT);
    if (context->symbol_err)
        return def_refuse(making, PLACE, 0, TRACE_FAIL_REG_PROBE, context->symbol_err);
    def->entry_count = context->entry_count;
    def->within = context->within;
    memcpy(def->entry, context->entry, sizeof(def->entry));
    return 0;
}

/* arg_symbol - fetch_context.symbol: look up @text, which is NAME[+NUMBER|-NUMBER]. */
static int arg_symbol(void *arg, const char *text, size_t len, uintptr_t *addr)
{
    const struct def_host *host = arg;
    int64_t offset = 0;
    size_t name = 0;
    int err;

    while (name < len && !strchr("+-", text[name]))
        name++;
    err = name < len ? fetch_signed(text + name, len - name, &offset) : 0;
    if (err)
        return err;
    if (!name || find_symbol(host, text, name, addr) <= 0)
        return -ENOENT;
    *addr += (uintptr_t)offset;
    return 0;
}

/* ---- the whole ---- */

/* room_size - how many bytes parse_args() needs at most. Each argument becomes a program
 * of at most seven instructions, and one more for each parenthesis in it. An argument
 * agent(HEX) is a program of gdb: two characters of its text become one byte, and these
 * bytes lie behind the room for FETCH_OPS_MAX instructions.
 */
static size_t room_size(const char *args, size_t count)
{
    size_t size = count * sizeof(struct fetch_arg), insns = count * 7;

    for (const char *p = args; *p; p++)
        insns += *p == '(';
    for (const char *p = args; (p = strstr(p, "agent(")) != NULL; p++)
        insns += FETCH_OPS_MAX;
    size += insns * sizeof(struct fetch_insn) + strlen(args) / 2;
    size += strlen(args) + count * (sizeof("arg128") + 2 * FETCH_NAME_MAX + 2 * 8);
    return size + 2 * DEF_NAME_MAX + 8;
}

static int def_fill(struct making *making, struct def *def, const char *args,
                    size_t count, struct room *room)
{
    const struct def_host *host = making->host;
    struct fetch_context context = {
        .is_return = making->is_return,
        .is_watch = making->is_watch,
        .at_entry = making->at_entry,
        .entry_args = host->entry_args,
        .stack_words = host->stack_words ? host->stack_words : STACK_WORDS,
        .symbol = arg_symbol,
        .param = host->param,
        .param_is_text = host->param_is_text,
        .function = making->at_entry ? making->addr : 0,
        .arg = (void *)(uintptr_t)host,
    };

    def->is_return = making->is_return;
    def->is_watch = making->is_watch;
    def->of_writes = making->of_writes;
    def->watch_len = making->watch_len;
    def->at_entry = making->at_entry;
    def->maxactive = making->maxactive;
    def->addr = making->addr;
    def->offset = making->offset;
    def->args = room_take(room, count * sizeof(*def->args));
    def->group = room_text(room, making->group, strlen(making->group));
    def->event = room_text(room, making->event, strlen(making->event));
    if (making->symbol.len)
        def->symbol = room_text(room, making->symbol.p, making->symbol.len);
    return parse_args(making, def, args, &context, room);
}

static int make_def(struct making *making, const char *args, struct def **out)
{
    size_t count = def_word_count(args), size;
    struct room room;
    struct def *def;
    int err;

    if (count > FETCH_ARGS_MAX)
        return def_refuse(making, PLACE + 1, 0, TRACE_TOO_MANY_ARGS, -E2BIG);
    size = sizeof(*def) + room_size(args, count) + making->symbol.len + 8;
    def = making->host->alloc(size);
    if (!def)
        return def_refuse(making, 0, 0, TRACE_NO_ERROR, -ENOMEM);
    memset(def, 0, size);
    room.at = (uint8_t *)(def + 1);
    err = def_fill(making, def, args, count, &room);
    if (err) {
        making->host->free(def);
        return err;
    }
    *out = def;
    return 0;
}

int def_parse(const struct def_host *host, const char *line, struct def **def,
              struct trace_error *error)
{
    struct making making = { .host = host, .line = line, .error = error };
    const char *rest = line;
    int err;

    *def = NULL;
    *error = (struct trace_error){ 0 };
    making.head = def_word_next(&rest);
    if (!making.head.len)
        return 0;
    making.place = def_word_next(&rest);
    if (!strchr("prw", *making.head.p) || !making.place.len)
        return def_refuse(&making, 0, 0, TRACE_NO_ERROR, -EINVAL);
    err = parse_kind(&making);
    if (err)
        return err;
    err = parse_place(&making);
    if (err)
        return err;
    err = parse_names(&making);
    if (err)
        return err;
    return make_def(&making, rest, def);
}

void def_free(const struct def_host *host, struct def *def)
{
    host->free(def);
}

void def_refused(const char *line, int err, struct trace_error *error)
{
    struct making making = { .line = line, .error = error };

    if (err == -EILSEQ)
        def_refuse(&making, PLACE, 0, TRACE_BAD_INSN_BNDRY, err);
    else if (err == -ENOENT)
        def_refuse(&making, PLACE, 0, TRACE_BAD_PROBE_ADDR, err);
    else if (err == -ENOMEM || err == -EEXIST)
        def_refuse(&making, PLACE, 0, TRACE_NO_ERROR, err);
    else
        def_refuse(&making, PLACE, 0, TRACE_FAIL_REG_PROBE, err);
}
