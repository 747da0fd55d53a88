/* port_fake_none.c - in place of port_fake_rooms.c, for tests that link the core without
 * the rooms above it.
 */
#include "kernel/base/compiler.h"
#include "tests/unit/port_fake_parts.h"

void fake_rooms_start(void)
{
}

void fake_rooms_end(void)
{
}

bool fake_pads_read(void *dst UNUSED, uintptr_t addr UNUSED, size_t len UNUSED)
{
    return false;
}

bool fake_pads_write(uintptr_t addr UNUSED, const void *bytes UNUSED, size_t len UNUSED)
{
    return false;
}
