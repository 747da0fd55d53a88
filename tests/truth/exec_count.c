/* exec_count.c - a QEMU plugin that counts how often instructions of the guest's kernel are
 * executed, address by address. It knows nothing of probes: what it counts is what the
 * probes' own counters have to agree with.
 *
 * A plugin of this interface sees neither registers nor the content of memory, but it sees
 * which address an instruction loads from. So the guest talks to it by loads from within
 * one function, truth_tell():
 *
 *   from an address in the text   count this instruction, from 0 on
 *   then from a jump in a cell    a CPU that executes it has executed this one, too:
 *                                 the jump leads past it, to where its own jump would have
 *   from truth_opened             from now on
 *   from truth_closed             no longer: write down what was counted, and forget it
 *
 * Arguments: text, cells, tell (START:END), opened, closed (addresses), all in hexadecimal,
 * and out, a file. Each time something is written down, a line `= WINDOW` follows the lines
 * `ADDRESS EXECUTIONS` of all instructions that were to be counted.
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

/* QEMU 7.2 takes reads for writes where only one of the two is asked for. */
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

/* What QEMU looks for in a plugin. */
QEMU_API extern int qemu_plugin_version;
QEMU_API int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

int qemu_plugin_version = 1;

/* ---- counting ---- */

struct range {
    uint64_t start, end;
};

/* One byte of text. The guest changes what is to be counted only while no CPU executes that
 * byte; `executions` is added to by all CPUs.
 */
struct counter {
    bool counted;
    uint32_t past; /* offset of a jump in the cells that leads past it; 0: none */
    uint64_t executions;
};

static struct range text, cells, tell;
static uint64_t opened, closed;
static struct counter *counters;  /* by offset in the text */
static struct counter **passed;   /* by offset in the cells: what a jump leads past */
static struct counter *told_last; /* what a jump would be about */
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

static void forget(struct counter *c)
{
    passed[c->past] = NULL;
    *c = (struct counter){ 0 };
}

static void write_down(void)
{
    for (uint64_t i = 0; i < text.end - text.start; i++) {
        struct counter *c = &counters[i];

        if (c->counted)
            fprintf(out, "%" PRIx64 " %" PRIu64 "\n", text.start + i, c->executions);
        forget(c);
    }
    fprintf(out, "= %u\n", window++);
    fflush(out);
}

static void told(unsigned cpu, uint32_t info, uint64_t addr, void *arg)
{
    (void)cpu;
    (void)info;
    (void)arg;
    if (contains(&text, addr)) {
        told_last = &counters[addr - text.start];
        forget(told_last);
        told_last->counted = true;
    } else if (addr == opened) {
        __atomic_store_n(&is_open, true, __ATOMIC_SEQ_CST);
    } else if (addr != closed && contains(&cells, addr) && told_last) {
        told_last->past = (uint32_t)(addr - cells.start);
        passed[told_last->past] = told_last;
    }
    if (addr != closed)
        return;
    __atomic_store_n(&is_open, false, __ATOMIC_SEQ_CST);
    write_down();
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

        if (contains(&text, addr))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, count, QEMU_CB_NO_REGS,
                                                   &counters[addr - text.start]);
        else if (contains(&cells, addr) && is_jump(insn))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, count_passed, QEMU_CB_NO_REGS,
                                                   &passed[addr - cells.start]);
        if (contains(&tell, addr))
            qemu_plugin_register_vcpu_mem_cb(insn, told, QEMU_CB_NO_REGS, QEMU_MEM_ANY,
                                             NULL);
    }
}

/* ---- arguments ---- */

static bool take(const char *word)
{
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value++ - word) : 0;

    if (len == 4 && !strncmp(word, "text", len))
        return sscanf(value, "%" SCNx64 ":%" SCNx64, &text.start, &text.end) == 2;
    if (len == 4 && !strncmp(word, "tell", len))
        return sscanf(value, "%" SCNx64 ":%" SCNx64, &tell.start, &tell.end) == 2;
    if (len == 5 && !strncmp(word, "cells", len))
        return sscanf(value, "%" SCNx64 ":%" SCNx64, &cells.start, &cells.end) == 2;
    if (len == 6 && !strncmp(word, "opened", len))
        return sscanf(value, "%" SCNx64, &opened) == 1;
    if (len == 6 && !strncmp(word, "closed", len))
        return sscanf(value, "%" SCNx64, &closed) == 1;
    if (len == 3 && !strncmp(word, "out", len))
        return (out = fopen(value, "w")) != NULL;
    return false;
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
    counters = calloc(text.end - text.start, sizeof(*counters));
    passed = calloc(cells.end - cells.start, sizeof(*passed)); /* most is never touched */
    if (!counters || !passed || !out || !opened || !closed || !tell.end || !cells.end) {
        fprintf(stderr,
                "exec_count: not all of text, cells, tell, opened, closed, out\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
