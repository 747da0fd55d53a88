/* leaky_mark.c - a module that blacklists a function which calls a function that may be
 * probed. Loading it must be refused.
 */
#include "kernel/base/compiler.h"
#include "kernel/debug/log.h"

void leaky(void);

NOINLINE void leaky(void)
{
    log_info("leaky");
}
NOKPROBE(leaky);
