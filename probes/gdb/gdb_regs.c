/* gdb_regs.c - finds the place of each register that the debugger knows.
 *
 * gdb wants the x87 registers in the description. The kernel does not use them, so their
 * values are unknown; the answer to `g` has them nevertheless. For gdb the registers in a
 * trace are as long as the answer to `g`, and before the first `g` as long as the
 * description says. So the two lengths must be equal.
 */
#include "probes/gdb/gdb_regs.h"

#include "kernel/base/bits.h"
#include "kernel/base/registers.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/extable.h"
#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_frame.h"
#include "probes/gdb/gdb_step.h"
#include "probes/gdb/gdb_stop.h"

#include <string.h>

#define IP 16
#define FLAGS 17
#define GENERAL 24
#define X87_END 40
#define KNOWN 47
#define ST_LEN 10

#define OFF(field) ((uint8_t)offsetof(struct pt_regs, field))
#define BY_GDB(name, field, number, gdb, dwarf) [gdb] = { OFF(field), 8, false },

/* Places of the general registers in the image. Segment registers that the image lacks
 * (is_absent) are shown as 0.
 */
static const struct {
    uint8_t off, len;
    bool is_absent;
} general[GENERAL] = { [IP] = { OFF(ip), 8, false },
                       { OFF(flags), 4, false },
                       { OFF(cs), 4, false },
                       { OFF(ss), 4, false },
                       { 0, 4, true },
                       { 0, 4, true },
                       { 0, 4, true },
                       { 0, 4, true },
                       REGISTERS(BY_GDB) };

/* Places of the registers from X87_END on, in struct gdb_cpu. */
static const size_t special[KNOWN - X87_END] = {
    offsetof(struct gdb_cpu, fs_base), offsetof(struct gdb_cpu, gs_base),
    offsetof(struct gdb_cpu, cr0),     offsetof(struct gdb_cpu, cr2),
    offsetof(struct gdb_cpu, cr3),     offsetof(struct gdb_cpu, cr4),
    offsetof(struct gdb_cpu, efer),
};

/* gdb writes the description into files of traces, with less than 1000 bytes on each
 * line. So each register ends its line.
 */
/* clang-format off */
#define REG(name, bits, type) \
    "<reg name=\"" name "\" bitsize=\"" bits "\" type=\"" type "\"/>\n"
#define REG64(name) REG(name, "64", "int64")
#define REG32(name) REG(name, "32", "int32")
#define ST(name) REG(name, "80", "i387_ext")
#define FEATURE(name) "<feature name=\"" name "\">"
#define END_FEATURE "</feature>"

const char gdb_regs_target[] =
    "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
    "<architecture>i386:x86-64</architecture>"
    FEATURE("org.gnu.gdb.i386.core")
    REG64("rax") REG64("rbx") REG64("rcx") REG64("rdx") REG64("rsi") REG64("rdi")
    REG("rbp", "64", "data_ptr") REG("rsp", "64", "data_ptr")
    REG64("r8") REG64("r9") REG64("r10") REG64("r11")
    REG64("r12") REG64("r13") REG64("r14") REG64("r15")
    REG("rip", "64", "code_ptr") REG32("eflags")
    REG32("cs") REG32("ss") REG32("ds") REG32("es") REG32("fs") REG32("gs")
    ST("st0") ST("st1") ST("st2") ST("st3") ST("st4") ST("st5") ST("st6") ST("st7")
    REG32("fctrl") REG32("fstat") REG32("ftag") REG32("fiseg")
    REG32("fioff") REG32("foseg") REG32("fooff") REG32("fop")
    END_FEATURE
    FEATURE("org.gnu.gdb.i386.segments")
    REG64("fs_base") REG64("gs_base")
    END_FEATURE
    FEATURE("org.sonde.cr")
    REG64("cr0") REG64("cr2") REG64("cr3") REG64("cr4") REG64("efer")
    END_FEATURE "</target>";
/* clang-format on */

static struct pt_regs *regs_of(const struct thread *t)
{
    int cpu = gdb_cpu_of(t);

    return cpu < 0 ? gdb_step_image(t) : gdb_cpu((unsigned)cpu)->regs;
}

/* ---- threads that are on a CPU ---- */

static void put_running(struct gdb_out *out, const struct thread *t,
                        const struct pt_regs *regs, unsigned number)
{
    uintptr_t ip = gdb_stop_ip(regs);
    uint32_t none = 0, flags = (uint32_t)(regs->flags & ~FLAGS_TF);

    if (number == FLAGS && gdb_step_image(t))
        gdb_put_hex(out, &flags, sizeof(flags));
    else if (number == IP)
        gdb_put_hex(out, &ip, sizeof(ip));
    else if (general[number].is_absent)
        gdb_put_hex(out, &none, sizeof(none));
    else
        gdb_put_hex(out, (const uint8_t *)regs + general[number].off,
                    general[number].len);
}

/* ---- threads that have left their CPU ---- */

static void put_word(struct gdb_out *out, unsigned long value, unsigned number)
{
    gdb_put_hex(out, &value, general[number].len);
}

static void put_switched(struct gdb_out *out, const struct thread *t, unsigned number)
{
    struct switch_frame frame;
    uintptr_t sp = t->sp;

    if (copy_nofault(&frame, (const void *)sp, sizeof(frame))) {
        gdb_put_unknown(out, general[number].len);
        return;
    }
    switch (number) {
    case 1:
        put_word(out, frame.bx, number);
        break;
    case 6:
        put_word(out, frame.bp, number);
        break;
    case 7:
        put_word(out, sp + sizeof(frame), number);
        break;
    case 12:
        put_word(out, frame.r12, number);
        break;
    case 13:
        put_word(out, frame.r13, number);
        break;
    case 14:
        put_word(out, frame.r14, number);
        break;
    case 15:
        put_word(out, frame.r15, number);
        break;
    case IP:
        put_word(out, frame.ip, number);
        break;
    case FLAGS:
        put_word(out, frame.flags, number);
        break;
    default:
        gdb_put_unknown(out, general[number].len);
    }
}

/* ---- reading ---- */

/* put_collected - put a register of the selected trace frame. ip is always known: it is
 * the address of the tracepoint.
 */
static void put_collected(struct gdb_out *out, unsigned number)
{
    const struct pt_regs *regs = gdb_frame_regs();

    if (number == IP)
        put_word(out, gdb_frame_ip(), number);
    else if (!regs)
        gdb_put_unknown(out, general[number].len);
    else if (general[number].is_absent)
        put_word(out, 0, number);
    else
        gdb_put_hex(out, (const uint8_t *)regs + general[number].off,
                    general[number].len);
}

static void put_general(struct gdb_out *out, const struct thread *t, unsigned number)
{
    const struct pt_regs *regs = regs_of(t);

    if (gdb_frame_is_selected())
        put_collected(out, number);
    else if (regs)
        put_running(out, t, regs, number);
    else
        put_switched(out, t, number);
}

static size_t x87_len(unsigned number)
{
    return number < GENERAL + 8 ? ST_LEN : 4;
}

bool gdb_regs_put_one(struct gdb_out *out, const struct thread *t, unsigned number)
{
    int cpu = gdb_cpu_of(t);

    if (number >= KNOWN)
        return false;
    if (number < GENERAL)
        put_general(out, t, number);
    else if (number < X87_END)
        gdb_put_unknown(out, x87_len(number));
    else if (cpu < 0 || gdb_frame_is_selected())
        gdb_put_unknown(out, 8);
    else
        gdb_put_hex(
            out, (const uint8_t *)gdb_cpu((unsigned)cpu) + special[number - X87_END], 8);
    return true;
}

void gdb_regs_put(struct gdb_out *out, const struct thread *t)
{
    for (unsigned number = 0; number < KNOWN; number++)
        gdb_regs_put_one(out, t, number);
}

size_t gdb_regs_block(uint8_t *to, const struct pt_regs *regs)
{
    size_t len = 0;

    memset(to, 0, GDB_REGS_BLOCK);
    for (unsigned number = 0; number < GENERAL; number++) {
        if (!general[number].is_absent)
            memcpy(to + len, (const uint8_t *)regs + general[number].off,
                   general[number].len);
        len += general[number].len;
    }
    return GDB_REGS_BLOCK;
}

/* ---- writing ---- */

/* is_fixed - must register @number not be changed now? If the CPU is in code of the
 * engine, ip and sp cannot: that code needs them on its way back to the program.
 */
static bool is_fixed(const struct pt_regs *regs, unsigned number)
{
    return (number == IP || number == 7) && gdb_stop_ip(regs) != regs->ip;
}

static const char *store_general(struct pt_regs *regs, unsigned number,
                                 unsigned long value)
{
    unsigned long now = 0;
    uint8_t *at = (uint8_t *)regs + general[number].off;

    if (general[number].is_absent)
        return value ? "the kernel has no such segment" : NULL;
    memcpy(&now, number == IP ? (void *)&(uintptr_t){ gdb_stop_ip(regs) } : at,
           general[number].len);
    if (now == value)
        return NULL;
    if (is_fixed(regs, number))
        return "the CPU is on its way through a probe: step first";
    if (at == (uint8_t *)&regs->cs || at == (uint8_t *)&regs->ss)
        return "CS and SS are always the kernel's";
    memcpy(at, &value, general[number].len);
    return NULL;
}

/* When a debugger calls a function, it writes all registers back, even read-only
 * registers. So it is no error to write the value that such a register already has. The
 * function may have changed CR2, which only the handler of a fault reads.
 */
static const char *check_special(const struct thread *t, unsigned number, const char **at)
{
    int cpu = gdb_cpu_of(t);
    struct gdb_cpu *me = cpu < 0 ? NULL : gdb_cpu((unsigned)cpu);
    uint64_t value, *now;

    if (number >= X87_END && number < KNOWN && me &&
        gdb_take_hex(at, &value, sizeof(value)) == sizeof(value)) {
        now = (uint64_t *)((uint8_t *)me + special[number - X87_END]);
        if (now == &me->cr2)
            *now = value;
        if (*now == value)
            return NULL;
    }
    return "this register cannot be changed";
}

const char *gdb_regs_set(const struct thread *t, unsigned number, const char **at)
{
    struct pt_regs *regs = regs_of(t);
    unsigned long value = 0;

    if (gdb_frame_is_selected())
        return "a trace frame cannot be changed: tfind none";
    if (number >= GENERAL)
        return check_special(t, number, at);
    if (!regs)
        return "the thread is not on a CPU: its registers cannot be changed";
    if (gdb_take_hex(at, &value, general[number].len) != general[number].len)
        return "too few digits";
    gdb_step_drop(t);
    return store_general(regs, number, value);
}

const char *gdb_regs_set_all(const struct thread *t, const char **at)
{
    const char *why = NULL;

    /* All other registers cannot be changed. */
    for (unsigned number = 0; number < GENERAL && !why; number++)
        why = gdb_regs_set(t, number, at);
    return why;
}
