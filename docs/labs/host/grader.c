/* grader.c - runs one case of one line of a rubric: PROGRAM LINE SEED CASE.
 *
 * The variable LAB_FACTS has the number of the open file for facts. Without this variable
 * the facts go to standard output, which is useful under gdb.
 *
 * The file begins with a key. Each fact has a mark in front, which is computed from the key,
 * the number of the fact and its text. grade.py computes it, too. The student's code has no
 * key, so a fact that it writes into the file is not believed.
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

#define FACT_MAX 4096
#define MARK_LEN 9 /* eight digits and a space */

unsigned lab_case;
static uint64_t state;
static int facts = STDOUT_FILENO;
static uint64_t key[2];
static uint64_t stated; /* facts so far */

/* Take the key out of the file, and the number of the file out of the environment. This runs
 * before all constructors of the student's code.
 */
static void take_key(int argc, char **argv, char **variables)
{
    (void)argc;
    (void)argv;
    for (; *variables; variables++)
        if (!strncmp(*variables, "LAB_FACTS=", 10) && (*variables)[10]) {
            facts = atoi(*variables + 10);
            memset(*variables + 10, 0, strlen(*variables + 10));
            if (pread(facts, key, sizeof(key), 0) != sizeof(key) || ftruncate(facts, 0))
                _exit(1);
        }
}
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(int, char **, char **) = take_key;

/* splitmix64, by Sebastiano Vigna. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t lab_random(void)
{
    return mixed(state += MULTIPLIER);
}

/* @text: @len bytes, and zeros up to a multiple of eight */
static uint32_t mark_of(const char *text, size_t len)
{
    uint64_t sum = key[0] ^ stated, word;

    for (size_t i = 0; i < len; i += sizeof(word)) {
        memcpy(&word, text + i, sizeof(word));
        sum = (sum ^ word) * MULTIPLIER;
        sum ^= sum >> 32;
    }
    return (uint32_t)(mixed(sum + key[1]) >> 32);
}

void lab_fact(const char *format, ...)
{
    char line[MARK_LEN + FACT_MAX + 8] = "", *text = line + MARK_LEN;
    char mark[MARK_LEN + 1];
    size_t len;
    va_list args;

    va_start(args, format);
    if (vsnprintf(text, FACT_MAX, format, args) < 0)
        _exit(1);
    va_end(args);
    len = strlen(text);
    snprintf(mark, sizeof(mark), "%08x ", mark_of(text, len));
    memcpy(line, mark, MARK_LEN);
    text[len++] = '\n';
    if (facts != STDOUT_FILENO) {
        text = line;
        len += MARK_LEN;
    }
    if (write(facts, text, len) != (ssize_t)len)
        _exit(1);
    stated++;
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

    if (argc != 4)
        return 2;
    while (line->name && strcmp(line->name, argv[1]))
        line++;
    if (!line->name)
        return 2;
    lab_case = (unsigned)strtoul(argv[3], NULL, 0);
    state = strtoull(argv[2], NULL, 0) + lab_case * 1000003u;
    state = lab_digest(state, line->name, strlen(line->name));
    if (facts != STDOUT_FILENO)
        tell_ends();
    line->run();
    lab_fact("the case has ended");
    return 0;
}
