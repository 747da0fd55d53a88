/* err.h - error numbers, with Linux's values and one meaning each. Pure.
 *
 * The definitions are spelt as in the host's <errno.h>, so a host file may include both.
 * A comment says what the number means in the engine.
 */
#pragma once

#define EPERM 1  /* in the re-entry core, or in code that the engine has made */
#define ENOENT 2 /* no such symbol, or the address is not inside a function */
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define E2BIG 7   /* a return probe wants more data than there is room for */
#define ENOEXEC 8 /* the file is no object that can be loaded */
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12 /* no memory, or no slot */
#define EACCES 13
#define EFAULT 14 /* memory that cannot be read */
#define EBUSY 16  /* other code, for example a debugger, has changed the bytes */
#define EEXIST 17 /* this `struct kprobe` is registered already */
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22 /* the request is malformed, or the probe is not registered */
#define ENFILE 23
#define ENOSPC 28
#define EPIPE 32
#define EDOM 33    /* a program of gdb divides by zero */
#define ERANGE 34  /* out of reach of a 32-bit displacement */
#define EDEADLK 35 /* from a handler, or the function would wait where it cannot */
#define ENAMETOOLONG 36
#define ENOSYS 38
#define ENOTEMPTY 39
#define ELOOP 40
#define ETIME 62
#define EOVERFLOW 75
#define EILSEQ 84     /* no instruction boundary, no instruction, or a trap instruction */
#define EOPNOTSUPP 95 /* an instruction that cannot be moved or emulated here */
#define EADDRNOTAVAIL 99 /* several symbols have this name */
#define ETIMEDOUT 110
#define ECANCELED 125

/* err_name - get the symbol of an errno value, e.g. "EINVAL"; "E?" for an unknown value.
 * err_text - get the usual text for an errno value, e.g. "Invalid argument".
 * @err: 0 ("OK", "Success") or an errno, positive or negative.
 *
 * Context: any.
 */
const char *err_name(int err);
const char *err_text(int err);
