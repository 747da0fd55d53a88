/* err.c - the names of error numbers, and the usual text for each. Owns nothing, runs
 * anywhere.
 */
#include "kernel/base/err.h"

#include "kernel/base/compiler.h"

struct err {
    const char *name;
    const char *text;
};

#define ERR(e, text) [e] = { #e, text }

static const struct err err_table[] = {
    [0] = { "OK", "Success" },
    ERR(EPERM, "Operation not permitted"),
    ERR(ENOENT, "No such file or directory"),
    ERR(ESRCH, "No such process"),
    ERR(EINTR, "Interrupted system call"),
    ERR(EIO, "Input/output error"),
    ERR(E2BIG, "Argument list too long"),
    ERR(ENOEXEC, "Exec format error"),
    ERR(EBADF, "Bad file descriptor"),
    ERR(EAGAIN, "Resource temporarily unavailable"),
    ERR(ENOMEM, "Cannot allocate memory"),
    ERR(EACCES, "Permission denied"),
    ERR(EFAULT, "Bad address"),
    ERR(EBUSY, "Device or resource busy"),
    ERR(EEXIST, "File exists"),
    ERR(ENODEV, "No such device"),
    ERR(ENOTDIR, "Not a directory"),
    ERR(EISDIR, "Is a directory"),
    ERR(EINVAL, "Invalid argument"),
    ERR(ENFILE, "Too many open files in system"),
    ERR(ENOSPC, "No space left on device"),
    ERR(EPIPE, "Broken pipe"),
    ERR(EDOM, "Numerical argument out of domain"),
    ERR(ERANGE, "Numerical result out of range"),
    ERR(EDEADLK, "Resource deadlock avoided"),
    ERR(ENAMETOOLONG, "File name too long"),
    ERR(ENOSYS, "Function not implemented"),
    ERR(ENOTEMPTY, "Directory not empty"),
    ERR(ELOOP, "Too many levels of symbolic links"),
    ERR(ETIME, "Timer expired"),
    ERR(EOVERFLOW, "Value too large for defined data type"),
    ERR(EILSEQ, "Invalid or incomplete multibyte or wide character"),
    ERR(EOPNOTSUPP, "Operation not supported"),
    ERR(EADDRNOTAVAIL, "Cannot assign requested address"),
    ERR(ETIMEDOUT, "Connection timed out"),
    ERR(ECANCELED, "Operation canceled"),
};

static const struct err *err_find(int err)
{
    static const struct err unknown = { "E?", "Unknown error" };
    unsigned number = err < 0 ? 0u - (unsigned)err : (unsigned)err;

    if (number >= ARRAY_LEN(err_table) || !err_table[number].name)
        return &unknown;
    return &err_table[number];
}

const char *err_name(int err)
{
    return err_find(err)->name;
}

const char *err_text(int err)
{
    return err_find(err)->text;
}
