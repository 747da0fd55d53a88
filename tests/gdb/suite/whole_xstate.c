/* whole_xstate.c - lets gdbserver 13 write registers where the CPU has more of them than it
 * knows: preloaded into it by ./gdbserver.
 *
 * Linux takes the extended registers of a thread only as a whole: a buffer of another size
 * than the host's is EFAULT. gdbserver's has the size that it knows of, which is too small
 * where a CPU has AMX. Then no write arrives, also none of an ip, and the program stays at
 * its breakpoint for ever. Here the rest is what the thread has already.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define ROOM 65536 /* bytes, more than any CPU has */

typedef long (*ptrace_function)(enum __ptrace_request request, ...);

/* The program that is debugged is not meant. */
__attribute__((constructor)) static void leave_children_alone(void)
{
    unsetenv("LD_PRELOAD");
}

/* complete - Return: whether @given was shorter than what the thread has. Then @whole is what
 * the thread has, with @given in front.
 */
static int complete(ptrace_function next, pid_t pid, struct iovec *whole,
                    const struct iovec *given)
{
    if (next(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, whole) ||
        whole->iov_len <= given->iov_len)
        return 0;
    memcpy(whole->iov_base, given->iov_base, given->iov_len);
    return 1;
}

__attribute__((visibility("default"))) long ptrace(enum __ptrace_request request, ...)
{
    static _Alignas(64) uint8_t bytes[ROOM];
    struct iovec whole = { .iov_base = bytes, .iov_len = sizeof(bytes) };
    ptrace_function next = (ptrace_function)dlsym(RTLD_NEXT, "ptrace");
    va_list args;
    void *addr, *data;
    pid_t pid;

    va_start(args, request);
    pid = va_arg(args, pid_t);
    addr = va_arg(args, void *);
    data = va_arg(args, void *);
    va_end(args);
    if (request == PTRACE_SETREGSET && (uintptr_t)addr == NT_X86_XSTATE &&
        complete(next, pid, &whole, data))
        data = &whole;
    return next(request, pid, addr, data);
}
