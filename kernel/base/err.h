/* err.h - error numbers, with Linux's values and one meaning each. Pure.
 *
 * The definitions are spelt as in the host's <errno.h>, so a host file may include both.
 * The table in docs/architecture.md says what each number means in the engine.
 */
#pragma once

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define E2BIG 7
#define ENOEXEC 8
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define ENOSPC 28
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define EDEADLK 35
#define ENAMETOOLONG 36
#define ENOSYS 38
#define ENOTEMPTY 39
#define ELOOP 40
#define ETIME 62
#define EILSEQ 84
#define EOPNOTSUPP 95
#define EADDRNOTAVAIL 99
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
