/* refuses.c - a module whose constructor refuses to be loaded. */
#include "kernel/base/err.h"
#include "kernel/module/module.h"

long refuses_unload_err;

__attribute__((constructor)) static void refuses_init(void)
{
    char why[MODULE_WHY_MAX];

    refuses_unload_err = module_unload("refuses", why);
    module_refuse(refuses_unload_err == -EDEADLK ? -ENODEV : -EIO);
}
