/* port_fake_none.c - in place of port_fake_rooms.c, for tests that link the core without
 * the rooms above it.
 */
#include "tests/unit/port_fake_parts.h"

void fake_rooms_start(void)
{
}

void fake_rooms_end(void)
{
}

bool fake_pads_read(void *dst, uintptr_t addr, size_t len)
{
    (void)dst;
    (void)addr;
    (void)len;
    return false;
}

bool fake_pads_write(uintptr_t addr, const void *bytes, size_t len)
{
    (void)addr;
    (void)bytes;
    (void)len;
    return false;
}
