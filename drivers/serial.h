/* serial.h - a 16550 serial port: a line to the host.
 *
 * Receiving is done by interrupt into a large ring; when that is full the device's own
 * flow control holds the sender, so nothing is lost. Sending polls. A call's output is
 * never broken by another's: the sending thread owns the line until its call is done. Log
 * lines that come meanwhile are held back and follow.
 */
#pragma once

#include "kernel/base/bits.h"
#include "kernel/debug/console.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIAL_COM1 0x3f8
#define SERIAL_COM2 0x2f8
#define SERIAL_COM3 0x3e8
#define SERIAL_COM4 0x2e8
#define SERIAL_IRQ_COM13 4 /* shared */
#define SERIAL_IRQ_COM24 3

#define SERIAL_RING_LEN (64 * KiB) /* a power of two */
#define SERIAL_HELD_LEN (8 * KiB)

/* Locks:  I immutable after serial_init   W writer   T tx_lock   R rx_lock */
struct serial {
    const char *name;                             /* [I] "COM1" */
    uint16_t port;                                /* [I] first of its eight I/O ports */
    unsigned irq;                                 /* [I] ISA interrupt */
    void (*mirror)(const char *text, size_t len); /* [I] also gets what is sent */

    struct mutex writer; /* one serial_write() at a time */

    struct spinlock tx_lock;
    bool owned;                 /* [T] a serial_write() is under way */
    bool stuck;                 /* [T] the host has not taken all of a log line */
    size_t held_len;            /* [T] */
    size_t held_lost;           /* [T] bytes that did not fit */
    char held[SERIAL_HELD_LEN]; /* [T] log lines for after the call */

    struct spinlock rx_lock;
    struct wait_queue readers;
    uint32_t rx_head, rx_tail;   /* [R] free running; head: next to write */
    uint32_t interrupts_unread;  /* [R] Ctrl-C among what is unread */
    uint8_t rx[SERIAL_RING_LEN]; /* [R] */

    struct console console; /* [I] */
};

/* serial_init - find the port and set it up: 115200 baud, 8N1, FIFOs on; not yet its
 * interrupt.
 * @name: kept   @port: SERIAL_COMn   @irq: 0..15
 *
 * Context: boot.
 * Return:  0; -ENODEV nothing answers there.
 */
int serial_init(struct serial *s, const char *name, uint16_t port, unsigned irq);

/* serial_start - begin to receive: by its interrupt, sent to the CPU with @apic_id.
 *
 * Context: boot or thread, after ioapic_init().
 * Return:  0; an errno of ioapic_route(), then only serial_poll_all() receives.
 */
int serial_start(struct serial *s, uint32_t apic_id);

/* serial_poll_all - take in what has arrived at any port. For the timer tick: interrupts
 * of two ports that share a line can hide each other. Context: irq.
 */
void serial_poll_all(void);

/* serial_write - send @len bytes unchanged, in one piece.
 *
 * Context: thread, preemptible.  Locks: takes s->writer, then s->tx_lock.
 */
void serial_write(struct serial *s, const char *text, size_t len);

/* serial_log - send a line of text, LF as CR LF; or keep it until the call that is under
 * way is done. Bytes that the host does not take within a short time are dropped.
 *
 * Context: thread or irq.  Locks: takes s->tx_lock.
 */
void serial_log(struct serial *s, const char *text, size_t len);

/* serial_write_panic - send text, LF as CR LF, whatever others are doing. Context: any. */
void serial_write_panic(struct serial *s, const char *text, size_t len);

/* serial_flush - wait until the last byte has left, for some time at most; before the machine
 * is switched off. Context: any.
 */
void serial_flush(const struct serial *s);

/* serial_read - wait for input and take it.
 * @len: 1 and up
 *
 * Context: thread, preemptible.  Locks: takes s->rx_lock.
 * Return:  1..@len bytes.
 */
size_t serial_read(struct serial *s, char *buf, size_t len);

/* serial_input_pending - is there unread input?
 * serial_interrupt_pending - is there a Ctrl-C in it? Context: thread or irq.
 */
bool serial_input_pending(struct serial *s);
bool serial_interrupt_pending(struct serial *s);
