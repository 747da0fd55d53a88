/* int3.c - breakpoints: the instruction is stepped in a copy, so the int3 stays for the other
 * threads.
 */
#define _GNU_SOURCE
#include "int3.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define INT3 0xcc
#define PUSHF 0x9c
#define FLAG_TF 0x100
#define TRAP_BP 3
#define CELL 16
#define PAGE 4096

static struct breakpoint *all;
static uint8_t *cells; /* the first free one, which begins with the address of the next */
static __thread struct breakpoint *stepped; /* this thread is in its copy */

static void free_cell(uint8_t *cell)
{
    memcpy(cell, &cells, sizeof(cells));
    cells = cell;
}

static uint8_t *new_copy(const struct breakpoint *bp)
{
    uint8_t *cell;

    if (!cells) {
        uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (unsigned at = PAGE; at >= CELL; at -= CELL)
            free_cell(page + at - CELL);
    }
    cell = cells;
    memcpy(&cells, cell, sizeof(cells));
    return memcpy(cell, bp->at, bp->len);
}

/* Is the instruction a pushf? Prefixes may stand in front of its opcode. */
static bool is_pushf(const struct breakpoint *bp)
{
    static const uint8_t legacy[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64,
                                      0x65, 0x66, 0x67, 0xf2, 0xf3 };
    const uint8_t *byte = bp->copy;

    while ((*byte & 0xf0) == 0x40 || memchr(legacy, *byte, sizeof(legacy)))
        byte++;
    return *byte == PUSHF;
}

static void on_hit(struct breakpoint *bp, ucontext_t *context)
{
    greg_t *regs = context->uc_mcontext.gregs;

    regs[REG_RIP] = (greg_t)bp->at;
    bp->handler(bp, context);
    regs[REG_RIP] = (greg_t)bp->copy;
    regs[REG_EFL] |= FLAG_TF;
    stepped = bp;
}

static void on_step(greg_t *regs)
{
    regs[REG_RIP] = (greg_t)(stepped->at + stepped->len);
    regs[REG_EFL] &= ~FLAG_TF;
    if (is_pushf(stepped))
        *(uint16_t *)regs[REG_RSP] &= (uint16_t)~FLAG_TF;
    stepped = NULL;
}

static void on_trap(int sig, siginfo_t *info, void *arg)
{
    ucontext_t *context = arg;
    greg_t *regs = context->uc_mcontext.gregs;

    (void)sig;
    (void)info;
    if (regs[REG_TRAPNO] != TRAP_BP) {
        on_step(regs);
        return;
    }
    for (struct breakpoint *bp = all; bp; bp = bp->next)
        if ((greg_t)bp->at == regs[REG_RIP] - 1) {
            on_hit(bp, context);
            return;
        }
}

void breakpoint_set(struct breakpoint *bp)
{
    struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

    sigaction(SIGTRAP, &action, NULL);
    bp->original = *bp->at;
    bp->copy = new_copy(bp);
    bp->next = all;
    all = bp;
    *bp->at = INT3;
}

void breakpoint_clear(struct breakpoint *bp)
{
    struct breakpoint **link = &all;

    *bp->at = bp->original;
    while (*link != bp)
        link = &(*link)->next;
    *link = bp->next;
    free_cell(bp->copy);
}
