/* shell_power.c - the commands that switch off, reset or stop the machine. The functions
 * that do it are set by shell_set_power().
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/debug/panic.h"

static void (*power_off)(bool failed);
static void (*power_reset)(void);

INIT void shell_set_power(void (*off)(bool failed), void (*reset)(void))
{
    power_off = off;
    power_reset = reset;
}

static int poweroff_run(struct shell *sh, int argc UNUSED, char **argv)
{
    if (power_off)
        power_off((sh->flags & SHELL_PLAIN) && sh->failed);
    return shell_error(sh, ENOSYS, "%s", argv[0]);
}

static int reboot_run(struct shell *sh, int argc UNUSED, char **argv)
{
    if (power_reset)
        power_reset();
    return shell_error(sh, ENOSYS, "%s", argv[0]);
}

static int panic_run(struct shell *sh UNUSED, int argc, char **argv)
{
    panic("%s", argc > 1 ? argv[1] : "asked for at the console");
}

const struct shell_command shell_power_commands[] = {
    { "poweroff", "", "switch the machine off", poweroff_run, NULL },
    { "exit", "", "leave: switch the machine off", poweroff_run, NULL },
    { "reboot", "", "reset the machine", reboot_run, NULL },
    { "panic", "[TEXT]", "stop all CPUs with a report, as a bug would", panic_run, NULL },
    {},
};
