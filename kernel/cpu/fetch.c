/* fetch.c - tells how the CPUs of this machine fetch instructions. */
#include "kernel/cpu/fetch.h"

#include "kernel/base/bits.h"
#include "kernel/cpu/instr.h"

#include <string.h>

#define LEAF_HYPERVISOR 0x40000000u

/* is_name - does the name in CPUID's @leaf begin with these four letters? */
static bool is_name(uint32_t leaf, const char *letters)
{
    uint32_t out[4];

    cpuid(leaf, 0, out);
    return memcmp(&out[1], letters, sizeof(out[1])) == 0;
}

/* TCG fetches byte by byte. Its name is there even if the bit for hypervisors is hidden. */
bool cpu_fetches_words(void)
{
    return (is_name(0, "Auth") || is_name(0, "Hygo")) &&
           !is_name(LEAF_HYPERVISOR, "TCGT");
}
