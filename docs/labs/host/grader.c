/* grader.c - runs one case of one line of a rubric: PROGRAM LINE SEED CASE.
 *
 * The variable LAB_FACTS has the number of the open file for facts. Without this variable
 * the facts go to standard output, which is useful under gdb.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define MULTIPLIER 0x9e3779b97f4a7c15u

unsigned lab_case;
static uint64_t state;
static int facts = STDOUT_FILENO;

void lab_fact(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (vdprintf(facts, format, args) < 0 || write(facts, "\n", 1) != 1)
        _exit(1);
    va_end(args);
}

/* splitmix64, by Sebastiano Vigna. */
uint64_t lab_random(void)
{
    uint64_t x = state += MULTIPLIER;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

unsigned lab_below(unsigned limit)
{
    return (unsigned)(lab_random() % limit);
}

uint64_t lab_digest(uint64_t before, const void *bytes, unsigned long len)
{
    const uint8_t *byte = bytes;

    for (unsigned long i = 0; i < len; i++)
        before = (before ^ byte[i]) * 0x100000001b3u;
    return before;
}

uint8_t *lab_text_new(unsigned long size)
{
    uint8_t *text = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

    if (text == MAP_FAILED) {
        perror("mmap");
        _exit(1);
    }
    memset(text, 0xcc, size);
    return text;
}

/* A signal will end the program. This handler states the address of the instruction as a
 * fact, and grade.py makes a sentence of it. SA_RESETHAND has removed the handler: the
 * instruction is executed again, and now its signal ends the program. A trap is not executed
 * again.
 */
static void on_end(int sig, siginfo_t *info, void *arg)
{
    const ucontext_t *context = arg;

    lab_fact("ended: %d %d %llx %lx", sig, info->si_code,
             (unsigned long long)context->uc_mcontext.gregs[REG_RIP],
             (unsigned long)info->si_addr);
    if (info->si_code <= 0 || sig == SIGTRAP)
        raise(sig == SIGXCPU ? SIGKILL : sig);
}

/* Set the handler for all signals that end a program, but not where the student's code has a
 * handler already. SIGXCPU comes when the time is over.
 */
static void tell_ends(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGXCPU };
    static uint8_t stack[1 << 16];
    struct sigaction action = { .sa_sigaction = on_end,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND };

    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction there;

        if (!sigaction(signals[i], NULL, &there) && there.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

int main(int argc, char **argv)
{
    const struct lab_line *line = lab_lines;
    const char *number = getenv("LAB_FACTS");

    if (argc != 4)
        return 2;
    while (line->name && strcmp(line->name, argv[1]))
        line++;
    if (!line->name)
        return 2;
    if (number && *number)
        facts = atoi(number);
    lab_case = (unsigned)strtoul(argv[3], NULL, 0);
    state = strtoull(argv[2], NULL, 0) + lab_case * 1000003u;
    state = lab_digest(state, line->name, strlen(line->name));
    if (facts != STDOUT_FILENO)
        tell_ends();
    line->run();
    lab_fact("the case has ended");
    return 0;
}
