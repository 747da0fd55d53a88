/* test_marker_module.c - modules with markers, and with functions for markers, are loaded
 * and unloaded.
 */
#include "probes/marker/marker.h"

#include "kernel/debug/ksyms.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/marked.h"
#include "tests/kernel/passers.h"
#include "tests/kernel/trace_put.h"

static int load(void)
{
    int err = LOAD(marks);

    if (err && err != -ENOMEM)
        ktest_note("%d %s", err, loaded_why);
    return err;
}

static uint64_t in_module, ip_seen;

static void look_at_module(void *private UNUSED, struct marker_call *call)
{
    in_module += !strcmp(call->format, "i %ld") && !strcmp(call->name, "ktest_module");
    ip_seen = call->ip;
}

KTEST(marker_module, those_of_a_module_come_and_go)
{
    static const char event[] = "events/markers/ktest_module/enable";
    struct ksym sym;
    size_t heap;

    load(); /* allocates the names of symbols, which are kept */
    unload("marks");
    heap = heap_in_use();
    in_module = 0;
    ktest_report(!marker_connect("ktest_module", "i %ld", look_at_module, NULL),
                 "a function waits for it");
    ktest_report(load() == 0 && in_module == 3, "it is called by the constructor");
    ktest_report(!trace_put(event, "0", 0), "it is an event");
    call("marks_pass", 2, 0);
    ktest_report(in_module == 5 && *(const uint8_t *)ip_seen == 0xb0 &&
                     !ksyms_at(ip_seen, &sym) && !strcmp(sym.name, "marks_pass"),
                 "and behind it");
    marker_disconnect("ktest_module", look_at_module, NULL);
    call("marks_pass", 2, 0);
    ktest_report(in_module == 5, "it is switched off");
    marker_connect("ktest_module", "i %ld", look_at_module, NULL);
    call("marks_pass", 2, 0);
    ktest_report(in_module == 7, "and on");
    ktest_report(unload("marks") == 0, "the module goes with it");
    ktest_report(load() == 0 && in_module == 10, "and comes back");
    marker_disconnect("ktest_module", look_at_module, NULL);
    ktest_report(unload("marks") == 0 && trace_put(event, "0", 0) == -ENOENT, "and goes");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

KTEST(marker_module, a_name_of_image_and_module)
{
    look_begin();
    look_connect(0);
    ktest_report(load() == 0, "loaded");
    ((void (*)(uint64_t))of("marks_pass_image"))(4);
    marked(1);
    ktest_report(looked.calls[0] == 2 && !looked.wrong,
                 "its marker calls the image's function");
    ktest_report(value("marks_calls") == 2, "and both call the module's");
    look_disconnect(0);
    marked(1);
    ktest_report(looked.calls[0] == 2 && value("marks_calls") == 3, "or it alone");
    ktest_report(unload("marks") == 0, "it goes, and has left its function behind");
    looked.evaluated = 0;
    marked(1);
    ktest_report(!looked.evaluated, "which is called no more");
}

KTEST(marker_module, of_another_format_in_a_module)
{
    unsigned before;

    look_begin();
    marker_connect("ktest_other", "nothing", look_at_module, NULL);
    before = logged("marks: a marker has another format", "");
    ktest_report(load() == 0 &&
                     logged("marks: a marker has another format", "") == before + 1,
                 "it is loaded, and the log says so");
    in_module = ip_seen = 0;
    ((void (*)(void))of("marks_pass_odd"))();
    ktest_report(!ip_seen, "but calls nothing");
    ktest_report(marker_connect("ktest_other", "nothing", look, &looked.calls[0]) ==
                     -EINVAL,
                 "nor may another one be connected meanwhile");
    unload("marks");
    ktest_report(
        !marker_connect("ktest_other", "nothing", look_at_module, &looked.calls[0]),
        "then it may");
    marker_disconnect("ktest_other", look_at_module, NULL);
    marker_disconnect("ktest_other", look_at_module, &looked.calls[0]);
}

/* The event is in use when its marker goes, so it stays. */
KTEST(marker_module, an_event_makes_room_for_another_format)
{
    static const char event[] = "events/markers/ktest_module/enable", format[] = "i %ld";
    size_t len = (size_t)(module_marks_end - module_marks), at = 0;
    uint8_t *file = kmalloc(len);

    memcpy(file, module_marks, len);
    while (memcmp(file + at, format, sizeof(format)) != 0)
        at++;
    file[at] = 'j';
    load();
    ktest_report(!trace_put(event, "1", 0), "it is armed");
    ktest_report(!unload("marks") && !trace_put(event, "0", 0), "when its marker goes");
    ktest_report(load() == 0 && !trace_put(event, "1", 0), "the same one comes back");
    unload("marks");
    trace_put(event, "0", 0);
    ktest_report(!module_load("marks", file, len, loaded_why) &&
                     !trace_put(event, "1", 0),
                 "and one of another format comes");
    trace_put(event, "0", 0);
    ktest_report(!unload("marks") && trace_put(event, "0", 0) == -ENOENT, "and goes");
    kfree(file);
}

/* If a damaged marker were accepted, switching it would overwrite other instructions. */
KTEST(marker_module, what_is_no_marker_is_refused)
{
    static const uint8_t off[] = { 0xb0, 0, 0x84, 0xc0 };
    size_t len = (size_t)(module_marks_end - module_marks), at = 0;
    uint8_t *file = kmalloc(len);
    char why[MODULE_WHY_MAX];

    memcpy(file, module_marks, len);
    while (memcmp(file + at, off, sizeof(off)) != 0)
        at++;
    file[at + 2] = 0x85;
    ktest_report(module_load("marks", file, len, why) == -ENOEXEC &&
                     strstr(why, "a marker that is not its own"),
                 "other instructions: %s", why);
    kfree(file);
}

KTEST(marker_module, a_module_whose_markers_cannot_be_switched_on)
{
    size_t heap;
    long n;
    int err = -ENOMEM;

    load();
    unload("marks");
    marker_connect("ktest_module", "i %ld", look_at_module, NULL);
    heap = heap_in_use();
    for (n = 1; err && n < 200; n++) {
        heap_fail_after(n);
        err = load();
        heap_fail_after(-1);
        if (err && err != -ENOMEM)
            break;
    }
    ktest_report(!err && n > 5, "each of %ld allocations may fail: %d", n - 2, err);
    if (!err)
        unload("marks");
    ktest_report(heap_in_use() == heap, "nothing is left over");
    marker_disconnect("ktest_module", look_at_module, NULL);
}

/* ---- while all CPUs pass the markers ---- */

static uint64_t module_calls;

static void count_module(void *private UNUSED, struct marker_call *call)
{
    long i = va_arg(call->args, long);

    __atomic_fetch_add(&module_calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&looked.wrong, i < 0 || i > 2, __ATOMIC_RELAXED);
}

/* module_is_called - does a CPU call the function that the module has connected? */
static bool module_is_called(void)
{
    return passers_add_to((const volatile uint64_t *)of("marks_calls"));
}

/* The constructor of the module passes the marker ktest_module three times. */
KTEST(marker_module, modules_come_and_go_while_all_cpus_come_by)
{
    uint64_t rounds = ktest_rounds(3, 40), loads = 0;
    int failed = 0;

    look_begin();
    passers_start(marked);
    module_calls = 0;
    failed += marker_connect("ktest_module", "i %ld", count_module, NULL) != 0;
    for (uint64_t n = 0; n < rounds; n++) {
        failed += look_connect(0) != 0;
        failed += load() != 0;
        loads++;
        failed += n % 2 && (look_disconnect(0) || !module_is_called());
        failed += unload("marks") != 0;
        failed += n % 2 == 0 && look_disconnect(0);
    }
    failed += marker_disconnect("ktest_module", count_module, NULL) != 0;
    passers_end();
    ktest_report(!failed, "all of it is done");
    ktest_report(module_calls == 3 * loads && !looked.wrong,
                 "%lu calls in %lu constructors", module_calls, loads);
}
