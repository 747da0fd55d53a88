/* serial.h - a 16550 serial port: a line to the host.
 *
 * Bytes are received by interrupts, into a large ring. If the ring is full, QEMU makes the
 * sender wait, so no byte is lost, but a Ctrl-C among the bytes that wait is not seen until
 * a thread has read from the ring. Sending is done by polling. While a thread is in
 * serial_write(), it owns the line, and no other output comes into its text. Log lines are
 * held back until its end, and as long as the host is slow, up to SERIAL_HELD_LEN bytes.
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
#define SERIAL_IRQ_COM13 4 /* COM1 and COM3 share this interrupt */
#define SERIAL_IRQ_COM24 3

#define SERIAL_RING_LEN (64 * KiB) /* a power of two */
#define SERIAL_HELD_LEN (8 * KiB)

/* Locks:  I immutable after serial_init   W writer   T tx_lock   R rx_lock */
struct serial {
    const char *name;                             /* [I] "COM1" */
    uint16_t port;                                /* [I] first of its eight I/O ports */
    unsigned irq;                                 /* [I] ISA interrupt */
    void (*mirror)(const char *text, size_t len); /* [I] also gets all output; or NULL */

    struct mutex writer; /* one serial_write() at a time */

    struct spinlock tx_lock;
    bool owned;                 /* [T] a serial_write() is under way */
    size_t held_len;            /* [T] */
    size_t held_lost;           /* [T] bytes that did not fit in @held */
    char held[SERIAL_HELD_LEN]; /* [T] log lines that are sent later */

    struct spinlock rx_lock;
    struct wait_queue readers;
    bool is_own;                 /* what arrives is for the tracer's own work */
    uint32_t rx_head, rx_tail;   /* [R] free running; head: next to write */
    uint32_t interrupts_unread;  /* [R] how many Ctrl-C are in the unread input */
    uint8_t rx[SERIAL_RING_LEN]; /* [R] */

    struct console console; /* [I] */
};

/* serial_init - find the port and set it up: 115200 baud, 8N1, FIFOs on. Its interrupt stays
 * off until serial_start().
 * @name: a string that stays where it is
 * @port: SERIAL_COMn
 * @irq:  0..15
 *
 * Context: boot.
 * Return:  0; -ENODEV there is no such port, or four ports are in use already.
 */
int serial_init(struct serial *s, const char *name, uint16_t port, unsigned irq);

/* serial_start - begin to receive by interrupts, which the CPU with @apic_id gets.
 * Context: boot or thread, after ioapic_init().
 * Return:  0; an errno of ioapic_route(): only serial_poll_all() receives.
 */
int serial_start(struct serial *s, uint32_t apic_id);

/* serial_poll_all - receive what has arrived at all ports, and send log lines that are held
 * back, as far as the host takes them at once. The timer tick calls this, because ports
 * share an interrupt line, and a request of one can hide that of another.
 * Context: irq.  Locks: takes s->rx_lock, s->tx_lock. It does so for
 * each port s.
 */
void serial_poll_all(void);

/* serial_write - send @len bytes unchanged, in one piece. It sleeps as long as the host takes
 * no bytes. Context: thread, preemptible.  Locks: takes s->writer, then s->tx_lock.
 */
void serial_write(struct serial *s, const char *text, size_t len);

/* serial_log - send a line of text, LF as CR LF. The text is held back during a
 * serial_write(), and if the host does not take it within a short time. If there is no room
 * for that, bytes are dropped, and the console says how many.
 * Context: boot or thread or irq, interrupts on or off.  Locks: takes s->tx_lock.
 */
void serial_log(struct serial *s, const char *text, size_t len);

/* serial_write_panic - send text, LF as CR LF, even if another CPU is sending; before the
 * first text, the log lines that are held. Bytes that the host does not take are dropped.
 * Context: any.  Locks: none.
 */
void serial_write_panic(struct serial *s, const char *text, size_t len);

/* serial_flush - before the machine is switched off, wait until the last byte has left, for
 * some seconds at most. Context: any.
 */
void serial_flush(const struct serial *s);
