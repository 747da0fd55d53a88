/* gdb_wire.c - drives a 16550. Its only interrupt is that for received bytes.
 *
 * Source: National Semiconductor PC16550D data sheet.
 */
#include "probes/gdb/gdb_wire.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#define PORT 0x2f8
#define RBR (PORT + 0)
#define THR (PORT + 0)
#define DLL (PORT + 0)
#define IER (PORT + 1)
#define DLM (PORT + 1)
#define FCR (PORT + 2)
#define LCR (PORT + 3)
#define MCR (PORT + 4)
#define LSR (PORT + 5)
#define SCR (PORT + 7)

#define IER_RECEIVED 0x01
#define FCR_ENABLE 0x01
/* Interrupt at 14 bytes, which QEMU hands over at once; at fewer bytes soon after. */
#define FCR_TRIGGER_14 0xc0
#define LCR_8N1 0x03
#define LCR_DLAB 0x80
#define MCR_DTR_RTS_OUT2 0x0b
#define LSR_RECEIVED 0x01
#define LSR_THR_EMPTY 0x20
#define FIFO_LEN 16
#define SPINS 2000 /* reads of LSR: they take a few milliseconds */

static bool listens;
static bool host_gone; /* the host has not taken a byte for a few milliseconds */

INIT bool gdb_wire_init(void)
{
    outb(SCR, 0xa5);
    if (inb(SCR) != 0xa5)
        return false;
    outb(IER, 0);
    outb(LCR, LCR_DLAB);
    outb(DLL, 1);
    outb(DLM, 0);
    outb(LCR, LCR_8N1);
    outb(FCR, FCR_ENABLE | FCR_TRIGGER_14);
    outb(MCR, MCR_DTR_RTS_OUT2);
    return true;
}

void gdb_wire_listen(bool on)
{
    listens = on;
    outb(IER, on ? IER_RECEIVED : 0);
}

bool gdb_wire_has_byte(void)
{
    return inb(LSR) & LSR_RECEIVED;
}

int gdb_wire_get(void)
{
    if (!gdb_wire_has_byte())
        return -1;
    host_gone = false;
    return inb(RBR);
}

static bool wire_is_ready(void)
{
    unsigned spins = host_gone ? 1 : SPINS;
    uint8_t status;

    while (!((status = inb(LSR)) & LSR_THR_EMPTY)) {
        if (listens ? --spins == 0 : (status & LSR_RECEIVED))
            return false;
        pause();
    }
    return true;
}

/* If THR is empty, the whole FIFO is: after one look FIFO_LEN bytes may be sent. A host
 * that has taken all of the last bytes counts as present again.
 */
size_t gdb_wire_put(const char *bytes, size_t len)
{
    size_t sent = 0;

    while (sent < len) {
        size_t n = len - sent < FIFO_LEN ? len - sent : FIFO_LEN;

        host_gone = !wire_is_ready();
        if (host_gone)
            break;
        outsb(THR, bytes + sent, n);
        sent += n;
    }
    return sent;
}
