/* program.c - what a program of gdb's test-suite is linked with to run in the kernel: a
 * thread that calls main() when a debugger has come and let the kernel go on, and the
 * functions of C's library that the programs use and the kernel has not.
 *
 * The thread has SSE, which the kernel itself does not use and does not save: only this
 * thread computes with it, and it stays on one CPU.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CR0_MP (1ul << 1)
#define CR0_EM (1ul << 2)
#define CR4_OSFXSR (1ul << 9)
#define CR4_OSXMMEXCPT (1ul << 10)

#define STACK_LEN 0x40000
#define LINE_LEN 256
#define SECOND UINT64_C(1000000000)
#define BOOT_NS (SECOND / 5) /* for what else the boot does: it changes text, too */

int main(int argc, char **argv, char **envp);

/* Where the debugger's file has one thing of each kind: suite/guest.py compares. */
static const char constant = 1;
static char variable = 2;
static char zero;

FILE *stdin, *stdout, *stderr;
int errno;

/* ---- C's library ---- */

/* Tests step through their programs, and look at no output: nothing is printed. */
int printf(const char *fmt, ...)
{
    (void)fmt;
    return 1;
}

int fprintf(FILE *file, const char *fmt, ...)
{
    (void)file, (void)fmt;
    return 1;
}

int sprintf(char *out, const char *fmt, ...)
{
    va_list list;
    int len;

    va_start(list, fmt);
    len = vsnprintf(out, LINE_LEN, fmt, list);
    va_end(list);
    return len;
}

int puts(const char *text)
{
    (void)text;
    return 1;
}

int putchar(int c)
{
    return c;
}

int fflush(FILE *file)
{
    (void)file;
    return 0;
}

int setvbuf(FILE *file, char *buf, int mode, size_t size)
{
    (void)file, (void)buf, (void)mode, (void)size;
    return 0;
}

int atoi(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

void *malloc(size_t len)
{
    return kmalloc(len);
}

void *calloc(size_t count, size_t len)
{
    return kzalloc(count * len);
}

void free(void *mem)
{
    kfree(mem);
}

long read(int file, void *out, size_t len)
{
    (void)file, (void)out, (void)len;
    return 0;
}

long write(int file, const void *bytes, size_t len)
{
    (void)file, (void)bytes;
    return (long)len;
}

int fileno(FILE *file)
{
    (void)file;
    return 1;
}

int isatty(int file)
{
    (void)file;
    return 1;
}

unsigned sleep(unsigned seconds)
{
    thread_sleep_ns(seconds * SECOND);
    return 0;
}

int usleep(unsigned us)
{
    thread_sleep_ns(us * UINT64_C(1000));
    return 0;
}

unsigned alarm(unsigned seconds)
{
    (void)seconds;
    return 0;
}

int getpid(void)
{
    return thread_current()->tid;
}

/* exit - gdb's tests set a breakpoint here, so it is not a part of its caller. The kernel
 * ends with the program: a test that comes here in error would wait, up to ten minutes.
 */
NOINLINE void exit(int status)
{
    _Noreturn void power_off(void); /* of a driver, which is above the tests */

    (void)status;
    power_off();
}

void abort(void)
{
    exit(1);
}

/* ---- gcc's profiler: boards/sonde.exp ---- */

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function, (void)caller;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
}

/* ---- the thread ---- */

/* tell_places - on QEMU's debug port: no stop can cut it off. */
static void tell_places(void)
{
    char line[LINE_LEN];
    int len =
        snprintf(line, sizeof(line), "program: main %p constant %p variable %p zero %p\n",
                 (void *)main, (const void *)&constant, (void *)&variable, (void *)&zero);

    for (int i = 0; i < len; i++)
        outb(0xe9, (uint8_t)line[i]);
}

static int run(void *unused)
{
    char name[] = "program", *argv[] = { name, NULL }, *none[] = { NULL };

    (void)unused;
    write_cr0((read_cr0() | CR0_MP) & ~CR0_EM);
    write_cr4(read_cr4() | CR4_OSFXSR | CR4_OSXMMEXCPT);
    thread_sleep_ns(BOOT_NS);
    tell_places();
    while (!gdb_line_attached())
        thread_sleep_ns(SECOND / 1000);
    exit(main(1, argv, none));
    return 0;
}

__attribute__((constructor)) static void program_init(void)
{
    kernel_clone(&(struct clone_args){ .fn = run,
                                       .name = "program",
                                       .stack_len = STACK_LEN,
                                       .cpus = 1,
                                       .detached = true });
}
