/* port_detour.c - the part of platform_jump.h about the code in detour.asm. */
#include "kernel/cpu/percpu.h"
#include "probes/core/life.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"
#include "probes/program/platform_program.h"
#include "probes/program/program.h"

extern const char detour_text_start[], detour_text_end[];
extern const char detour_call[], detour_call_dead[], detour_called[];
extern const char detour_image[], detour_image_called[], detour_post[];
extern const char detour_return[];
extern const uintptr_t detour_specialized_rare_range[2],
    detour_specialized_leave_range[2];
extern const struct plat_pattern detour_specialized, detour_specialized_dead;
extern const struct plat_pattern detour_specialized_leaf, detour_specialized_leaf_dead;
extern const struct plat_pattern detour_light, detour_light_dead;
extern const struct plat_pattern detour_light_keep, detour_light_keep_dead;

uintptr_t plat_detour(enum plat_detour which)
{
    static const char *const code[PLAT_DETOURS] = {
        [PLAT_DETOUR_CALL] = detour_call,
        [PLAT_DETOUR_CALL_DEAD] = detour_call_dead,
        [PLAT_DETOUR_CALLED] = detour_called,
        [PLAT_DETOUR_IMAGE] = detour_image,
        [PLAT_DETOUR_IMAGE_CALLED] = detour_image_called,
        [PLAT_DETOUR_RETURN] = detour_return,
        [PLAT_DETOUR_POST] = detour_post,
    };

    return (uintptr_t)code[which];
}

const struct plat_pattern *plat_detour_specialized(enum plat_specialized which,
                                                   bool flags_live)
{
    static const struct plat_pattern *const patterns[PLAT_OWNS][2] = {
        [PLAT_SPECIALIZED_CALL] = { &detour_specialized_dead, &detour_specialized },
        [PLAT_SPECIALIZED_LEAF] = { &detour_specialized_leaf_dead,
                                    &detour_specialized_leaf },
        [PLAT_SPECIALIZED_LIGHT] = { &detour_light_dead, &detour_light },
        [PLAT_SPECIALIZED_LIGHT_KEEP] = { &detour_light_keep_dead, &detour_light_keep },
    };

    return patterns[which][flags_live];
}

bool plat_is_detour(uintptr_t addr)
{
    return addr >= (uintptr_t)detour_text_start && addr < (uintptr_t)detour_text_end;
}
NOKPROBE(plat_is_detour);

/* Tells, for each routine of detour.asm, how many words the stack pointer is below the
 * word that the routine was called with: the address in the cell where the CPU goes on.
 * At the first and at the last instruction of the routine the distance is 0. Between them
 * it is `words`. Routines that push the flags have two exceptions near their start: see
 * words_below().
 */
extern const struct detour_code {
    uintptr_t start, pushf, pushed, ret;
    size_t words;
} detour_codes[], detour_codes_end[];
/* The addresses of `pop` instructions at which one more word is on the stack. */
extern const uintptr_t detour_pops[], detour_pops_end[];

static size_t words_below(const struct detour_code *code, uintptr_t ip)
{
    static const size_t flags = offsetof(struct pt_regs, flags) / 8;

    if (ip == code->start || ip == code->ret)
        return 0;
    if (ip <= code->pushf)
        return code->words - flags - 1;
    return ip <= code->pushed ? code->words - flags : code->words;
}

/* code_at - find the routine that @ip is in: the last one that starts at or before @ip.
 * The table is not sorted.
 */
static const struct detour_code *code_at(uintptr_t ip)
{
    const struct detour_code *found = detour_codes;

    for (const struct detour_code *c = detour_codes; c < detour_codes_end; c++)
        if (c->start <= ip && (found->start > ip || c->start > found->start))
            found = c;
    return found;
}

static bool is_pop(uintptr_t ip)
{
    for (const uintptr_t *pop = detour_pops; pop < detour_pops_end; pop++)
        if (*pop == ip)
            return true;
    return false;
}

static bool is_within_range(uintptr_t ip, const uintptr_t *range)
{
    return ip >= range[0] && ip < range[1];
}

/* stack_word_at - a CPU is at @ip with stack pointer @sp: at which stack address is the word
 * that says where it will go on? In the routines that a specialized detour calls, this
 * word is the ip field of the register image, which begins at @sp. At their first
 * instruction the routine's return address lies below the image.
 */
static uintptr_t stack_word_at(uintptr_t ip, uintptr_t sp)
{
    if (ip == detour_specialized_rare_range[0] || ip == detour_specialized_leave_range[0])
        return sp + sizeof(uint64_t) + offsetof(struct pt_regs, ip);
    if (is_within_range(ip, detour_specialized_rare_range) ||
        is_within_range(ip, detour_specialized_leave_range))
        return sp + offsetof(struct pt_regs, ip) + 8 * is_pop(ip);
    return sp + 8 * (words_below(code_at(ip), ip) + is_pop(ip));
}

uintptr_t port_detour_cell(uintptr_t ip, uintptr_t sp)
{
    uint64_t word;

    if (plat_read(&word, stack_word_at(ip, sp)))
        return ip;
    return word;
}

int32_t plat_counter_disp(size_t i)
{
    return (int32_t)(PERCPU_COUNTERS_OFF + i * sizeof(uint64_t));
}

_Static_assert(KPROBE_OWN_BITS == OWN_WORK, "both are masks of percpu.own_work");

int32_t plat_fact_disp(enum plat_fact which)
{
    static const uint16_t places[] = { [PLAT_FACT_CPU] = offsetof(struct percpu, id),
                                       [PLAT_FACT_THREAD] = offsetof(struct percpu, tid),
                                       [PLAT_FACT_OWN] =
                                           offsetof(struct percpu, own_work) };

    return places[which];
}

uint32_t plat_fact(enum plat_fact which)
{
    uint32_t value;

    /* No call: a program that runs in C would count it at a probe on memcpy. */
    __builtin_memcpy(&value, (const uint8_t *)this_cpu() + plat_fact_disp(which),
                     sizeof(value));
    return value;
}

int plat_load(uint64_t *out, uintptr_t addr)
{
    bool was = own_work();
    int err;

    if (!was)
        own_work_begin();
    err = plat_read(out, addr);
    if (!was)
        own_work_end();
    return err;
}
