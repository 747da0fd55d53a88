/* gdb_line.c - packets on the line. A debugger may die at any time and another one take
 * its place: nothing here waits for an answer, and a new packet always ends the last one.
 */
#include "kernel/gdb/gdb_line.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/gdb/gdb_wire.h"

#include <string.h>

#define REPEATS 3
#define PAUSES 100 /* between looks at the line: the emulator needs its lock for each */

static struct gdb_receiver in;
static enum gdb_event ready; /* GDB_PACKET or GDB_TOO_LONG: it is in `in` */
static bool attached;
static bool no_acks;
static const struct gdb_out *last; /* what may have to be sent again */
static size_t last_len;
static unsigned repeats; /* how often it may still be sent again: noise is full of '-' */

bool gdb_line_attached(void)
{
    return READ_ONCE(attached);
}

/* A debugger that comes anew knows nothing of what its predecessor has agreed on. */
void gdb_line_greet(void)
{
    if (no_acks)
        gdb_wire_put("+", 1);
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
        gdb_wire_put(good ? "+" : "-", 1);
}

/* take - one byte. Return: what it has completed. */
static enum gdb_event take(uint8_t byte)
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
            gdb_wire_put(last->frame, last_len);
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
        if (take((uint8_t)byte) == GDB_INTERRUPT && attached)
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
            take((uint8_t)byte);
        else
            for (unsigned n = 0; n < PAUSES; n++)
                pause();
    }
    event = ready;
    ready = GDB_NOTHING;
    *len = in.len;
    WRITE_ONCE(attached, true);
    return event == GDB_PACKET ? in.data : NULL;
}

bool gdb_line_send(struct gdb_out *out)
{
    last_len = gdb_out_end(out);
    last = out;
    repeats = REPEATS;
    return gdb_wire_put(out->frame, last_len);
}
