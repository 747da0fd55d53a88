/* commands_xmc.c - `probe xmc`: exchanges instructions by hand, and prints why a change
 * is refused.
 */
#include "kernel/base/err.h"
#include "probes/console/commands.h"
#include "probes/console/place.h"
#include "probes/xmc/xmc.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 16 /* one more than xmc() allows, so xmc() refuses the length */

/* parse_byte - parse two hexadecimal digits. */
static bool parse_byte(const char *text, uint8_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 16);

    *out = (uint8_t)value;
    return strlen(text) == 2 && !*end && text[0] != '+' && text[0] != '-';
}

static int exchange_named(struct shell *sh, const char *name, const struct place *place,
                          const uint8_t *bytes, size_t len)
{
    struct probe_reject why;
    char at[PLACE_TEXT_MAX];
    uintptr_t addr;

    if (place_find(place, &addr, &why))
        return place_refused(sh, place, &why);
    if (!xmc_why(addr, bytes, len, XMC_INT3, &why))
        return 0;
    shell_error(sh, 0, "probe: cannot exchange %s: %s (%s)", name, why.why,
                place_text(at, why.at));
    return why.err;
}

static int xmc_run(struct shell *sh, int argc, char **argv)
{
    uint8_t bytes[BYTES_MAX];
    struct place place;

    if (argc < 2 || argc > 1 + BYTES_MAX)
        return probe_usage(sh, &probe_command_xmc, argc, argv);
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    for (int i = 1; i < argc; i++)
        if (!parse_byte(argv[i], &bytes[i - 1]))
            return shell_error(sh, EINVAL, "probe: %s is not two hexadecimal digits",
                               argv[i]);
    return exchange_named(sh, argv[0], &place, bytes, (size_t)argc - 1);
}

static void xmc_complete(struct shell_completion *c, int index)
{
    if (index == 1)
        shell_complete_symbols(c, index);
}

const struct probe_command probe_command_xmc = {
    .name = "xmc",
    .usage = "SYM[#N][+OFF]|ADDRESS BYTE...",
    .help = "exchange instructions for others as long",
    .run = xmc_run,
    .complete = xmc_complete,
};
