/* leaky_mark.c - a module with a mark that is not closed. */
#include "kernel/base/compiler.h"
#include "kernel/debug/log.h"

void leaky(void);

NOINLINE void leaky(void)
{
    log_info("leaky");
}
NOKPROBE(leaky);
