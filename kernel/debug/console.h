/* console.h - what a shell needs of the line it talks over: a socket for a driver.
 *
 * kernel/main.c fills one struct console per serial line with functions of the driver and
 * hands it to shell_start(). Nothing here knows which device is behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct console {
    const char *name; /* "COM1"; also the name of its shell's thread */

    /* write - send @len bytes, all of them, unchanged.
     *
     * One call is never broken by the output of another thread or of the log, so that a
     * caller's whole lines stay whole.
     *
     * Context: thread.  Locks: takes the driver's own.
     */
    void (*write)(struct console *con, const char *text, size_t len);

    /* read - wait for input and take it.
     * @len:  1 or more
     *
     * Return:  1..@len bytes; -EINTR when the wait was given up without any.
     */
    long (*read)(struct console *con, char *buf, size_t len);

    /* interrupt_pending - has a Ctrl-C (byte 0x03) arrived that is still unread?
     *
     * It stays in the input and is read in its turn, so that what was typed before it
     * keeps its meaning.
     *
     * Context: any thread.
     */
    bool (*interrupt_pending)(struct console *con);

    /* input_pending - would read() return at once? May be NULL: never. */
    bool (*input_pending)(struct console *con);

    void *priv; /* the driver's */
};
