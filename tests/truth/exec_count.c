/* exec_count.c - a QEMU plugin that counts how often instructions of the guest's kernel
 * are executed, address by address. It knows nothing of probes. The counters of the
 * probes must agree with its counts.
 *
 * A plugin of this interface sees neither registers nor the content of memory, but it
 * sees the address from which an instruction loads. So the guest gives orders to it by
 * loads, which one function makes, truth_tell():
 *
 *   from an address in the text   count this instruction
 *   then from a jump in a cell    count it when a CPU executes this jump, too: the jump
 *                                 is a link, which leads past the instruction into its
 *                                 detour
 *   from truth_opened             begin to count
 *   from truth_unlinked           forget all such jumps
 *   from truth_closed             stop: write the counts to the file, and forget them
 *
 * Arguments: text, modules, cells, tell (START:END), opened, unlinked, closed
 * (addresses), all in hexadecimal, and out, a file. text is that of the image, modules
 * that of modules. The plugin writes a line `ADDRESS EXECUTIONS` for each instruction
 * that was to be counted, and then a line `= WINDOW`.
 *
 * The declarations are those of version 1 of QEMU's plugin interface, for which Debian has
 * no header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- QEMU's side ---- */

#define QEMU_API __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* If only reads or only writes are asked for, QEMU 7.2 confuses the two. So the plugin
 * asks for both.
 */
enum { QEMU_CB_NO_REGS = 0, QEMU_MEM_ANY = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*fn)(uint64_t id,
                                                      struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
                                                 size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            void (*fn)(unsigned cpu, void *arg),
                                            int flags, void *arg);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*fn)(unsigned cpu, uint32_t info,
                                                 uint64_t addr, void *arg),
                                      int flags, int access, void *arg);

/* The symbols that QEMU looks for in a plugin. */
QEMU_API extern int qemu_plugin_version;
QEMU_API int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

int qemu_plugin_version = 1;

/* ---- counting ---- */

struct range {
    uint64_t start, end;
};

/* The counter of one byte of text. The guest gives orders about an instruction only while
 * no CPU executes it. All CPUs add to executions.
 */
struct counter {
    bool counted;
    uint32_t past; /* offset in the cells of a jump that leads past it; 0: none */
    uint64_t executions;
};

static struct range texts[2];       /* that of the image, and that of modules */
static struct counter *counters[2]; /* for each text, indexed by offset in it */
static struct range cells, tell;
static uint64_t opened, unlinked, closed;
static struct counter **passed;   /* for each offset in the cells: what the jump passes */
static struct counter *told_last; /* if a jump is told next, it belongs to this */
static bool is_open;
static unsigned window;
static FILE *out;

static bool contains(const struct range *r, uint64_t addr)
{
    return addr >= r->start && addr < r->end;
}

static void count(unsigned cpu, void *arg)
{
    struct counter *c = arg;

    (void)cpu;
    if (__atomic_load_n(&is_open, __ATOMIC_RELAXED) && c->counted)
        __atomic_add_fetch(&c->executions, 1, __ATOMIC_RELAXED);
}

static void count_passed(unsigned cpu, void *arg)
{
    struct counter *const *c = arg;

    if (*c)
        count(cpu, *c);
}

/* counter_at - return the counter of @addr; NULL: it is in no text. */
static struct counter *counter_at(uint64_t addr)
{
    for (unsigned i = 0; i < 2; i++)
        if (contains(&texts[i], addr))
            return &counters[i][addr - texts[i].start];
    return NULL;
}

static void unlink_one(struct counter *c)
{
    passed[c->past] = NULL;
    c->past = 0;
}

static void for_all(void (*fn)(struct counter *c, uint64_t addr))
{
    for (unsigned i = 0; i < 2; i++)
        for (uint64_t at = texts[i].start; at < texts[i].end; at++)
            if (counters[i][at - texts[i].start].counted)
                fn(&counters[i][at - texts[i].start], at);
}

static void unlink_it(struct counter *c, uint64_t addr)
{
    (void)addr;
    unlink_one(c);
}

static void write_down_one(struct counter *c, uint64_t addr)
{
    fprintf(out, "%" PRIx64 " %" PRIu64 "\n", addr, c->executions);
    unlink_one(c);
    *c = (struct counter){ 0 };
}

static void write_down(void)
{
    for_all(write_down_one);
    fprintf(out, "= %u\n", window++);
    fflush(out);
}

static void told(unsigned cpu, uint32_t info, uint64_t addr, void *arg)
{
    struct counter *c = counter_at(addr);

    (void)cpu;
    (void)info;
    (void)arg;
    if (addr == opened) {
        __atomic_store_n(&is_open, true, __ATOMIC_SEQ_CST);
    } else if (addr == unlinked) {
        for_all(unlink_it);
    } else if (addr == closed) {
        __atomic_store_n(&is_open, false, __ATOMIC_SEQ_CST);
        write_down();
    } else if (c) {
        told_last = c;
        unlink_one(c);
        c->counted = true;
    } else if (contains(&cells, addr) && told_last) {
        told_last->past = (uint32_t)(addr - cells.start);
        passed[told_last->past] = told_last;
    }
}

static bool is_jump(const struct qemu_plugin_insn *insn)
{
    return *(const uint8_t *)qemu_plugin_insn_data(insn) == 0xe9;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t addr = qemu_plugin_insn_vaddr(insn);

        if (counter_at(addr))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, count, QEMU_CB_NO_REGS,
                                                   counter_at(addr));
        else if (contains(&cells, addr) && is_jump(insn))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, count_passed, QEMU_CB_NO_REGS,
                                                   &passed[addr - cells.start]);
        if (contains(&tell, addr))
            qemu_plugin_register_vcpu_mem_cb(insn, told, QEMU_CB_NO_REGS, QEMU_MEM_ANY,
                                             NULL);
    }
}

/* ---- arguments ---- */

static bool is_word(const char *word, size_t len, const char *name)
{
    return len == strlen(name) && !strncmp(word, name, len);
}

static bool take(const char *word)
{
    const struct {
        const char *name;
        struct range *range;
    } ranges[] = { { "text", &texts[0] },
                   { "modules", &texts[1] },
                   { "cells", &cells },
                   { "tell", &tell } };
    const struct {
        const char *name;
        uint64_t *addr;
    } addrs[] = { { "opened", &opened },
                  { "unlinked", &unlinked },
                  { "closed", &closed } };
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value++ - word) : 0;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (is_word(word, len, ranges[i].name))
            return sscanf(value, "%" SCNx64 ":%" SCNx64, &ranges[i].range->start,
                          &ranges[i].range->end) == 2;
    for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
        if (is_word(word, len, addrs[i].name))
            return sscanf(value, "%" SCNx64, addrs[i].addr) == 1;
    return is_word(word, len, "out") && (out = fopen(value, "w")) != NULL;
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!take(argv[i])) {
            fprintf(stderr, "exec_count: cannot make sense of %s\n", argv[i]);
            return -1;
        }
    }
    for (unsigned i = 0; i < 2; i++)
        counters[i] = calloc(texts[i].end - texts[i].start + 1, sizeof(struct counter));
    passed = calloc(cells.end - cells.start, sizeof(*passed)); /* most stays unused */
    if (!counters[0] || !counters[1] || !passed || !out || !opened || !unlinked ||
        !closed || !tell.end || !cells.end) {
        fprintf(stderr, "exec_count: not all of its arguments\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
