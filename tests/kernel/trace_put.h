/* trace_put.h - writes to the tracer's files, as a user does on the console. */
#pragma once

#include "kernel/fs/vfs.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ROOT "/sys/kernel/tracing/"

/* trace_put - write @text to the file @name of the tracer, by one call of vfs_write(). If
 * @text is empty, the file is only opened.
 * @how: VFS_APPEND, VFS_TRUNC or 0
 * Context: thread.  Return: 0; an error as from vfs_open() and vfs_write().
 */
static inline long trace_put(const char *name, const char *text, unsigned how)
{
    struct file file = { .flags = VFS_WRITE | how };
    char path[128];
    uint64_t pos = 0;
    long done;

    snprintf(path, sizeof(path), ROOT "%s", name);
    done = vfs_open(path, &file);
    if (done)
        return done;
    if (*text)
        done = vfs_write(&file, text, strlen(text), &pos);
    vfs_close(&file);
    return done < 0 ? done : 0;
}
