/* debug_reg.c - keeps the table of the debug registers, and loads it on each CPU.
 *
 * The table may change in any context, an NMI included, so it has no lock. An entry is in
 * use while its address is not 0; its kind and length change only while the address is 0.
 * Each change is counted after it is made, and a CPU loads until the count stays as it
 * was. So if an interrupt or an NMI changes the table during the loading, the CPU loads
 * again.
 *
 * A register is disabled in DR7 while it changes. The other registers stay enabled, and
 * miss no hit. Only a register that covers another one is disabled for one instruction:
 * put_in_order().
 *
 * An NMI may change a register of a CPU that is on its way through a #DB, even more than
 * once. Then DR6 is about what the register was before. So:
 *
 *   1. A change clears the register's bit of DR6, where the entry code of the #DB has not
 *      read it yet; and it is counted in percpu.debug_changes.
 *   2. Entry code stores these counts in the image, before it reads DR6. A bit of DR6 is
 *      valid as long as the count of its register is the one in the image.
 *   3. debug_reg_hits() decides whether a hit is one, and debug_regs_tell() calls the owner.
 *      An NMI between the two makes the hit void. So does an NMI behind that: an owner
 *      that waits, or stops the machine, asks debug_reg_is_hit() again.
 *   4. A #DB inside an NMI finds in DR6 only what is its own: debug_regs_set_aside().
 *
 * So a #DB may find out that it has no cause any more. It is over then, and not an error.
 */
#include "kernel/cpu/debug_reg.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"

#include <string.h>

#define DR6_NONE 0xffff0ff0ul
#define DR7_FIXED BIT(10)
#define DR7_GLOBAL(i) BIT(2 * (i) + 1)
#define DR7_SETTING(i, setting) ((uint64_t)(setting) << (16 + 4 * (i)))

#define STUB_LEN 16

/* entry.asm */
extern const uint8_t entry_stubs[256][STUB_LEN];
extern const uint8_t db_entry[];
extern const uintptr_t db_entry_read, db_entry_cleared;

/* Locks:  a atomic   o its owner, while address is 0 */
static struct {
    uintptr_t addr[DEBUG_REGS];  /* [a] 0: watches nothing */
    uint8_t setting[DEBUG_REGS]; /* [o] kind and length as in DR7 */
    uint64_t changes;            /* [a] */
} table;

static struct {
    bool is_taken;       /* [a] */
    debug_reg_hit_t hit; /* [o] */
    char name[DEBUG_REG_OWNER_MAX];
} owners[DEBUG_REGS];

/* ---- owners ---- */

int debug_reg_take(const char *owner, debug_reg_hit_t hit)
{
    for (unsigned i = 0; i < DEBUG_REGS; i++) {
        if (__atomic_exchange_n(&owners[i].is_taken, true, __ATOMIC_ACQ_REL))
            continue;
        strlcpy(owners[i].name, owner, sizeof(owners[i].name));
        WRITE_ONCE(owners[i].hit, hit);
        return (int)i;
    }
    return -EBUSY;
}

void debug_reg_give(unsigned i)
{
    __atomic_store_n(&owners[i].is_taken, false, __ATOMIC_RELEASE);
}

const char *debug_reg_owner(unsigned i)
{
    return __atomic_load_n(&owners[i].is_taken, __ATOMIC_ACQUIRE) ? owners[i].name : NULL;
}

/* ---- the table ---- */

static unsigned setting_of(enum debug_reg_kind kind, size_t len)
{
    static const uint8_t lens[] = { [1] = 0, [2] = 1, [4] = 3, [8] = 2 };

    return (unsigned)kind | (unsigned)lens[len] << 2;
}

/* setting_len - 1, 2, 8 or 4. Not a table: each #DB would read it, and could be hit there. */
NOKPROBE_INLINE size_t setting_len(unsigned setting)
{
    return 0x04080201u >> 8 * (setting >> 2) & 0xff;
}

void debug_reg_move(unsigned i, uintptr_t addr)
{
    __atomic_store_n(&table.addr[i], addr, __ATOMIC_RELEASE);
    __atomic_add_fetch(&table.changes, 1, __ATOMIC_SEQ_CST);
}

void debug_reg_put(unsigned i, uintptr_t addr, enum debug_reg_kind kind, size_t len)
{
    debug_reg_move(i, 0);
    WRITE_ONCE(table.setting[i], (uint8_t)setting_of(kind, len));
    debug_reg_move(i, addr);
}

uintptr_t debug_reg_addr(unsigned i)
{
    return READ_ONCE(table.addr[i]);
}
NOKPROBE(debug_reg_addr);

/* ---- the registers of a CPU ---- */

NOKPROBE_INLINE void write_dr(unsigned i, uintptr_t addr)
{
    switch (i) {
    case 0:
        write_dr0(addr);
        break;
    case 1:
        write_dr1(addr);
        break;
    case 2:
        write_dr2(addr);
        break;
    default:
        write_dr3(addr);
    }
}

NOKPROBE_INLINE uint64_t control_of(const struct percpu *cpu)
{
    uint64_t control = DR7_FIXED;

    for (unsigned i = 0; i < DEBUG_REGS; i++)
        if (READ_ONCE(cpu->debug_addr[i]) && !(READ_ONCE(cpu->debug_rests) & BIT(i)))
            control |= DR7_GLOBAL(i) | DR7_SETTING(i, cpu->debug_setting[i]);
    return control;
}

NOKPROBE_INLINE unsigned setting_kind(unsigned setting)
{
    return setting & 3;
}

/* implies - if register @i has been hit, has register @j been hit, too? That is so if @j
 * watches at least the same bytes for at least the same accesses.
 */
NOKPROBE_INLINE bool implies(const struct percpu *cpu, unsigned i, unsigned j)
{
    uintptr_t a = cpu->debug_addr[i], b = cpu->debug_addr[j];
    unsigned kind = setting_kind(cpu->debug_setting[i]),
             other = setting_kind(cpu->debug_setting[j]);

    return b && b <= a &&
           a + setting_len(cpu->debug_setting[i]) <=
               b + setting_len(cpu->debug_setting[j]) &&
           (kind == other || (kind == DEBUG_REG_WRITE && other == DEBUG_REG_ACCESS));
}

/* rank_of - how many other registers imply register @i, but are not implied by it? */
NOKPROBE_INLINE unsigned rank_of(const struct percpu *cpu, unsigned i)
{
    unsigned rank = 0;

    for (unsigned k = 0; cpu->debug_addr[i] && k < DEBUG_REGS; k++)
        rank += cpu->debug_addr[k] && implies(cpu, k, i) && !implies(cpu, i, k);
    return rank;
}

/* put_in_order - QEMU's TCG reports only one of the registers that an access has hit: the
 * one that was enabled first. So enable a register that others imply after these others,
 * for add_implied(). @control: what DR7 is
 */
NOKPROBE_INLINE void put_in_order(const struct percpu *cpu, uint64_t control)
{
    for (unsigned rank = 1; rank < DEBUG_REGS; rank++)
        for (unsigned i = 0; i < DEBUG_REGS; i++) {
            if (rank_of(cpu, i) != rank || !(control & DR7_GLOBAL(i)))
                continue;
            write_dr7(control & ~DR7_GLOBAL(i));
            write_dr7(control);
        }
}

/* settle - write DR7 as the fields of @cpu say. An NMI may change the fields, and write
 * DR7, before the older value is written here. So the value is compared with the fields
 * again.
 */
NOKPROBE_INLINE void settle(const struct percpu *cpu)
{
    uint64_t control;

    do {
        control = control_of(cpu);
        write_dr7(control);
        put_in_order(cpu, control);
    } while (control != control_of(cpu));
}

/* void_hits - step 1: hits of register @i that are not handled yet are hits no more. */
NOKPROBE_INLINE void void_hits(struct percpu *cpu, unsigned i)
{
    uint64_t dr6 = read_dr6();

    if (dr6 & BIT(i))
        write_dr6(dr6 & ~BIT(i));
    WRITE_ONCE(cpu->debug_changes[i], cpu->debug_changes[i] + 1);
}

NOKPROBE_INLINE void debug_reg_load(struct percpu *cpu, unsigned i)
{
    uintptr_t addr = __atomic_load_n(&table.addr[i], __ATOMIC_ACQUIRE);
    uint8_t setting = READ_ONCE(table.setting[i]);

    if (cpu->debug_addr[i] == addr && (!addr || cpu->debug_setting[i] == setting))
        return;
    if (cpu->debug_addr[i]) {
        WRITE_ONCE(cpu->debug_addr[i], 0);
        settle(cpu);
    }
    void_hits(cpu, i);
    if (!addr)
        return;
    write_dr(i, addr);
    WRITE_ONCE(cpu->debug_setting[i], setting);
    WRITE_ONCE(cpu->debug_addr[i], addr);
}

void debug_regs_load(void)
{
    unsigned long flags = irq_save();
    struct percpu *cpu = this_cpu();
    uint64_t seen;

    do {
        seen = __atomic_load_n(&table.changes, __ATOMIC_SEQ_CST);
        for (unsigned i = 0; i < DEBUG_REGS; i++)
            debug_reg_load(cpu, i);
        settle(cpu);
    } while (seen != __atomic_load_n(&table.changes, __ATOMIC_SEQ_CST));
    irq_restore(flags);
}
NOKPROBE(debug_regs_load);

static void load_called(void *arg)
{
    (void)arg;
    debug_regs_load();
}

void debug_regs_load_all(void)
{
    smp_call_all(load_called, NULL);
}

static void load_irq(struct pt_regs *regs)
{
    (void)regs;
    lapic_eoi();
    debug_regs_load();
}

void debug_regs_load_soon(void)
{
    unsigned long flags = irq_save();

    debug_regs_load();
    for (unsigned i = 0; i < cpu_count(); i++)
        if (i != cpu_id())
            lapic_send(percpu_of(i)->apic_id, LAPIC_IPI | VECTOR_DEBUG_REGS);
    irq_restore(flags);
}

INIT void debug_regs_init(void)
{
    irq_set_handler(VECTOR_DEBUG_REGS, "debug registers", load_irq);
}

/* ---- for the handler of #DB ---- */

/* debug_reg_is_loaded - does this CPU watch with register @i what the table says? */
NOKPROBE_INLINE bool debug_reg_is_loaded(const struct percpu *cpu, unsigned i)
{
    uintptr_t addr = READ_ONCE(cpu->debug_addr[i]);

    return addr && addr == READ_ONCE(table.addr[i]) &&
           READ_ONCE(cpu->debug_setting[i]) == READ_ONCE(table.setting[i]);
}

/* valid - return @dr6 without the bits of registers that have changed since the #DB. */
NOKPROBE_INLINE unsigned long valid(const struct percpu *cpu, unsigned long dr6)
{
    for (unsigned i = 0; i < DEBUG_REGS; i++)
        if ((uint8_t)(dr6 >> (32 + 8 * i)) != READ_ONCE(cpu->debug_changes[i]))
            dr6 &= ~BIT(i);
    return dr6;
}

bool debug_reg_is_hit(unsigned long dr6, unsigned i)
{
    const struct percpu *cpu = this_cpu();

    return debug_reg_is_loaded(cpu, i) && valid(cpu, dr6 | BIT(i)) & BIT(i);
}
NOKPROBE(debug_reg_is_hit);

/* add_implied - add to @hits the registers that must have been hit as well. An emulator may
 * report only one: put_in_order(). A processor reports all.
 */
NOKPROBE_INLINE unsigned add_implied(const struct percpu *cpu, unsigned long dr6,
                                     unsigned hits)
{
    for (unsigned i = 0; i < DEBUG_REGS; i++)
        for (unsigned j = 0; hits & BIT(i) && j < DEBUG_REGS; j++)
            if (implies(cpu, i, j) && debug_reg_is_hit(dr6, j))
                hits |= 1u << j;
    return hits;
}

unsigned debug_reg_hits(unsigned long dr6)
{
    const struct percpu *cpu = this_cpu();
    unsigned hits = 0, stale = 0;

    dr6 = valid(cpu, dr6);
    for (unsigned i = 0; i < DEBUG_REGS; i++) {
        if (!(dr6 & BIT(i)) || !cpu->debug_addr[i])
            continue;
        if (debug_reg_is_loaded(cpu, i))
            hits |= 1u << i;
        else
            stale |= 1u << i;
    }
    if (stale) /* until the CPU has loaded, the instruction would trap again and again */
        debug_regs_load();
    return add_implied(cpu, dr6, hits);
}
NOKPROBE(debug_reg_hits);

/* debug_reg_let_pass - let the CPU execute the instruction at regs->ip without another
 * trap by the registers in @bits. RF does that. But only IRET loads RF, and in an NMI
 * traps return without IRET, so there the registers rest until the NMI ends.
 */
NOKPROBE_INLINE void debug_reg_let_pass(struct pt_regs *regs, unsigned bits)
{
    regs->flags |= FLAGS_RF;
    if (this_cpu()->nmi_depth) /* also where the context is held */
        debug_regs_rest(bits);
}

/* tell_owner - call the owner of register @i. Return: shall the CPU go past the instruction
 * at which it was stopped?
 */
NOKPROBE_INLINE bool tell_owner(struct pt_regs *regs, unsigned i, bool miss)
{
    bool executes = setting_kind(this_cpu()->debug_setting[i]) == DEBUG_REG_EXECUTE;
    /* A miss may be an access to owners[] itself. */
    debug_reg_hit_t hit = miss ? NULL : READ_ONCE(owners[i].hit);
    uintptr_t ip = regs->ip;

    if (!debug_reg_is_hit(regs->dr6, i))
        return false;
    if (hit && !hit(regs, i))
        return false;
    return executes && regs->ip == ip;
}

void debug_regs_tell(struct pt_regs *regs, unsigned bits, bool miss)
{
    unsigned passes = 0;

    for (unsigned i = 0; i < DEBUG_REGS; i++)
        if (bits & BIT(i) && tell_owner(regs, i, miss))
            passes |= 1u << i;
    if (passes)
        debug_reg_let_pass(regs, passes);
}
NOKPROBE(debug_regs_tell);

NOKPROBE_INLINE bool is_between(uintptr_t ip, uintptr_t first, uintptr_t last)
{
    return ip >= first && ip <= last;
}

/* give_back - store @dr6 in DR6, for the interrupted entry code, which has not read it yet.
 * An NMI may make a bit void until it is stored.
 */
NOKPROBE_INLINE void give_back(const struct percpu *cpu, unsigned long dr6)
{
    do {
        dr6 = valid(cpu, dr6);
        write_dr6((uint32_t)dr6);
    } while (dr6 != valid(cpu, dr6));
}

/* Is @ip in the entry code of #DB, before the code reads DR6, or behind that, but before it
 * clears DR6?
 */
NOKPROBE_INLINE bool entry_has_to_read(uintptr_t ip)
{
    uintptr_t stub = (uintptr_t)entry_stubs[TRAP_DB];

    return is_between(ip, (uintptr_t)db_entry, db_entry_read) ||
           is_between(ip, stub, stub + STUB_LEN - 1);
}

NOKPROBE_INLINE bool entry_has_to_clear(uintptr_t ip)
{
    return ip > db_entry_read && ip < db_entry_cleared;
}

bool debug_regs_at_entry(const struct pt_regs *regs)
{
    if (entry_has_to_clear(regs->ip))
        return true;
    if (!entry_has_to_read(regs->ip))
        return false;
    give_back(this_cpu(), regs->dr6);
    return true;
}
NOKPROBE(debug_regs_at_entry);

uint64_t debug_regs_set_aside(const struct pt_regs *regs)
{
    const struct percpu *cpu = this_cpu();
    bool is_unread = entry_has_to_read(regs->ip);
    uint64_t dr6;

    if (!is_unread && !entry_has_to_clear(regs->ip))
        return 0;
    dr6 = read_dr6();
    write_dr6(DR6_NONE);
    for (unsigned i = 0; i < DEBUG_REGS; i++)
        dr6 |= (uint64_t)cpu->debug_changes[i] << (32 + 8 * i);
    return is_unread ? dr6 : 0;
}

void debug_regs_give_back(uint64_t dr6)
{
    give_back(this_cpu(), dr6);
}

void debug_regs_rest(unsigned bits)
{
    struct percpu *cpu = this_cpu();

    cpu->debug_rests = (uint8_t)(cpu->debug_rests | bits);
    settle(cpu);
}
NOKPROBE(debug_regs_rest);

void debug_regs_wake(void)
{
    struct percpu *cpu = this_cpu();

    cpu->debug_rests = 0;
    settle(cpu);
}
NOKPROBE(debug_regs_wake);

/* ---- what cannot be watched ---- */

static bool overlaps(uintptr_t addr, size_t len, const void *object, size_t size)
{
    uintptr_t start = (uintptr_t)object;

    return addr < start + size && start < addr + len;
}

static bool is_in_area(uintptr_t addr)
{
    return addr >= PERCPU_AREA_BASE &&
           addr < PERCPU_AREA_BASE + MAX_CPUS * PERCPU_AREA_STRIDE &&
           (addr - PERCPU_AREA_BASE) % PERCPU_AREA_STRIDE < PERCPU_COUNTERS_OFF;
}

/* The CPU accesses this memory after each trap, before the handler has noted that a hit
 * is active, and on the way back.
 */
bool debug_reg_is_own(uintptr_t addr, size_t len)
{
    return is_in_area(addr) || overlaps(addr, len, &table, sizeof(table)) ||
           overlaps(addr, len, &db_entry_read, sizeof(db_entry_read)) ||
           overlaps(addr, len, &db_entry_cleared, sizeof(db_entry_cleared)) ||
           trap_is_own(addr, len);
}
