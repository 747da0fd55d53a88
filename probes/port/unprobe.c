/* unprobe.c - the boot argument panic=unprobe: at a panic, restores all text as it would
 * be without probes. A tool that reads the memory afterwards sees the program's text.
 *
 * All other CPUs stand still, or could not be stopped; no lock is taken. Each line of
 * text is compared with its original bytes (recover_bytes()), and written if it differs.
 */
#include "kernel/base/compiler.h"
#include "kernel/debug/panic.h"
#include "kernel/memmap.h"
#include "kernel/mm/exec.h"
#include "kernel/module/init_text.h"
#include "kernel/module/module.h"
#include "probes/core/platform.h"
#include "probes/core/recover.h"
#include "probes/port/port.h"

#include <string.h>

static size_t restore_line(uintptr_t line)
{
    const uint8_t *now = (const uint8_t *)line;
    uint8_t original[PLAT_LINE_LEN];
    size_t changed = 0;

    if (recover_bytes(original, line, PLAT_LINE_LEN))
        return 0;
    for (size_t i = 0; i < PLAT_LINE_LEN; i++)
        changed += original[i] != now[i];
    if (changed && text_poke_alias_write((void *)line, original, PLAT_LINE_LEN))
        return 0;
    return changed;
}

static size_t bytes, lines, other;

/* unprobe_restore - restore the text in [@start, @end): whole pages, and so whole lines. */
static void unprobe_restore(uintptr_t start, uintptr_t end)
{
    for (uintptr_t line = start; line < end; line += PLAT_LINE_LEN) {
        size_t changed = restore_line(line);

        bytes += changed;
        lines += changed != 0;
        other += !plat_text_is_built(line, (const uint8_t *)line);
    }
}

static void unprobe_all(void)
{
    uintptr_t start, end;

    unprobe_restore((uintptr_t)_text, kernel_text_end());
    for (size_t i = 0; i < MODULES_MAX; i++)
        if (module_text_get(i, &start, &end))
            unprobe_restore(start, end);
    panic_print("panic=unprobe: %zu bytes of text restored in %zu lines; ", bytes, lines);
    panic_print("%zu lines are not as they were built\n", other);
}

INIT void port_unprobe_at_panic(void)
{
    panic_add_report(unprobe_all);
}
