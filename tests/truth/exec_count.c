/* exec_count.c - a QEMU plugin that counts how often instructions of the guest's kernel are
 * executed, address by address. It knows nothing of probes: what it counts is what the
 * probes' own counters have to agree with.
 *
 * A plugin of this interface sees neither registers nor the content of memory, but it sees
 * which address an instruction loads from. So the guest talks to it by loads from within
 * one function, truth_tell():
 *
 *   from an address in the text   count this instruction, from 0 on
 *   from truth_opened             from now on
 *   from truth_closed             no longer: write down what was counted, and forget it
 *
 * Arguments: text, tell (START:END), opened, closed (addresses), all in hexadecimal, and
 * out, a file. Each time something is written down, a line `= WINDOW` follows the lines
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

/* One byte of text. The guest changes `counted` only while nobody executes what it is
 * about; `executions` is added to by all CPUs.
 */
struct counter {
    bool counted;
    uint64_t executions;
};

static struct range text, tell;
static uint64_t opened, closed;
static struct counter *counters; /* by offset in the text */
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

static void write_down(void)
{
    for (uint64_t i = 0; i < text.end - text.start; i++) {
        struct counter *c = &counters[i];

        if (c->counted)
            fprintf(out, "%" PRIx64 " %" PRIu64 "\n", text.start + i, c->executions);
        *c = (struct counter){ 0 };
    }
    fprintf(out, "= %u\n", window++);
    fflush(out);
}

static void told(unsigned cpu, uint32_t info, uint64_t addr, void *arg)
{
    (void)cpu;
    (void)info;
    (void)arg;
    if (contains(&text, addr))
        counters[addr - text.start] = (struct counter){ .counted = true };
    if (addr == opened)
        __atomic_store_n(&is_open, true, __ATOMIC_SEQ_CST);
    if (addr != closed)
        return;
    __atomic_store_n(&is_open, false, __ATOMIC_SEQ_CST);
    write_down();
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
    if (!counters || !out || !opened || !closed || !tell.end) {
        fprintf(stderr, "exec_count: not all of text, tell, opened, closed, out\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
