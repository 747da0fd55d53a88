/* gdb_line.c - receives and sends packets on the line. A debugger may die at any time,
 * and another one may take its place. So nothing here waits for an acknowledgement, and a
 * new packet always ends the last one.
 */
#include "probes/gdb/gdb_line.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/gdb/gdb_wire.h"

#include <string.h>

#define REPEATS 3
#define SPINS 20000 /* between two looks at the line: some microseconds */

static struct gdb_receiver in;
static enum gdb_event ready; /* GDB_PACKET or GDB_TOO_LONG: a packet is in `in` */
static bool attached;
static bool no_acks;
static const struct gdb_out *last; /* the packet that may have to be sent again */
static size_t last_len;
static char rest[sizeof(last->frame)]; /* bytes that the host has not taken yet */
static size_t rest_at, rest_len;
static unsigned repeats; /* how often to send `last` again: noise is full of '-' */

bool gdb_line_attached(void)
{
    return READ_ONCE(attached);
}

bool gdb_line_is_slow(void)
{
    return READ_ONCE(rest_at) != READ_ONCE(rest_len);
}

bool gdb_line_flush(void)
{
    WRITE_ONCE(rest_at, rest_at + gdb_wire_put(rest + rest_at, rest_len - rest_at));
    return rest_at == rest_len;
}

/* line_offer - send @bytes whole, or not at all. If the host takes only a part now, the rest
 * is kept and sent later. Return: false: an older rest is in the way, and nothing was
 * sent.
 */
static bool line_offer(const char *bytes, size_t len)
{
    size_t sent;

    if (!gdb_line_flush())
        return false;
    sent = gdb_wire_put(bytes, len);
    memcpy(rest, bytes + sent, len - sent);
    WRITE_ONCE(rest_at, 0);
    WRITE_ONCE(rest_len, len - sent);
    return true;
}

/* A new debugger does not know that the one before it has switched acknowledgements off.
 */
void gdb_line_greet(void)
{
    if (no_acks)
        line_offer("+", 1);
    no_acks = false;
}

void gdb_line_detach(void)
{
    WRITE_ONCE(attached, false);
    no_acks = false;
    last = NULL;
}

void gdb_line_no_acks(void)
{
    no_acks = true;
}

static void acknowledge(bool good)
{
    if (!no_acks && (good || attached))
        line_offer(good ? "+" : "-", 1);
}

/* line_take - handle one received byte. Return: what the byte has completed. */
static enum gdb_event line_take(uint8_t byte)
{
    enum gdb_event event = gdb_receive(&in, byte);

    switch (event) {
    case GDB_PACKET:
    case GDB_TOO_LONG:
        acknowledge(true);
        ready = event;
        break;
    case GDB_DAMAGED:
        acknowledge(false);
        break;
    case GDB_NAK:
        if (last && !no_acks && repeats && repeats--)
            line_offer(last->frame, last_len);
        break;
    default:
        break;
    }
    return event;
}

bool gdb_line_poll(void)
{
    int byte;

    while (!ready && (byte = gdb_wire_get()) >= 0)
        if (line_take((uint8_t)byte) == GDB_INTERRUPT && attached)
            return true;
    return ready != GDB_NOTHING;
}

bool gdb_line_has_packet(void)
{
    return ready != GDB_NOTHING;
}

const char *gdb_line_packet(size_t *len)
{
    enum gdb_event event;

    while (!ready) {
        int byte = gdb_wire_get();

        if (byte >= 0)
            line_take((uint8_t)byte);
        else if (gdb_line_flush())
            spin_without_pause(SPINS);
    }
    event = ready;
    ready = GDB_NOTHING;
    *len = in.len;
    WRITE_ONCE(attached, true);
    return event == GDB_PACKET ? in.data : NULL;
}

static void line_finish(struct gdb_out *out)
{
    last_len = gdb_out_end(out);
    last = out;
    repeats = REPEATS;
}

bool gdb_line_send(struct gdb_out *out)
{
    line_finish(out);
    return line_offer(out->frame, last_len);
}

/* The kernel stands and waits for the debugger anyway, so this function may wait. Ctrl-C
 * does not end the wait, since it has no meaning now; the next packet does.
 */
void gdb_line_answer(struct gdb_out *out)
{
    line_finish(out);
    while (!line_offer(out->frame, last_len) && !ready) {
        int byte = gdb_wire_get();

        if (byte >= 0)
            line_take((uint8_t)byte);
    }
}
