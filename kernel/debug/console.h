/* console.h - defines a socket: the functions of a driver with which a shell uses a
 * serial line.
 *
 * kernel/main.c fills one struct console per serial line with functions of the driver and
 * hands it to shell_start(). So a shell does not depend on the device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct console {
    const char *name; /* "COM1"; also the name of its shell's thread */

    /* write - send @len bytes, all of them, unchanged.
     *
     * The output of another thread or of the log never comes in the middle of one call,
     * so that lines stay whole.
     *
     * It waits as long as the host takes no bytes, perhaps for ever. So the caller owns no
     * mutex: a Ctrl-C does not end the wait of another thread for it.
     *
     * Context: thread.  Locks: takes the driver's lock.
     */
    void (*write)(struct console *con, const char *text, size_t len);

    /* show - send text as the log does: without waiting, and what the host does not take yet
     * is sent later. LF becomes CR LF.
     */
    void (*show)(struct console *con, const char *text, size_t len);

    /* read - wait for input and take it.
     * @len:  1 or more
     *
     * Return:  1..@len bytes; -EINTR when the wait was given up without input.
     */
    long (*read)(struct console *con, char *buf, size_t len);

    /* interrupt_pending - has a Ctrl-C (byte 0x03) arrived that was not read yet?
     *
     * The Ctrl-C stays in the input, and read() returns it in its turn, so that text that
     * was typed before it keeps its meaning.
     *
     * Context: thread.
     */
    bool (*interrupt_pending)(struct console *con);

    /* input_pending - would read() return at once? May be NULL: never. */
    bool (*input_pending)(struct console *con);

    void *priv; /* for the driver */
};
