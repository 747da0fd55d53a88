/* test_commands.c - the console command `probe`, as a person or a tool uses it. */
#include "kernel/console/shell_state.h"
#include "kernel/debug/ksyms.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/say.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what is probed ---- */

long commands_target(long a);
NOINLINE long commands_target(long a)
{
    __asm__ volatile("" : "+r"(a));
    return a * 5 + 1;
}

/* Two names for one function. */
long commands_alias(long a) __attribute__((alias("commands_target")));

/* tests/kernel/test_set.c has another function of this name. */
KTEST_TARGET(namesake, a, a + 1)

/* Since it is always inlined, this function has no code of its own. */
static ALWAYS_INLINE long inlined_helper(long a)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3;
}

static NOINLINE long inlined_once(long a)
{
    return inlined_helper(a) + 1;
}

static NOINLINE long inlined_again(long a)
{
    return inlined_helper(a) + 2;
}

/* The name of this function could also be read as an address. */
long feedfacecafebeef(long a);
NOINLINE long feedfacecafebeef(long a)
{
    __asm__ volatile("" : "+r"(a));
    return a + 3;
}

static void call(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        commands_target(i);
}

static uint8_t first_byte(void)
{
    return *(const volatile uint8_t *)commands_target;
}

/* ---- what was printed ---- */

/* number_behind - return the number in the line that begins with @name and a blank. */
static uint64_t number_behind(const char *name)
{
    const char *line = seq_str(&output);
    size_t len = strlen(name);

    for (; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    ktest_note("no line '%s N'", name);
    return UINT64_MAX;
}

/* every_line_is - does @check return true for every line of the output? */
static bool every_line_is(bool (*check)(const char *line, size_t len))
{
    const char *line = seq_str(&output);

    while (*line) {
        size_t len = strcspn(line, "\n");

        if (!check(line, len)) {
            ktest_note("line '%.*s'", (int)len, line);
            return false;
        }
        line += len + (line[len] != '\0');
    }
    return true;
}

/* ---- one probe ---- */

KTEST(commands, a_probe_is_added_counted_and_removed)
{
    uint8_t original = first_byte();

    ktest_report(say("probe add commands_target mine") == 0 &&
                     said("mine at commands_target+0x0\n"),
                 "add says where");
    ktest_report(first_byte() == 0xcc, "it is armed");
    call(7);
    say("probe list");
    ktest_report(said("         7        0  commands_target+0x0\n"),
                 "list counts 7 hits");
    ktest_report(said("boost"), "and names the tier");
    ktest_report(say("probe off mine") == 0 && first_byte() == original, "off");
    say("probe list");
    ktest_report(said("commands_target+0x0 [DISABLED]\n"), "list shows it");
    ktest_report(say("probe on mine") == 0 && first_byte() == 0xcc, "on");
    ktest_report(say("probe del mine") == 0 && first_byte() == original, "del");
    ktest_report(say("probe del mine") == -ENOENT &&
                     said("probe: no probe is called mine"),
                 "it is gone");
}

static bool line_of_returns(const char *line, size_t len)
{
    return len && (strncmp(line, "NAME", 4) == 0 || strstr(line, " r boost "));
}

KTEST(commands, returns_are_followed)
{
    ktest_report(say("probe ret commands_target back") == 0 &&
                     said("back at commands_target+0x0\n"),
                 "ret says where");
    say("probe list");
    ktest_report(every_line_is(line_of_returns) && said(" returns=0\n"),
                 "kind r, none yet");
    call(9);
    say("probe list");
    ktest_report(said("         9        0  commands_target+0x0 returns=9 value="),
                 "nine calls, nine returns, and a value");
    ktest_report(said(" ns=") && said(" mean_ns="), "and how long that took");
    ktest_report(say("cat /sys/kernel/debug/kprobes/list | grep -c '  r  '") == 0,
                 "kind r in the file");
    ktest_report(say("probe off back") == 0 && say("probe on back") == 0 &&
                     say("probe del back") == 0,
                 "off, on, del");
    ktest_report(say("probe ret commands_target+5") == -EINVAL &&
                     said("not the entry of a function"),
                 "only entries");
    ktest_report(say("probe ret") == -EINVAL && said("usage: probe ret"), "usage");
    ktest_report(say("probe add jiffies") == -ENOENT && said("(it is data, for `probe"),
                 "data is not taken for a name that is spelled wrongly");
}

KTEST(commands, names_are_unique)
{
    say("probe add commands_target mine");
    ktest_report(say("probe add commands_target mine") == -EEXIST, "EEXIST");
    ktest_report(say("probe add commands_target all") == -EEXIST, "all is taken");
    ktest_report(say("probe add commands_target "
                     "a_name_of_more_than_thirty_one_bytes") == -ENAMETOOLONG,
                 "a long name is refused");
    ktest_report(say("probe add commands_target 'a b'") == -EINVAL &&
                     say("probe add commands_target 'a|b'") == -EINVAL &&
                     say("probe add commands_target 'a*'") == -EINVAL,
                 "a name is one column of a list, and no pattern");
    ktest_report(say("probe add commands_target") == 0 && said(" at commands_target+0x0"),
                 "without one it gets one");
    ktest_report(say("probe del all") == 0, "all at once");
    say("probe list | wc -l");
    ktest_report(said("1\n"), "only the heading is left");
}

KTEST(commands, post_handlers_can_be_tried)
{
    say("probe add --post commands_target");
    call(5);
    say("probe list");
    ktest_report(said(" step-int3 ") && said("commands_target+0x0 post=5\n"),
                 "it was stepped, and the post-handler ran 5 times");
    say("echo tf > /proc/sys/debug/kprobes-step");
    call(5);
    say("probe list");
    ktest_report(said(" step-tf ") && said(" post=10\n"), "by TF too");
    say("echo int3 > /proc/sys/debug/kprobes-step");
    say("probe del all");
}

KTEST(commands, places_have_many_spellings)
{
    char by_address[32];

    snprintf(by_address, sizeof(by_address), "0x%lx", (uintptr_t)commands_target + 5);
    ktest_report(say("probe add commands_target+5") == 0 && said("commands_target+0x5\n"),
                 "decimal");
    ktest_report(say("probe add commands_target+0x5") == 0 &&
                     said("commands_target+0x5\n"),
                 "hexadecimal");
    ktest_report(say("probe add %s", by_address) == 0 && said("commands_target+0x5\n"),
                 "an address");
    ktest_report(say("probe add commands_alias+5") == 0 && said("+0x5\n"),
                 "the other name");
    call(3);
    say("probe list | grep -c '        3        0 '");
    ktest_report(said("4\n"), "each of the four has seen the same hits");
    ktest_report(say("probe add ''") == -EINVAL && said("is no place"), "no text");
    ktest_report(say("probe add commands_target+") == -EINVAL, "no offset");
    ktest_report(say("probe add commands_target+x") == -EINVAL, "no number");
    ktest_report(say("probe add 0x") == -EINVAL, "no address");
    say("probe del all");
}

/* ---- refusals ---- */

KTEST(commands, refusals_name_place_reason_and_way_out)
{
    uintptr_t slot;

    ktest_report(say("probe add commands_target+1") == -EILSEQ &&
                     said("probe: cannot probe commands_target+0x1: not an instruction "
                          "boundary (instruction starts at commands_target+0x0)\n"),
                 "inside an instruction");
    ktest_report(say("probe add 0x%lx", (uintptr_t)commands_target + 1) == -EILSEQ &&
                     said("cannot probe commands_target+0x1: "),
                 "an address is told by its function");
    ktest_report(say("probe add commands_target+100000") == -ENOENT &&
                     said("the offset lies behind the end of the function "
                          "(commands_target is 0x"),
                 "behind the end");
    ktest_report(say("probe add exc_int3") == -EPERM && said("`probe blacklist`"),
                 "entry code");
    ktest_report(say("probe add kprobe_int3_handler") == -EPERM, "the re-entry core");
    ktest_report(say("probe add no_such_function") == -ENOENT &&
                     said("no symbol has this name\n"),
                 "an unknown name");
    ktest_report(say("probe add commands_target#9") == -ENOENT &&
                     said("no symbol has this name (NAME#N is the Nth of that name)"),
                 "a number that is too large");
    ktest_report(say("probe add jiffies") == -ENOENT, "data");
    ktest_report(say("probe add 0x10") == -ENOENT &&
                     said("cannot probe 0x10: the address is not kernel text\n"),
                 "an address that is no text");
    say("probe add commands_target");
    say("probe explain -v commands_target | grep ^copy");
    slot = strtoull(strstr(seq_str(&output), "0x"), NULL, 16);
    ktest_report(say("probe add 0x%lx", slot) == -EPERM &&
                     said("code that the engine itself has made\n"),
                 "a copy in a cell");
    say("probe del all");
    say("probe list | wc -l");
    ktest_report(said("1\n"), "nothing was added");
}

KTEST(commands, a_path_is_suggested_whichever_part_is_mistyped)
{
    static const char *const rows[][2] = {
        { "ls /porc", "/proc" },
        { "cat /porc/version", "/proc/version" },
        { "cat /proc/sis/debug/text-poke", "/proc/sys/debug/text-poke" },
        { "echo 1 > /proc/sys/debug/text-pole", "/proc/sys/debug/text-poke" },
        { "echo 1 > /proc/sys/debgu/text-poke", "/proc/sys/debug/text-poke" },
        { "grep x /porc/version", "/proc/version" },
        { "stat /proc/verson", "/proc/version" },
        { "rm /tpm", "/tmp" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char suggestion[64];

        snprintf(suggestion, sizeof(suggestion), " (did you mean `%s`?)\n", rows[i][1]);
        ktest_report(say("%s", rows[i][0]) < 0 && said(suggestion), "%s", rows[i][0]);
    }
    ktest_report(say("echo 1 > /proc/version") == -EACCES &&
                     said("/proc/version: Permission denied\n"),
                 "a name that is right is not suggested");
    ktest_report(say("cat /porc/nothing") == -ENOENT &&
                     said("/porc/nothing: No such file or directory\n"),
                 "nor a path that does not exist");
}

KTEST(commands, an_address_from_the_list_is_a_place)
{
    uintptr_t addr = (uintptr_t)commands_target;

    ktest_report(say("probe add %016lx first", addr) == 0 &&
                     said("first at commands_target+0x0\n"),
                 "16 digits, as the list shows them");
    ktest_report(say("probe explain -v %016lx", addr) == 0 && said("is probed"),
                 "for explain, too");
    ktest_report(say("probe ret %016lx second", addr) == 0, "for ret, too");
    ktest_report(say("probe add %012lx", addr & 0xffffffffffff) == -ENOENT &&
                     said("no symbol has this name\n"),
                 "with fewer digits it is a name");
    ktest_report(say("probe add 0xzz") == -EINVAL && said("is no place"), "and not 0xzz");
    ktest_report(say("probe add feedfacecafebeef") == 0 && said("feedfacecafebeef+0x0"),
                 "a symbol of that name is meant first");
    ktest_report(say("sym feedfacecafebeef") == 0 && said("feedfacecafebeef+0x0/"),
                 "for sym, too");
    ktest_report(say("sym %016lx", addr) == 0 && said("commands_target"),
                 "which takes the address as well");
    say("probe del all");
}

/* number_of_name - return N if the output begins with "pN at ", and 0 if it does not. */
static unsigned long number_of_name(void)
{
    const char *text = seq_str(&output);

    return text[0] == 'p' ? strtoul(text + 1, NULL, 10) : 0;
}

KTEST(commands, a_refused_probe_uses_up_no_name)
{
    unsigned long first;

    say("probe add commands_target");
    first = number_of_name();
    ktest_report(say("probe add commands_target+1") < 0 && say("probe add nothing") < 0 &&
                     say("probe ret no_such") < 0 && say("probe all no_such_*") < 0 &&
                     say("probe all exc_int3") == 0,
                 "refused in five ways");
    say("probe add commands_target");
    ktest_report(first > 0 && number_of_name() == first + 1, "p%lu follows p%lu",
                 number_of_name(), first);
    say("probe del all");
}

KTEST(commands, of_functions_with_one_name_the_number_is_printed)
{
    ktest_report(say("probe add begin") == -EADDRNOTAVAIL && said("begin#2 is 0x"),
                 "the name alone is refused, and all are listed");
    ktest_report(say("probe add begin#2 second") == 0 && said("second at begin#2+0x0\n"),
                 "one of them, by its number");
    ktest_report(say("probe list second") == 0 && said("  begin#2+0x0"),
                 "is listed as it can be typed");
    ktest_report(say("probe add begin#2+0x0 again") == 0 &&
                     say("probe del second") == 0 && say("probe del again") == 0,
                 "and typed as it is listed");
    ktest_report(say("probe watch begin#2 x third") == 0 &&
                     say("probe list third") == 0 && said("  begin#2+0x0") &&
                     say("probe del third") == 0,
                 "watches are listed likewise");
}

KTEST(commands, the_last_byte_is_inside_and_the_next_is_not)
{
    struct ksym sym;

    ksyms_at((uintptr_t)commands_target, &sym);
    say("probe add commands_target+%zu", sym.size);
    ktest_report(said("behind the end"), "an offset as large as the function");
    ktest_report(say("probe add commands_target+%zu", sym.size - 1) == 0,
                 "its last byte, a ret");
    say("probe del all");
}

KTEST(commands, of_several_functions_one_can_be_chosen)
{
    ktest_report(say("probe add namesake") == -EADDRNOTAVAIL &&
                     said("several symbols have this name\n") &&
                     said("  namesake#1 is 0xffffffff") &&
                     said("  namesake#2 is 0xffffffff"),
                 "the candidates are listed");
    ktest_report(say("trace -n count namesake#2") == 0 && said("p:trace/q1 0xffffffff"),
                 "`trace` takes a candidate, too");
    ktest_report(say("probe add namesake#1 first") == 0 && said("namesake#1+0x0"), "#1");
    ktest_report(say("probe add namesake#2+0x5 second") == 0 && said("namesake#2+0x5"),
                 "#2 with an offset");
    ktest_report(say("probe add namesake#3") == -ENOENT, "there is no third one");
    ktest_report(say("probe add namesake#0") == -ENOENT, "nor any before the first");
    ktest_report(say("probe add namesake#2+10000") == -ENOENT && said("behind the end"),
                 "the offset is checked");
    namesake(1);
    say("probe list | grep -c '         1        0 '");
    ktest_report(said("1\n"), "one of them was hit");
    say("probe del all");
}

KTEST(commands, what_compilers_made_of_a_function_is_offered)
{
    struct ksym sym;

    if (ksyms_find("special_weigh.constprop.0", &sym)) {
        ktest_skip("this compiler makes no special copies");
        return;
    }
    ktest_report(say("probe add special_weigh") == -ENOENT &&
                     said("the compiler has made special_weigh.constprop.0 of it\n"),
                 "there is no special_weigh, but special_weigh.constprop.0");
    ktest_report(say("probe add special_weigh.constprop.0") == 0,
                 "that one can be probed");
    say("run special");
    say("probe list");
    ktest_report(said("       100        0  special_weigh.constprop.0+0x0\n"),
                 "and is hit");
    say("probe del all");
}

KTEST(commands, where_a_function_was_inlined_is_offered)
{
    const char *place;
    char line[64];

    ktest_report(say("probe add inlined_helper") == -ENOENT &&
                     said("no symbol has this name\n") &&
                     said("is inlined at 2 places:\n"),
                 "a function without code of its own");
    place = strstr(seq_str(&output), "inlined_once+0x");
    ktest_report(place && said("inlined_again+0x"), "its callers are named");
    snprintf(line, sizeof(line), "probe add %.*s", place ? (int)strcspn(place, "\n") : 0,
             place);
    ktest_report(say("%s", line) == 0, "%s", line);
    inlined_once(1);
    inlined_again(1);
    say("probe list");
    ktest_report(said("         1        0  inlined_once+0x"), "and is hit");
    say("probe del all");
}

/* ---- sets ---- */

static size_t text_differs(const uint8_t *before, size_t len)
{
    size_t differs = 0;

    for (size_t i = 0; i < len; i++)
        differs += before[i] != ((const volatile uint8_t *)commands_target)[i];
    return differs;
}

KTEST(commands, all_is_one_set)
{
    uint8_t before[64];
    struct ksym sym;
    size_t len;

    ksyms_at((uintptr_t)commands_target, &sym);
    len = sym.size < sizeof(before) ? sym.size : sizeof(before);
    memcpy(before, commands_target, len);
    ktest_report(say("probe all commands_target") == 0 && said(": armed ") &&
                     said(" instructions of 1 functions\n") &&
                     !strstr(output.text, "refused"),
                 "all instructions of a function");
    ktest_report(text_differs(before, len) >= 3, "are armed");
    call(10);
    say("probe list");
    ktest_report(said(" set ") && said("  instructions of commands_target\n"),
                 "they are one line");
    say("probe stat");
    ktest_report(number_behind("probes") >= 3 &&
                     number_behind("probes") == number_behind("armed"),
                 "and many probes");
    ktest_report(say("probe off all") == 0 && text_differs(before, len) == 0, "off");
    say("probe list");
    ktest_report(said("instructions of commands_target [DISABLED]\n"),
                 "the list says so");
    ktest_report(say("probe on all") == 0 && text_differs(before, len) >= 3, "on");
    ktest_report(say("probe del all") == 0 && text_differs(before, len) == 0, "del");
}

KTEST(commands, patterns_choose_functions)
{
    ktest_report(say("probe all commands_[st]arget --entries") == 0 &&
                     said("armed 1 of 1 entries of 1 functions\n"),
                 "a pattern");
    call(3);
    say("probe list");
    ktest_report(said("         3        0  entries of commands_[st]arget\n"), "3 hits");
    say("probe del all");
    ktest_report(say("probe all commands_* --entries") == 0 &&
                     said("armed 1 of 1 entries of 1 functions\n"),
                 "two names of one function are one");
    say("probe del all");
    ktest_report(say("probe all test_commands.c --entries") == 0 &&
                     said(" functions\n") && !said("armed 0 of") &&
                     say("probe list") == 0 && said("  entries of test_commands.c\n"),
                 "a source file");
    say("probe del all");
    ktest_report(say("probe all no_such_*") == -ENOENT &&
                     said("no function has a name like no_such_*\n"),
                 "none");
    ktest_report(say("probe all exc_int3") == 0 && said(": armed 0 of ") &&
                     said("refused ENTRY_CODE"),
                 "all refused is no error");
    say("probe list | wc -l");
    ktest_report(said("1\n"), "and no entry");
    ktest_report(say("probe all a b") == -EINVAL && said("usage: probe all"), "usage");
    ktest_report(say("probe all --what") == -EINVAL, "an unknown option");
}

KTEST(commands, a_listing_has_each_instruction)
{
    say("probe add commands_target entry");
    say("probe all commands_target");
    call(5);
    say("probe listing commands_target");
    ktest_report(
        said("{\"function\":\"commands_") && said("\"owners\":\"") &&
            said("\"tier\":\"") &&
            said("[{\"name\":\"entry\",\"kind\":\"k\",\"set\":false,\"on\":true,") &&
            said("\"set\":true") &&
            said("\"others\":0,\"hits\":5,\"missed\":[0,0,0,0,0]}"),
        "its bytes, its probes and their hits");
    say("probe del all");
    ktest_report(say("probe listing exc_int3") == 0 && said("\"refused\":\""),
                 "or why it can have none");
    ktest_report(say("probe listing no_such") == -ENOENT &&
                     say("probe listing") == -EINVAL,
                 "no function, no listing");
}

KTEST(commands, what_is_refused_is_counted_by_rule)
{
    uint64_t armed, refused = 0;
    const char *of;

    ktest_report(say("probe all kprobe_*") == 0, "the engine's own functions");
    armed = strtoull(strstr(seq_str(&output), "armed ") + 6, NULL, 10);
    of = strstr(seq_str(&output), " of ");
    for (const char *line = strstr(of, "refused "); line;
         line = strstr(line + 1, "refused "))
        refused += strtoull(line + strlen("refused NOT_BOUNDARY   "), NULL, 10);
    ktest_report(said("refused BLACKLISTED ") &&
                     said("this code is the way into a hit, or out of it\n"),
                 "rule and sentence");
    ktest_report(armed > 0 && refused > 0 &&
                     armed + refused == strtoull(of + 4, NULL, 10),
                 "%lu armed and %lu refused are all", armed, refused);
    ktest_report(say("probe del all") == 0, "and away");
}

/* ---- numbers ---- */

/* is_stat_line - is @line a name and one word? Only the line of jumps tells a part of a
 * whole: "jumps 0 of 90000 (0.00 %)".
 */
static bool is_stat_line(const char *line, size_t len)
{
    size_t name = strcspn(line, " ");

    if (!strncmp(line, "jumps ", 6))
        return strstr(line, " of ") && strstr(line, " %)");
    return name < len && name + 1 < len && !memchr(line + name + 1, ' ', len - name - 1);
}

KTEST(commands, stat_prints_a_name_and_a_value_a_line)
{
    static const char *const names[] = {
        "enabled",
        "probes",
        "sites",
        "armed",
        "boundaries",
        "boundaries.accepting",
        "refused.BLACKLISTED",
        "refused.ENTRY_CODE",
        "hits",
        "hits.boost",
        "hits.step",
        "hits.emulate",
        "traps",
        "misses",
        "misses.recursion",
        "misses.nested",
        "misses.stack",
        "misses.early",
        "retries",
        "handler_faults",
        "memory",
        "memory.registry",
        "memory.slots",
        "memory.pads",
        "memory.sites",
    };
    uint64_t traps, hits, boundaries, sum;

    ktest_report(say("probe stat") == 0, "stat");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ktest_report(number_behind(names[i]) != UINT64_MAX, "%s", names[i]);
    traps = number_behind("traps");
    hits = number_behind("hits");
    boundaries = number_behind("boundaries");
    sum = number_behind("boundaries.accepting") + number_behind("boundaries.refused");
    ktest_report(boundaries > 10000 && sum == boundaries, "%lu boundaries", boundaries);
    say("probe add commands_target");
    call(100);
    say("probe stat");
    ktest_report(number_behind("traps") == traps + 100, "100 traps more");
    ktest_report(number_behind("hits") == hits + 100, "100 hits more");
    ktest_report(number_behind("probes") == 1 && number_behind("armed") == 1, "1 probe");
    ktest_report(number_behind("memory") > 0, "it takes memory");
    sum = number_behind("memory.registry") + number_behind("memory.slots") +
          number_behind("memory.pads") + number_behind("memory.sites");
    ktest_report(number_behind("memory") == sum, "all of it for something");
    say("probe del all");
    say("probe stat");
    ktest_report(number_behind("probes") == 0 && number_behind("memory") == 0,
                 "and gives it back");
    ktest_report(every_line_is(is_stat_line), "all lines look alike");
}

KTEST(commands, the_blacklist_has_reasons_and_a_share)
{
    const char *share;

    ktest_report(say("probe blacklist") == 0, "blacklist");
    ktest_report(said(" exc_int3 ") && said(" entry code, "), "entry code");
    ktest_report(said(" kprobe_int3_handler ") &&
                     said(" this code is the way into a hit"),
                 "the re-entry core");
    ktest_report(said(" 11 cpu_idle_wait+0x0 ") && said(" from here to hlt other CPUs"),
                 "a part of a function, with a reason of its own");
    ktest_report(!strstr(output.text, " commands_target "), "nothing else");
    share = strstr(seq_str(&output), " bytes of kernel text: ");
    ktest_report(share && strtoul(share + 23, NULL, 10) < 10, "below 10 %% of the text");
    ktest_report(share && strchr(share, '%'), "in per cent");
}

/* The lines themselves are printed by probed code, so its probes are hit meanwhile. */
KTEST(commands, the_hottest_come_first)
{
    uint64_t before = UINT64_MAX;
    unsigned lines = 0, unsorted = 0;

    say("probe all shell_printf");
    say("probe hot 20 | grep +0x");
    for (const char *at = seq_str(&output); *at; at = strchr(at, '\n') + 1) {
        uint64_t hits = strtoul(at + 36, NULL, 10);

        unsorted += hits > before;
        before = hits;
        lines++;
    }
    ktest_report(lines > 5 && !unsorted, "%u lines, in the order of their hits", lines);
    say("probe del all");
}

static int run_into_it(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    call(2);
    return 0;
}

KTEST(commands, misses_tell_which_places_hit_themselves)
{
    struct kprobe p = { .symbol_name = "commands_target", .pre_handler = run_into_it };

    say("probe add commands_target");
    register_kprobe(&p);
    call(3);
    unregister_kprobe(&p);
    ktest_report(say("probe hot | grep ' commands_target'") == 0 && said(" 3        6  "),
                 "three hits, and two misses in each");
    say("probe del all");
}

/* ---- explain ---- */

KTEST(commands, explain_tells_all_about_a_probe)
{
    say("probe add --post commands_target");
    call(4);
    ktest_report(say("probe explain -v commands_target") == 0, "explain");
    ktest_report(said("function   commands_"), "function");
    ktest_report(said("byte       cc, int3 of the engine, original 0f\n"), "owner");
    ktest_report(said("        -> 0xffffffff") && said("NOP"), "the instruction");
    ktest_report(said("rule       pass NOT_BOUNDARY"), "rules");
    ktest_report(said("verdict    is probed\n") && said("tier       step-int3: "),
                 "tier");
    ktest_report(said("copy       boost, at 0x") && said("copy       step, at 0x") &&
                     said(" 5 jmp\n") && said(" 1 int3\n"),
                 "copies");
    ktest_report(said("probes     1, 0 disabled, 1 with a post-handler; armed\n") &&
                     said("hits       4\n") && said("misses     0 recursion\n"),
                 "counts");
    say("probe del all");
    say("probe explain -v commands_target");
    ktest_report(said("byte       0f 1f 44 00 00, original\n") &&
                     said("verdict    can be probed\n") && said("tier       boost: ") &&
                     said("tier       step-int3 with a post-handler: "),
                 "without a probe it tells what would be");
}

/* ---- xmc ---- */

KTEST(commands, xmc_exchanges)
{
    uint8_t before[5], after[] = { 0x0f, 0x1f, 0x44, 0x00, 0x01 };
    const uint8_t *at = (const uint8_t *)commands_target;

    memcpy(before, at, sizeof(before)); /* the NOP at its entry */
    ktest_report(say("probe xmc commands_target 0f 1f 44 00 01") == 0 && said("") &&
                     !memcmp(at, after, sizeof(after)),
                 "exchanged, without a word");
    ktest_report(say("probe xmc commands_target 0f 1F 44 00 00") == 0 &&
                     !memcmp(at, before, sizeof(before)),
                 "and back");
}

/* What cannot be exchanged, by its console line, with errno and message. */
KTEST(commands, xmc_refuses_bad_input_by_errno_and_message)
{
    static const struct {
        const char *line;
        int err;
        const char *message;
    } rows[] = {
        { "commands_target+1 90", -EILSEQ,
          "not an instruction boundary (commands_target+0x0)" },
        { "commands_target 90", -EILSEQ,
          "the new bytes would end inside of an instruction (commands_target+0x1)" },
        { "commands_target 0f 1f 44 00 00 90", -EILSEQ,
          "the new bytes would end inside of an instruction (commands_target+0x6)" },
        { "commands_target 0f 1f 44 00 00 90 90 90 90 90 90 90 90 90 90 90", -EINVAL,
          "1 to 15 bytes can be exchanged (commands_target+0x0)" },
        { "commands_target 06 90 90 90 90", -EILSEQ,
          "the new bytes are not whole instructions (commands_target+0x0)" },
        { "commands_target 90 90 90 90 e9", -EILSEQ,
          "the new bytes are not whole instructions (commands_target+0x4)" },
        { "kprobe_int3_handler 0f 1f 44 00 00", -EPERM,
          "this code is the way into a hit, or out of it (kprobe_int3_handler+0x0)" },
        { "exc_int3 90", -EPERM, "entry code, before the registers are saved" },
        { "0xffffffff40000000 90", -ENOENT,
          "the address is not kernel text (0xffffffff40000000)" },
        { "0x10 90", -ENOENT, "the address is not kernel text (0x10)" },
        { "0xffffffffffffffff 90 90", -ENOENT, "the address is not kernel text" },
        { "nosuch 90", -ENOENT, "no symbol has this name" },
        { "namesake#1 66 90 0f 1f 00", -EEXIST, "a probe uses these bytes" },
        { "commands_target zz", -EINVAL, "zz is not two hexadecimal digits" },
        { "commands_target -1", -EINVAL, "-1 is not two hexadecimal digits" },
        { "commands_target 100", -EINVAL, "100 is not two hexadecimal digits" },
    };
    uint8_t before[5];
    const uint8_t *at = (const uint8_t *)commands_target;

    memcpy(before, at, sizeof(before));
    say("probe add namesake#1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ktest_report(say("probe xmc %s", rows[i].line) == rows[i].err &&
                         said(rows[i].message),
                     "%s: %s", rows[i].line, rows[i].message);
    say("probe del all");
    ktest_report(!memcmp(at, before, sizeof(before)), "nothing has changed");
}

/* ---- the rest ---- */

KTEST(commands, every_subcommand_has_a_usage)
{
    static const char *const lines[] = {
        "probe add",
        "probe add a b c",
        "probe add --what a",
        "probe list x y",
        "probe stat x",
        "probe del",
        "probe on a b",
        "probe off",
        "probe blacklist x",
        "probe explain a b",
        "probe all --entries a b",
        "probe xmc a",
        "probe xmc a 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        ktest_report(say("%s", lines[i]) == -EINVAL && said("usage: probe "), "%s",
                     lines[i]);
    ktest_report(say("probe") == -EINVAL && said("usage: probe COMMAND") &&
                     said("\n  explain "),
                 "all of them");
}

KTEST(commands, mistyped_words_get_a_suggestion)
{
    ktest_report(
        say("probe lst") == -EINVAL &&
            said("probe: unknown command lst (did you mean `list`?); `help probe`"),
        "a command");
    ktest_report(say("probe xyzzy") == -EINVAL && said("unknown command xyzzy; `help"),
                 "nothing is near");
    ktest_report(say("probe add commands_tagret") == -ENOENT &&
                     said("no symbol has this name (did you mean `commands_target`?)"),
                 "a symbol");
    ktest_report(say("probe add --psot commands_target") == -EINVAL &&
                     said("probe add: no option --psot (did you mean `--post`?)\n"
                          "usage: probe add [--post] "),
                 "an option");
    ktest_report(say("probe add commands_target --psot") == -EINVAL &&
                     said("probe add: no option --psot (did you mean `--post`?)\n"),
                 "an option behind the place, where a name may come");
    ktest_report(say("probe watch jiffies w 8 --psot") == -EINVAL,
                 "as the name of a watch");
    ktest_report(say("bench hit.opp") == -ENOENT &&
                     said("bench: no part of hit is called opp\n"),
                 "a part of a group");
    ktest_report(say("bench hitt") == -EINVAL && said("hitt (did you mean `hit`?)") &&
                     say("module del bench") == 0,
                 "a group, by the module that measures");
    ktest_report(say("run vsf") == -ENOENT && said("vsf (did you mean `vfs`?)"),
                 "a workload");
    ktest_report(say("marker on vsf_read") == -ENOENT &&
                     said("no marker is called vsf_read (did you mean `vfs_read`?)"),
                 "a marker");
    ktest_report(
        say("marker off vfs_read") == -ENOENT && said("marker: vfs_read is not on") &&
            say("marker on vfs_read") == 0 && say("marker on vfs_read") == -EEXIST &&
            said("marker: vfs_read is on already") && say("marker off vfs_read") == 0,
        "its state");
    ktest_report(say("probe watch commands_tagret w") == -ENOENT &&
                     said("no symbol has this name (did you mean `commands_target`?)"),
                 "a symbol to watch");
    ktest_report(say("trace --now 'vfs_read {count}'") == -EINVAL &&
                     said("trace: no option --now\nusage: trace ") &&
                     say("trace -nx 'vfs_read {count}'") == -EINVAL &&
                     said("trace: no option -nx\n"),
                 "an option of a question");
    ktest_report(say("trace 'mark vsf_read {count}'") == -ENOENT &&
                     said("^ no marker is called vsf_read (did you mean `vfs_read`?)"),
                 "a marker in a question");
    ktest_report(say("cat /proc/verson") == -ENOENT && said("mean `/proc/version`?)"),
                 "a file");
    ktest_report(say("probe add commands_target watched") == 0 &&
                     say("probe del wathced") == -ENOENT && said("mean `watched`?)") &&
                     say("probe del watched") == 0,
                 "a probe");
}

KTEST(commands, trace_completes_short_commands_and_functions)
{
    static const char *const lines[][2] = {
        { "trace cou", "count" }, { "trace count commands_targ", "commands_target" }
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct shell_completion c;
        char line[64];

        strlcpy(line, lines[i][0], sizeof(line));
        shell_complete(line, &c);
        ktest_report(strstr(seq_str(&c.names), lines[i][1]), "%s", lines[i][0]);
        seq_free(&c.names);
    }
}

KTEST(commands, help_has_every_subcommand)
{
    ktest_report(say("help probe") == 0 && said("\n  add       [--post] ") &&
                     said("\n  xmc       ") && said("for letters.\n"),
                 "of probe");
    ktest_report(say("help bench") == 0 && said("\n  hit       ") &&
                     said("\n  starve    ") && said("figure means.\n"),
                 "and every group of bench");
}
