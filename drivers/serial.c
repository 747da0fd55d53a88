/* serial.c - the 16550: its registers, the receive ring, and which thread may send.
 *
 * Source: National Semiconductor PC16550D data sheet.
 */
#include "drivers/serial.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/ioapic.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"

#include <stdio.h>
#include <string.h>

/* Registers, as offsets from the port. */
#define RBR 0 /* read: received byte */
#define THR 0 /* write: byte to send */
#define IER 1
#define IIR 2 /* read */
#define FCR 2 /* write */
#define LCR 3
#define MCR 4
#define LSR 5
#define SCR 7 /* one byte of memory */
#define DLL 0 /* while LCR_DLAB: divisor of 115200 baud */
#define DLM 1

#define IER_RECEIVED (1 << 0)
#define IIR_NONE (1 << 0)
#define FCR_ENABLE 0x01
#define FCR_TRIGGER_14 0xc0 /* QEMU takes up to 14 bytes at once from the host */
#define LCR_8N1 0x03
#define LCR_DLAB 0x80
#define MCR_DTR_RTS 0x03
#define MCR_OUT2 0x08 /* gates the interrupt */
#define MCR_LOOP 0x10
#define LSR_RECEIVED (1 << 0)
#define LSR_THR_EMPTY (1 << 5)
#define LSR_IDLE (1 << 6) /* THR is empty, and the last byte has left the device */

#define FIFO_LEN 16
#define SPINS 20000     /* reads of LSR, some ten milliseconds at least */
#define SPINS_BRIEF 100 /* reads of LSR before a thread sleeps */
#define SPINS_LONG (200 * SPINS)
#define RETRY_NS 1000000
#define CTRL_C 0x03
#define PORTS_MAX 4

static struct serial *ports[PORTS_MAX]; /* filled at boot, then immutable */
static unsigned port_count;

static uint8_t serial_reg_read(const struct serial *s, unsigned reg)
{
    return inb((uint16_t)(s->port + reg));
}

static void serial_reg_write(const struct serial *s, unsigned reg, uint8_t v)
{
    outb((uint16_t)(s->port + reg), v);
}

/* ---- the ring ---------------------------------------------------------------------- */

static uint32_t ring_used(const struct serial *s)
{
    return s->rx_head - s->rx_tail;
}

static void serial_ring_put(struct serial *s, uint8_t byte)
{
    s->rx[s->rx_head++ % SERIAL_RING_LEN] = byte;
    s->interrupts_unread += byte == CTRL_C;
}

static uint8_t ring_get(struct serial *s)
{
    uint8_t byte = s->rx[s->rx_tail++ % SERIAL_RING_LEN];

    s->interrupts_unread -= byte == CTRL_C;
    return byte;
}

/* ---- set-up ------------------------------------------------------------------------ */

static bool serial_is_present(const struct serial *s)
{
    serial_reg_write(s, SCR, 0x5a);
    return serial_reg_read(s, SCR) == 0x5a;
}

/* A byte may have been received before the driver runs, from a person who types early or from
 * a script. Switching the FIFO on would delete this byte, so it is read first. In loopback
 * mode QEMU does not get the next byte from the sender at once, so none is lost between the
 * read and the switch.
 */
static void fifo_enable(struct serial *s)
{
    serial_reg_write(s, MCR, MCR_LOOP);
    if (serial_reg_read(s, LSR) & LSR_RECEIVED)
        serial_ring_put(s, serial_reg_read(s, RBR));
    serial_reg_write(s, FCR, FCR_ENABLE | FCR_TRIGGER_14);
    serial_reg_write(s, MCR, MCR_DTR_RTS | MCR_OUT2);
}

static void line_set_up(struct serial *s)
{
    serial_reg_write(s, IER, 0);
    serial_reg_write(s, LCR, LCR_DLAB);
    serial_reg_write(s, DLL, 1);
    serial_reg_write(s, DLM, 0);
    serial_reg_write(s, LCR, LCR_8N1);
    fifo_enable(s);
}

/* ---- what struct console has -------------------------------------------------------- */

static bool serial_input_pending(struct console *con)
{
    const struct serial *s = con->priv;

    return READ_ONCE(s->rx_head) != READ_ONCE(s->rx_tail);
}

static bool serial_interrupt_pending(struct console *con)
{
    const struct serial *s = con->priv;

    return READ_ONCE(s->interrupts_unread) != 0;
}

static long serial_read(struct console *con, char *buf, size_t len)
{
    struct serial *s = con->priv;
    size_t n = 0;

    WRITE_ONCE(s->is_own, thread_current()->own_work);
    while (n == 0) {
        unsigned long flags;
        bool was_full;

        wait_event(&s->readers, serial_input_pending(con));
        spin_lock_irqsave(&s->rx_lock, &flags);
        was_full = ring_used(s) == SERIAL_RING_LEN;
        while (n < len && ring_used(s))
            buf[n++] = (char)ring_get(s);
        if (was_full)
            serial_reg_write(s, IER,
                             IER_RECEIVED); /* an interrupt comes at once for the rest */
        spin_unlock_irqrestore(&s->rx_lock, flags);
    }
    return (long)n;
}

static void console_write(struct console *con, const char *text, size_t len)
{
    serial_write(con->priv, text, len);
}

static void console_show(struct console *con, const char *text, size_t len)
{
    serial_log(con->priv, text, len);
}

INIT int serial_init(struct serial *s, const char *name, uint16_t port, unsigned irq)
{
    memset(s, 0, sizeof(*s));
    s->name = name;
    s->port = port;
    s->irq = irq;
    mutex_init(&s->writer);
    wait_queue_init(&s->readers);
    s->console = (struct console){ .name = name,
                                   .write = console_write,
                                   .show = console_show,
                                   .read = serial_read,
                                   .interrupt_pending = serial_interrupt_pending,
                                   .input_pending = serial_input_pending,
                                   .priv = s };
    if (port_count == PORTS_MAX || !serial_is_present(s))
        return -ENODEV;
    line_set_up(s);
    ports[port_count++] = s;
    return 0;
}

/* ---- receiving --------------------------------------------------------------------- */

/* Move the bytes of the FIFO to the ring. If the ring becomes full, the remaining bytes
 * stay in the FIFO, and the receive interrupt is switched off until there is room,
 * because it would come again and again.
 * Return: has any byte been moved?
 */
static bool fifo_drain_locked(struct serial *s)
{
    bool any = false;

    while (ring_used(s) < SERIAL_RING_LEN && (serial_reg_read(s, LSR) & LSR_RECEIVED)) {
        serial_ring_put(s, serial_reg_read(s, RBR));
        any = true;
    }
    if (ring_used(s) == SERIAL_RING_LEN)
        serial_reg_write(s, IER, 0);
    return any;
}

static void port_receive(struct serial *s)
{
    unsigned long flags;
    bool any;

    spin_lock_irqsave(&s->rx_lock, &flags);
    any = fifo_drain_locked(s);
    spin_unlock_irqrestore(&s->rx_lock, flags);
    if (any)
        wake_all(&s->readers);
}

/* port_receive_in_irq - the same, as work of the thread that reads. */
static void port_receive_in_irq(struct serial *s)
{
    own_work_set_task(READ_ONCE(s->is_own) && serial_reg_read(s, LSR) & LSR_RECEIVED);
    port_receive(s);
    own_work_set_task(false);
}

/* One interrupt serves all ports until none of them has a request. Ports share a line, and
 * only its rising edge causes an interrupt. If one port still had a request at the end, the
 * line would stay high, and no further interrupt would come.
 */
static void serial_irq(struct pt_regs *regs UNUSED)
{
    bool pending = true;

    while (pending) {
        pending = false;
        for (unsigned i = 0; i < port_count; i++) {
            if (serial_reg_read(ports[i], IIR) & IIR_NONE)
                continue;
            port_receive_in_irq(ports[i]);
            pending = true;
        }
    }
    lapic_eoi();
}

INIT int serial_start(struct serial *s, uint32_t apic_id)
{
    unsigned vector = VECTOR_ISA(s->irq);

    irq_set_handler(vector, "serial", serial_irq);
    port_receive(s);
    serial_reg_write(s, IER, IER_RECEIVED);
    return ioapic_route(s->irq, vector, apic_id);
}

/* ---- sending ----------------------------------------------------------------------- */

static bool serial_is_ready(const struct serial *s, unsigned spins)
{
    while (!(serial_reg_read(s, LSR) & LSR_THR_EMPTY)) {
        if (spins-- == 0)
            return false;
        pause();
    }
    return true;
}

/* LSR_THR_EMPTY says that the whole FIFO is empty, so one test allows FIFO_LEN bytes. */
static size_t burst_send(const struct serial *s, const char *text, size_t len)
{
    size_t n = len < FIFO_LEN ? len : FIFO_LEN;

    outsb((uint16_t)(s->port + THR), text, n);
    return n;
}

/* Send all of @text, as long as it takes. Only for the thread that owns the line. */
static void owner_send(const struct serial *s, const char *text, size_t len)
{
    if (s->mirror)
        s->mirror(text, len);
    for (size_t sent = 0; sent < len;) {
        if (serial_is_ready(s, SPINS_BRIEF))
            sent += burst_send(s, text + sent, len - sent);
        else
            thread_sleep_ns(RETRY_NS);
    }
}

/* Send text, LF as CR LF, without sleeping. Return: how much of it the host has taken. */
static size_t text_send(const struct serial *s, const char *text, size_t len,
                        unsigned spins)
{
    unsigned room = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        if (room < 2) { /* no room for CR and LF */
            if (!serial_is_ready(s, spins))
                break;
            room = FIFO_LEN;
        }
        if (text[i] == '\n') {
            serial_reg_write(s, THR, '\r');
            room--;
        }
        serial_reg_write(s, THR, (uint8_t)text[i]);
        room--;
    }
    return i;
}

/* Log lines are held while a thread owns the line, and if the host is slow: then the owner,
 * the next line or the next tick sends them.
 */
static void held_add_locked(struct serial *s, char c)
{
    if (s->held_len < SERIAL_HELD_LEN)
        s->held[s->held_len++] = c;
    else
        s->held_lost++;
}

static void text_hold_locked(struct serial *s, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            held_add_locked(s, '\r');
        held_add_locked(s, text[i]);
    }
}

/* If nothing is held any more, but bytes were lost, hold the number of lost bytes. */
static void held_tell_lost_locked(struct serial *s)
{
    if (s->held_len || !s->held_lost)
        return;
    s->held_len =
        (size_t)scnprintf(s->held, sizeof(s->held),
                          "[%zu bytes of log are only in dmesg]\r\n", s->held_lost);
    s->held_lost = 0;
}

static void held_remove_locked(struct serial *s, size_t n)
{
    s->held_len -= n;
    memmove(s->held, s->held + n, s->held_len);
    held_tell_lost_locked(s);
}

/* held_send_locked - send what is held, without sleeping.
 * Return: has the host taken all of it?
 */
static bool held_send_locked(struct serial *s, unsigned spins)
{
    while (s->held_len && serial_is_ready(s, spins))
        held_remove_locked(s, burst_send(s, s->held, s->held_len));
    return !s->held_len;
}

static void port_send_held(struct serial *s)
{
    unsigned long flags;

    if (!READ_ONCE(s->held_len))
        return;
    spin_lock_irqsave(&s->tx_lock, &flags);
    if (!s->owned)
        held_send_locked(s, 0);
    spin_unlock_irqrestore(&s->tx_lock, flags);
}

/* line_own - make the caller's thread the owner of the line, when all is sent that is held.
 * The caller holds s->writer.
 */
static void line_own(struct serial *s)
{
    unsigned long flags;
    bool is_mine;

    for (;;) {
        spin_lock_irqsave(&s->tx_lock, &flags);
        is_mine = held_send_locked(s, SPINS_BRIEF);
        s->owned = is_mine;
        spin_unlock_irqrestore(&s->tx_lock, flags);
        if (is_mine)
            return;
        thread_sleep_ns(RETRY_NS);
    }
}

/* Take a piece of the log lines that are held. If there are none, the thread no longer
 * owns the line.
 * Return: bytes in @piece, at most @len.
 */
static size_t held_take_or_disown(struct serial *s, char *piece, size_t len)
{
    unsigned long flags;
    size_t n;

    spin_lock_irqsave(&s->tx_lock, &flags);
    n = s->held_len < len ? s->held_len : len;
    memcpy(piece, s->held, n);
    held_remove_locked(s, n);
    s->owned = n > 0;
    spin_unlock_irqrestore(&s->tx_lock, flags);
    return n;
}

void serial_write(struct serial *s, const char *text, size_t len)
{
    char piece[256];
    size_t n;

    mutex_lock(&s->writer);
    line_own(s);
    owner_send(s, text, len);
    while ((n = held_take_or_disown(s, piece, sizeof(piece))) > 0)
        owner_send(s, piece, n);
    mutex_unlock(&s->writer);
}

void serial_log(struct serial *s, const char *text, size_t len)
{
    unsigned long flags;

    spin_lock_irqsave(&s->tx_lock, &flags);
    if (s->owned) {
        text_hold_locked(s, text, len);
    } else {
        size_t sent = 0;

        if (s->mirror)
            s->mirror(text, len);
        if (held_send_locked(s, 0))
            sent = text_send(s, text, len, SPINS);
        text_hold_locked(s, text + sent, len - sent);
    }
    spin_unlock_irqrestore(&s->tx_lock, flags);
}

void serial_poll_all(void)
{
    for (unsigned i = 0; i < port_count; i++) {
        port_receive_in_irq(ports[i]);
        port_send_held(ports[i]);
    }
}

/* A report of a panic waits long for the host. But if the host has not taken a text, the
 * next one does not wait. In front of the report come the log lines that are held: they
 * often tell its cause. Another CPU may change them meanwhile.
 */
void serial_write_panic(struct serial *s, const char *text, size_t len)
{
    static bool gone, begun;
    size_t sent = 0, held = begun ? 0 : READ_ONCE(s->held_len);

    begun = true;
    if (held && held <= SERIAL_HELD_LEN) {
        text_send(s, "\n", 1, SPINS_LONG);
        while (sent < held && serial_is_ready(s, SPINS_LONG))
            sent += burst_send(s, s->held + sent, held - sent);
        gone = sent < held;
    }
    gone = text_send(s, text, len, gone ? 1 : SPINS_LONG) < len;
}

void serial_flush(const struct serial *s)
{
    for (unsigned spins = 0; spins < SPINS_LONG; spins++) {
        if (serial_reg_read(s, LSR) & LSR_IDLE)
            return;
        pause();
    }
}
