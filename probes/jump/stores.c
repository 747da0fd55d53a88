/* stores.c - stage 11: makes the instructions by which a specialized detour stores
 * registers, without an image.
 */
#include "probes/jump/stores.h"

#include "kernel/base/err.h"
#include "probes/core/aggr.h"
#include "probes/core/life.h"
#include "probes/insn/encode.h"

#define REG(name) (offsetof(struct pt_regs, name) / 8)

/* What the pattern has pushed below the program's stack, from the top: rdi to r11 in the
 * order of struct pt_regs; the status flags, if they are saved; rbp; the probe. The other
 * registers still have the program's values.
 */
#define SAVED_MAX 9u
#define FRAME 2u

/* Bytes of instructions. */
#define CALLS_LEN 18 /* both calls, and the three instructions around them */
#define LOAD_LEN 5
#define ADDRESS_LEN 8
#define VALUE_LEN 7
#define STORE_LEN 4 /* one more where two bytes are stored */

static bool is_saved(unsigned reg)
{
    return reg >= REG(r11) && reg <= REG(di);
}

/* register_number - the number by which instructions encode @reg, a register that C code
 * does not change.
 */
static unsigned register_number(unsigned reg)
{
    static const uint8_t numbers[] = {
        [REG(r15)] = INSN_R15, [REG(r14)] = INSN_R14, [REG(r13)] = INSN_R13,
        [REG(r12)] = INSN_R12, [REG(bp)] = INSN_BP,   [REG(bx)] = INSN_BX,
    };

    return numbers[reg];
}

struct body {
    uint8_t *out;
    uintptr_t at;
    size_t len;
    const struct site *site;
    bool flags_saved;
};

static void byte(struct body *b, unsigned value)
{
    b->out[b->len++] = (uint8_t)value;
}

static void disp32(struct body *b, uint32_t value)
{
    b->len += insn_encode_disp32(b->out + b->len, value);
}

/* load_saved - emit: rcx = the word at [rsp + @disp]. @disp is less than 128. */
static void load_saved(struct body *b, unsigned disp)
{
    byte(b, 0x48);
    byte(b, 0x8b);
    byte(b, 0x4c);
    byte(b, 0x24);
    byte(b, disp);
}

/* load_address - emit: rcx = rsp + @disp. */
static void load_address(struct body *b, uint32_t disp)
{
    byte(b, 0x48);
    byte(b, 0x8d);
    byte(b, 0x8c);
    byte(b, 0x24);
    disp32(b, disp);
}

/* load_value - emit: rcx = @value. */
static void load_value(struct body *b, int32_t value)
{
    byte(b, 0x48);
    byte(b, 0xc7);
    byte(b, 0xc1);
    disp32(b, (uint32_t)value);
}

/* store - emit: store @size bytes of register @number to [rax + @offset]. @offset is less
 * than 128.
 */
static void store(struct body *b, unsigned number, unsigned size, unsigned offset)
{
    if (size == 2)
        byte(b, 0x66);
    byte(b, 0x40 | (size == 8 ? 8u : 0) | (number >> 3 & 1) << 2);
    byte(b, size == 1 ? 0x88 : 0x89);
    byte(b, 0x40 | (number & 7) << 3);
    byte(b, offset);
}

/* top - the distance from rsp to the program's stack pointer, above all that is saved. */
static uint32_t top(const struct body *b)
{
    return 8 * (FRAME + b->flags_saved + SAVED_MAX);
}

/* fetch - emit code that gets the value of @s. Return: the register that holds it: the
 * register itself, or rcx.
 */
static unsigned fetch(struct body *b, const struct kprobe_store *s)
{
    unsigned reg = s->reg / 8;

    if (s->is_value)
        load_value(b, s->value);
    else if (reg == REG(ip))
        load_value(b, (int32_t)(b->site->addr + 1));
    else if (reg == REG(sp)) /* a probed call has pushed its return address */
        load_address(b, top(b) + (site_is_call(b->site) ? 8 : 0));
    else if (is_saved(reg))
        load_saved(b, top(b) - 8 * (uint32_t)(REG(di) + 1 - reg));
    else
        return register_number(reg);
    return INSN_CX;
}

static void call(struct body *b, uintptr_t target, int *err)
{
    if (insn_encode_call32(b->out + b->len, b->at + b->len, target))
        *err = -ERANGE;
    b->len += INSN_CALL32_LEN;
}

int stores_put(uint8_t *out, uintptr_t at, const struct site *site, bool flags_saved,
               size_t *len)
{
    const struct kprobe_stores *stores = stores_of(site);
    struct body b = { .out = out, .at = at, .site = site, .flags_saved = flags_saved };
    size_t skip;
    int err = 0;

    call(&b, (uintptr_t)stores->begin, &err);
    byte(&b, 0x48); /* test rax, rax */
    byte(&b, 0x85);
    byte(&b, 0xc0);
    byte(&b, 0x74); /* jz */
    skip = b.len;
    byte(&b, 0);
    for (size_t i = 0; i < stores->count; i++) {
        const struct kprobe_store *s = &stores->store[i];

        store(&b, fetch(&b, s), s->size, s->offset);
    }
    byte(&b, 0x48); /* mov rdi, rdx */
    byte(&b, 0x89);
    byte(&b, 0xd7);
    call(&b, (uintptr_t)stores->end, &err);
    out[skip] = (uint8_t)(b.len - skip - 1);
    *len = b.len;
    return err;
}

/* len_max - the most bytes of code for @s; 0: a body cannot store this. */
static size_t len_max(const struct kprobe_store *s)
{
    unsigned reg = s->reg / 8;

    if (s->offset >= 0x80 ||
        (s->size != 1 && s->size != 2 && s->size != 4 && s->size != 8))
        return 0;
    if (s->is_value || reg == REG(ip))
        return VALUE_LEN + STORE_LEN + (s->size == 2);
    if (reg == REG(sp))
        return ADDRESS_LEN + STORE_LEN + (s->size == 2);
    return reg <= REG(di) ? LOAD_LEN + STORE_LEN + (s->size == 2) : 0;
}

const struct kprobe_stores *stores_of(const struct site *site)
{
    const struct kprobe *p = site->probes;
    const struct kprobe_stores *stores = p->stores;
    size_t len = CALLS_LEN;

    if (!stores || p->post_handler || p->fault_handler ||
        stores->count > KPROBE_STORES_MAX)
        return NULL;
    for (size_t i = 0; i < stores->count; i++) {
        if (!len_max(&stores->store[i]))
            return NULL;
        len += len_max(&stores->store[i]);
    }
    return len <= STORES_CODE_MAX ? stores : NULL;
}
