/* fetch.c - the interpreter of fetch.h. Runs in every hit of an event with arguments. */
#include "probes/trace/language/fetch.h"

#include "kernel/base/compiler.h"

#include <string.h>

/* Bytes of a string that are read at once. Pieces are aligned, and PIECE divides the size
 * of a page: so a read never touches a page on which no byte of the string lies.
 */
#define PIECE 16

struct run {
    const struct fetch_from *from;
    struct fetch_to *to;
    uint64_t value;
};

static uint64_t load_word(const struct fetch_from *from, uint64_t addr, bool *fault)
{
    uint64_t word = 0;

    if (from->read(&word, addr, sizeof(word), false)) {
        *fault = true;
        return 0;
    }
    return word;
}

static uint64_t load_stack(const struct fetch_from *from, uint64_t addr, bool *fault)
{
    uint64_t word = load_word(from, addr, fault), real = 0;

    if (!*fault && from->returns)
        real = from->returns((const uintptr_t *)addr);
    return real ? real : word;
}

/* load_argument - load argument @n, counted from 0. The System V ABI passes six arguments
 * in registers; the remaining ones lie on the stack above the return address.
 */
static uint64_t load_argument(const struct fetch_from *from, uint64_t n, bool *fault)
{
    const struct pt_regs *regs = from->regs;
    const unsigned long in_registers[FETCH_REG_ARGS] = { regs->di, regs->si, regs->dx,
                                                         regs->cx, regs->r8, regs->r9 };

    if (n < FETCH_REG_ARGS)
        return in_registers[n];
    return load_word(from, regs->sp + 8 * (n - FETCH_REG_ARGS + 1), fault);
}

size_t fetch_code_len(const struct fetch_insn *code)
{
    size_t len = 0;

    if (code->op == FETCH_LOAD_AGENT)
        return (size_t)code->value + (code->len + sizeof(*code) - 1) / sizeof(*code);
    while (code[len].op != FETCH_END)
        len++;
    return len + 1;
}

static int read_for_agent(void *arg, void *dst, uintptr_t addr, size_t len)
{
    const struct fetch_from *from = arg;

    return from->read(dst, addr, len, false);
}

/* load_agent - run a program of gdb and return its result. NOINLINE: the stack space that
 * this function needs is taken only when such a program runs.
 */
static NOINLINE uint64_t load_agent(const struct fetch_insn *insn,
                                    const struct fetch_from *from, bool *fault)
{
    const struct agent_world world = { .regs = from->regs,
                                       .ip = from->ip,
                                       .arg = (void *)(uintptr_t)from,
                                       .read = read_for_agent };
    uint64_t value = 0;

    if (agent_run((const uint8_t *)(insn + insn->value), &world, &value, NULL))
        *fault = true;
    return value;
}

/* fetch_load - execute the first instruction of a program. A text gives no value here: its
 * store finds the text itself.
 */
static uint64_t fetch_load(const struct fetch_insn *insn, const struct fetch_from *from,
                           bool *fault)
{
    uint64_t word;

    switch (insn->op) {
    case FETCH_LOAD_REG:
        memcpy(&word, (const uint8_t *)from->regs + insn->value, sizeof(word));
        return word;
    case FETCH_LOAD_STACK:
        return load_stack(from, from->regs->sp + 8 * (uint64_t)insn->value, fault);
    case FETCH_LOAD_SP:
        return from->regs->sp;
    case FETCH_LOAD_ARG:
        return load_argument(from, (uint64_t)insn->value, fault);
    case FETCH_LOAD_ENTRY:
        if (from->entry)
            return from->entry[insn->value];
        *fault = true;
        return 0;
    case FETCH_LOAD_NS:
        if (from->entry)
            return from->time - from->entry[insn->value];
        *fault = true;
        return 0;
    case FETCH_LOAD_DEPTH:
        if (from->depth)
            return (uint64_t)from->depth((uintptr_t)insn->value);
        *fault = true;
        return 0;
    case FETCH_LOAD_VALUE:
        return (uint64_t)insn->value;
    case FETCH_LOAD_AGENT:
        return load_agent(insn, from, fault);
    case FETCH_LOAD_ADDR:
        return from->watched;
    default:
        return 0;
    }
}

static bool is_deref(const struct fetch_insn *insn)
{
    return insn->op == FETCH_DEREF || insn->op == FETCH_DEREF_USER;
}

static uint64_t deref(const struct fetch_insn *insn, const struct fetch_from *from,
                      uint64_t value, bool *fault)
{
    uint64_t word = 0;

    if (*fault || from->read(&word, value + (uint64_t)insn->value, sizeof(word),
                             insn->op == FETCH_DEREF_USER)) {
        *fault = true;
        return 0;
    }
    return word;
}

/* ---- strings ---- */

/* fetch_copy_string - copy a string from memory into @dst of @room bytes, always with a NUL.
 * With @dst NULL it only measures the string.
 * Return: the length, NUL included; 0 when a part of the string cannot be read.
 */
static size_t fetch_copy_string(const struct fetch_from *from, uint64_t addr, bool user,
                                char *dst, size_t room, bool *cut)
{
    char piece[PIECE];
    size_t len = 0;

    while (len < room) {
        size_t take = PIECE - (addr + len) % PIECE, part;

        if (take > room - len)
            take = room - len;
        if (from->read(piece, addr + len, take, user))
            return 0;
        part = strnlen(piece, take);
        if (dst)
            memcpy(dst + len, piece, part);
        len += part;
        if (part < take)
            break;
    }
    if (len == room) {
        *cut = true;
        len--;
    }
    if (dst)
        dst[len] = '\0';
    return len + 1;
}

static size_t copy_text(const char *text, size_t len, char *dst, size_t room, bool *cut)
{
    if (len >= room) {
        *cut = true;
        len = room - 1;
    }
    if (dst) {
        memcpy(dst, text, len);
        dst[len] = '\0';
    }
    return len + 1;
}

static size_t copy_symbol(const struct fetch_from *from, uint64_t addr, char *dst,
                          size_t room, bool *cut)
{
    static const char digits[] = "0123456789abcdef";
    char text[256];
    size_t len = from->symbol ? from->symbol(text, sizeof(text), addr) : 0;
    unsigned shift = addr ? (63u - (unsigned)__builtin_clzll(addr)) / 4 * 4 : 0;

    if (len >= sizeof(text))
        len = sizeof(text) - 1;
    if (!len) { /* the address belongs to no symbol */
        memcpy(text, "0x", 2);
        for (len = 2; len < 2 + 1 + shift / 4; len++)
            text[len] = digits[addr >> (shift - 4 * (len - 2)) & 15];
    }
    return copy_text(text, len, dst, room, cut);
}

/* one_string - copy the string that the store @insn asks for. @load is the first
 * instruction of the program: it may itself hold a text.
 * Return: as fetch_copy_string().
 */
static size_t one_string(const struct fetch_from *from, const struct fetch_insn *load,
                         const struct fetch_insn *insn, uint64_t value, char *dst,
                         size_t room, bool *cut)
{
    if (room > FETCH_STRING_MAX)
        room = FETCH_STRING_MAX;
    if (load->op == FETCH_LOAD_TEXT)
        return copy_text(load->text, load->len, dst, room, cut);
    if (load->op == FETCH_LOAD_COMM)
        return from->comm
                   ? copy_text(from->comm, strnlen(from->comm, room), dst, room, cut)
                   : 0;
    if (insn->op == FETCH_STORE_SYMBOL)
        return copy_symbol(from, value, dst, room, cut);
    return fetch_copy_string(from, value + (uint64_t)insn->value,
                             insn->op == FETCH_STORE_STRING_USER, dst, room, cut);
}

static bool stores_string(const struct fetch_insn *insn)
{
    return insn->op == FETCH_STORE_STRING || insn->op == FETCH_STORE_STRING_USER ||
           insn->op == FETCH_STORE_SYMBOL;
}

/* put_location - write the word of the fixed part that says where the string lies. */
static void put_location(uint8_t *at, size_t len, size_t offset)
{
    uint32_t word = (uint32_t)(len << 16 | offset);

    memcpy(at, &word, sizeof(word));
}

static void store_string(struct run *run, const struct fetch_insn *load,
                         const struct fetch_insn *insn, uint8_t *at, bool fault)
{
    struct fetch_to *to = run->to;
    size_t room = to->size - to->used, len = 0;
    bool cut = false;

    if (!fault) {
        char *dst = room ? (char *)to->record + to->used : NULL;

        len = one_string(run->from, load, insn, run->value, dst, room ? room : 1, &cut);
        fault = !len && !cut;
    }
    if (!room) { /* a string counts either as a fault or as cut, not as both */
        cut = !fault;
        len = 0;
    }
    put_location(at, len, to->used);
    to->used += len;
    to->faults += fault;
    to->cut += cut;
}

/* ---- numbers ---- */

/* store_low - store the lower @size bytes of a value. @size is 1, 2, 4 or 8. */
static ALWAYS_INLINE void store_low(uint8_t *at, uint64_t value, unsigned size)
{
    switch (size) {
    case 8:
        memcpy(at, &value, 8);
        return;
    case 4:
        memcpy(at, &value, 4);
        return;
    case 2:
        memcpy(at, &value, 2);
        return;
    default:
        *at = (uint8_t)value;
    }
}

static void store_number(struct run *run, const struct fetch_insn *insn, uint8_t *at,
                         bool fault)
{
    if (insn->op == FETCH_STORE && !fault) {
        store_low(at, run->value, insn->size);
        return;
    }
    if (fault || run->from->read(at, run->value + (uint64_t)insn->value, insn->size,
                                 insn->op == FETCH_STORE_MEM_USER)) {
        memset(at, 0, insn->size);
        run->to->faults++;
    }
}

static void take_bits(const struct fetch_insn *insn, uint8_t *at)
{
    unsigned low = (unsigned)insn->value & 0xff, width = (unsigned)insn->value >> 8;
    uint64_t word = 0;

    memcpy(&word, at, insn->size);
    word = word >> low & (UINT64_MAX >> (64 - width));
    memcpy(at, &word, insn->size);
}

/* ---- programs ---- */

/* before_store - run the instructions before the store.
 * @value: the value that they leave
 * @last:  the value before the last dereference; an array of strings goes on from there
 *
 * Return: the store.
 */
static const struct fetch_insn *before_store(const struct fetch_insn *insn,
                                             const struct fetch_from *from,
                                             uint64_t *value, uint64_t *last, bool *fault)
{
    if (insn->op == FETCH_NAME)
        insn++;
    *value = fetch_load(insn++, from, fault);
    *last = *value;
    while (is_deref(insn)) {
        *last = *value;
        *value = deref(insn++, from, *value, fault);
    }
    return insn;
}

/* store_register - store an argument that is only a register, as most arguments are. This
 * is faster than running the program. Return: false: the argument needs its program.
 */
static ALWAYS_INLINE bool store_register(const struct fetch_arg *arg,
                                         const struct pt_regs *regs, uint8_t *at)
{
    const struct fetch_insn *code = arg->code;
    uint64_t value;

    if (code[0].op != FETCH_LOAD_REG || code[1].op != FETCH_STORE ||
        code[2].op != FETCH_END)
        return false;
    memcpy(&value, (const uint8_t *)regs + code[0].value, sizeof(value));
    store_low(at, value, code[1].size);
    return true;
}

static void run_program(const struct fetch_arg *arg, struct run *run, uint8_t *at)
{
    unsigned elements = arg->count ? arg->count : 1;
    bool fault = false;
    uint64_t last;
    const struct fetch_insn *store =
        before_store(arg->code, run->from, &run->value, &last, &fault);

    for (unsigned i = 0; i < elements; i++, at += arg->type->size) {
        if (!stores_string(store)) {
            store_number(run, store, at, fault);
            if (store[1].op == FETCH_BITS)
                take_bits(store + 1, at);
            run->value += store->size;
            continue;
        }
        if (i) {
            last += sizeof(uint64_t);
            fault = false;
            run->value = deref(store - 1, run->from, last, &fault);
        }
        store_string(run, arg->code, store, at, fault);
    }
}

void fetch_args(const struct fetch_arg *args, size_t count, size_t head,
                const struct fetch_from *from, struct fetch_to *to)
{
    struct run run = { .from = from, .to = to };

    to->faults = 0;
    to->cut = 0;
    to->used = head;
    if (count)
        to->used += args[count - 1].offset + fetch_fixed_size(&args[count - 1]);
    for (size_t i = 0; i < count; i++)
        if (!store_register(&args[i], from->regs, to->record + head + args[i].offset))
            run_program(&args[i], &run, to->record + head + args[i].offset);
}

size_t fetch_strings_size(const struct fetch_arg *args, size_t count,
                          const struct fetch_from *from)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned elements = args[i].count ? args[i].count : 1;
        bool fault = false, cut = false;
        const struct fetch_insn *store;
        uint64_t value, last;

        if (args[i].type->kind != FETCH_STRING)
            continue;
        store = before_store(args[i].code, from, &value, &last, &fault);
        for (unsigned k = 0; k < elements; k++) {
            if (k) {
                last += sizeof(uint64_t);
                fault = false;
                value = deref(store - 1, from, last, &fault);
            }
            if (!fault)
                size += one_string(from, args[i].code, store, value, NULL,
                                   FETCH_STRING_MAX, &cut);
        }
    }
    return size;
}

void fetch_entry(const uint16_t *numbers, size_t count, const struct fetch_from *from,
                 uint64_t *saved)
{
    bool fault = false;

    for (size_t i = 0; i < count; i++)
        saved[i] = numbers[i] == FETCH_ENTRY_TIME
                       ? from->time
                       : load_argument(from, numbers[i], &fault);
}
