/* init_text.c - frees what only boot needs, when boot is over.
 *
 * This part of the image is like a module that was there from the start, and it goes like
 * a module. The numbers are those of module.c:
 *   1, 2. Nothing that stays refers to it: the link refuses that (init_refs.py).
 *   3. The watch takes out probes that have handlers in it.
 *   4. Quiescence.
 *   5. The check that no thread is in it, or will return to it. The boot thread has left
 *      it by a jump (boot/start.asm). A thread that was interrupted may have an old word of
 *      it on its stack; so the check waits for threads to run on.
 *   6. The watch takes other probes off it: they are GONE, with their counts.
 *   7. Its symbols go.
 *   8. Quiescence.
 *   9. Its pages are unmapped, on all CPUs. Then its frames become writable in the direct
 *      map. Then they are freed.
 * Its addresses are never used again: an address there in an old report always means
 * boot.
 */
#include "kernel/module/init_text.h"

#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/memmap.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/module/parts.h"
#include "kernel/sync/quiesce.h"
#include "kernel/thread/thread.h"

#define TRIES 100
#define TRY_NS UINT64_C(10000000)

static bool is_gone;

uintptr_t kernel_text_end(void)
{
    return (uintptr_t)(READ_ONCE(is_gone) ? _etext : _init_text_end);
}

/* boot_stays_inside - is a thread in the text of @m, also after a second? */
static bool boot_stays_inside(const struct module *m, char *why)
{
    for (unsigned i = 0; inside_look(m, why); i++) {
        if (i == TRIES)
            return true;
        thread_sleep_ns(TRY_NS);
    }
    return false;
}

static void memory_free(uintptr_t start, uintptr_t end)
{
    size_t pages = (end - start) / PAGE_SIZE;
    uint64_t phys = virt_to_phys((void *)start);

    page_unmap_range(start, pages, NULL);
    BUG_ON(page_protect_range((uintptr_t)phys_to_virt(phys), pages, PROT_W));
    frame_give(phys, pages);
}

void init_text_free(void)
{
    static struct module boot; /* zeroed */
    struct module_facts *f = &boot.facts;
    char why[MODULE_WHY_MAX];

    f->name = INIT_TEXT_NAME;
    f->text = f->memory = (uintptr_t)_init_text;
    f->text_end = (uintptr_t)_init_text_end;
    f->memory_end = (uintptr_t)_init_end;
    if (!module_watch->goes)
        return;
    module_watch->leaves(f); /* 3 */
    quiesce();               /* 4 */
    if (boot_stays_inside(&boot, why)) {
        log_warn("what boot needed is not freed: %s", why);
        return;
    }
    module_watch->goes(f); /* 6 */
    WRITE_ONCE(is_gone, true);
    ksyms_withdraw(f->memory, f->memory_end); /* 7 */
    module_watch->gone(f);
    quiesce();                             /* 8 */
    memory_free(f->memory, f->memory_end); /* 9 */
    log_info("boot is over: %lu KiB of its code and data are free, %lu of them code",
             (f->memory_end - f->memory) / 1024, (f->text_end - f->text) / 1024);
}
