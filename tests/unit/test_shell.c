/* test_shell.c - tests of a whole shell: a string is its input, and its output is
 * compared.
 *
 * Commands that need a machine are left out; the test has a few commands of its own.
 */
#include "kernel/console/shell_state.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/panic.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/thread/thread.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/unit.h"

#include <setjmp.h>

/* -- the kernel's functions that the shell uses -------------------------------------- */

static int (*thread_fn)(void *);
static void *thread_arg;
static bool powered_off, power_off_failed;
static jmp_buf out_of_shell;

int kernel_clone(const struct clone_args *args)
{
    CHECK_STR(args->name, "shell/TEST");
    thread_fn = args->fn;
    thread_arg = args->arg;
    return 7;
}

void thread_sleep_ns(uint64_t ns UNUSED)
{
}

void panic(const char *fmt UNUSED, ...)
{
    abort();
}

static const char *symbols[] = { "vfs_open", "vfs_read", "vfs_write", "kmalloc" };

bool ksyms_get(size_t i, struct ksym *out)
{
    if (i >= ARRAY_LEN(symbols))
        return false;
    out->name = symbols[i];
    return true;
}

/* -- the console --------------------------------------------------------------------- */

static const char *input;
static size_t input_len, chunk; /* bytes per read */
static struct seq output;

static void console_show(struct console *con UNUSED, const char *text, size_t len)
{
    seq_write(&output, text, len);
}

/* A host that reads no more lets the thread wait here. */
static void console_write(struct console *con, const char *text, size_t len)
{
    CHECK_EQ(fake_mutex_depth(), 0);
    console_show(con, text, len);
}

static long console_read(struct console *con UNUSED, char *buf, size_t len)
{
    size_t n = input_len < chunk ? input_len : chunk;

    if (n == 0)
        longjmp(out_of_shell, 1);
    n = n < len ? n : len;
    memcpy(buf, input, n);
    input += n;
    input_len -= n;
    return (long)n;
}

static bool console_interrupt_pending(struct console *con UNUSED)
{
    return memchr(input, 3, input_len) != NULL;
}

static bool console_input_pending(struct console *con UNUSED)
{
    return input_len > 0;
}

static struct console console = { .name = "TEST",
                                  .write = console_write,
                                  .show = console_show,
                                  .read = console_read,
                                  .interrupt_pending = console_interrupt_pending,
                                  .input_pending = console_input_pending };

/* -- commands of the test ------------------------------------------------------------ */

static unsigned loops_stopped;

static int loop_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    for (int i = 0; i < 1000; i++) {
        if (!shell_interrupted(sh))
            continue;
        loops_stopped++;
        return -EINTR;
    }
    shell_printf(sh, "not interrupted\n");
    return 0;
}

static int lines_run(struct shell *sh, int argc UNUSED, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++)
        shell_printf(sh, "line %d\n", i);
    return 0;
}

static int fail_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    shell_printf(sh, "before\n");
    return shell_error(sh, EBUSY, "fail: %s", "thing");
}

/* nest_run - the command nest WORD...: run the command WORD... inside, and then print its
 * error.
 */
static int nest_run(struct shell *sh, int argc, char **argv)
{
    int err = shell_run_inside(sh, argc - 1, argv + 1);

    shell_printf(sh, "nested: %d\n", err);
    return err;
}

/* spoil_run - the command spoil WORD: print its argument and change it, as commands may
 * do.
 */
static int spoil_run(struct shell *sh, int argc UNUSED, char **argv)
{
    shell_printf(sh, "%s\n", argv[1]);
    argv[1][0] = '\0';
    return 0;
}

static int twice_run(struct shell *sh, int argc, char **argv)
{
    shell_run_inside(sh, argc - 1, argv + 1);
    return shell_run_inside(sh, argc - 1, argv + 1);
}

static int hog_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    fake_heap_fail_after(1);
    for (int i = 0; i < 10000; i++)
        shell_printf(sh, "no line feed ");
    return 0;
}

static int wide_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    for (int i = 0; i < 10000; i++)
        shell_printf(sh, "no line feed ");
    shell_printf(sh, "\n");
    return 0;
}

static int slow_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    shell_progress(sh, "%d %%", 50);
    shell_progress(sh, NULL);
    shell_printf(sh, "done\n");
    return 0;
}

static void complete_pair(struct shell_completion *c, int index)
{
    shell_offer(c, index == 1 ? "first" : shell_first(c));
}

static void complete_starved(struct shell_completion *c, int index UNUSED)
{
    fake_heap_fail_after(1);
    shell_offer(c, "first");
    fake_heap_fail_after(0);
}

const struct shell_command shell_system_commands[] = {
    { "slow", "", "show progress", slow_run, NULL },
    { "pair", "", "the second argument is like the first", loop_run, complete_pair },
    { "loop", "[WORD]", "loop until Ctrl-C", loop_run, NULL },
    { "lines", "N", "print N lines", lines_run, NULL },
    { "fail", "[WORD]", "fail", fail_run, NULL },
    { "hog", "", "use up the memory with a line", hog_run, NULL },
    { "wide", "", "print a long line", wide_run, NULL },
    { "nest", "WORD...", "run a command inside", nest_run, NULL },
    { "twice", "WORD...", "the same, twice", twice_run, NULL },
    { "spoil", "WORD", "print it and change it", spoil_run, NULL },
    { "starved", "", "no memory for its argument", loop_run, complete_starved },
    { "sym", "", "has symbols as arguments", loop_run, shell_complete_symbols },
    {},
};

static void power_off(bool failed)
{
    powered_off = true;
    power_off_failed = failed;
    longjmp(out_of_shell, 1);
}

/* -- files --------------------------------------------------------------------------- */

static int opens, writes, truncates;
static char written[200];
static long write_answer, write_most;

static int file_show(struct seq *s, void *priv UNUSED)
{
    opens++;
    seq_puts(s, "shown\n");
    return 0;
}

static long file_write(void *priv UNUSED, const char *text, size_t len)
{
    writes++;
    if (write_most && (long)len > write_most)
        len = (size_t)write_most;
    snprintf(written, sizeof(written), "%.*s", (int)len, text);
    return write_answer ? write_answer : (long)len;
}

static int file_truncate(void *priv UNUSED)
{
    truncates++;
    return 0;
}

static const struct vfs_file files[] = {
    { .name = "control",
      .mode = 0640,
      .show = file_show,
      .write = file_write,
      .truncate = file_truncate },
    { .name = "counter", .mode = 0444, .show = file_show },
};

/* -- running it ---------------------------------------------------------------------- */

static void set_up_once(void)
{
    static bool ready;

    if (ready)
        return;
    ready = true;
    CHECK_EQ(vfs_init(), 0);
    CHECK_EQ(vfs_add_tree("/sys/test", files, ARRAY_LEN(files)), 0);
    shell_init();
    shell_set_power(power_off, NULL);
}

/* talk - give @len bytes to a new shell, @step at a time. Return: its output, valid until
 * the next call.
 */
static const char *talk(unsigned flags, const char *bytes, size_t len, size_t step)
{
    static char *text;
    struct shell *sh;

    set_up_once();
    opens = writes = truncates = 0;
    powered_off = power_off_failed = false;
    input = bytes;
    input_len = len;
    chunk = step;
    seq_init(&output, NULL, NULL);
    CHECK_EQ(shell_start(&console, flags, ""), 0);
    sh = thread_arg;
    if (setjmp(out_of_shell) == 0)
        thread_fn(sh);
    seq_free(&sh->lines);
    seq_free(&sh->bytes);
    history_free(&sh->editor.history);
    kfree(sh);
    free(text);
    text = malloc(output.len + 1);
    memcpy(text, seq_str(&output), output.len + 1);
    seq_free(&output);
    return text;
}

/* ask - return the reply of the machine interface to @request, without the greeting. */
static const char *ask(const char *request)
{
    static const char greeting[] = "sonde: machine interface, version 1\r\n";
    const char *text = talk(SHELL_MACHINE, request, strlen(request), 100);

    CHECK_EQ(strncmp(text, greeting, strlen(greeting)), 0);
    return text + strlen(greeting);
}

/* see - return the output on a terminal, when @keys arrive as fast as from a pipe. */
static const char *see(const char *keys)
{
    return talk(SHELL_HUMAN | SHELL_MACHINE, keys, strlen(keys), 100);
}

/* pipe_through - return the output to a pipe, when @text is the input. */
static const char *pipe_through(const char *text, size_t step)
{
    return talk(SHELL_HUMAN | SHELL_MACHINE | SHELL_PLAIN, text, strlen(text), step);
}

/* -- machine requests ---------------------------------------------------------------- */

UNIT_TEST(requests_are_answered_byte_exact)
{
    CHECK_STR(ask("@1 echo hi\n"), "#1|hi\n#1=0 OK\n");
    CHECK_STR(ask("@007 echo -n hi\r\n"), "#007~hi\n#007=0 OK\n");
    CHECK_STR(ask("@2 echo -ne 'a\\x0ab\\x5c\\x00\\x0a'\n"),
              "#2|a\n#2|b\\\\\\x00\n#2=0 OK\n");
    CHECK_STR(ask("@3 \n"), "#3=0 OK\n");
    CHECK_STR(ask("@3 echo -x '\\x41'\n"), "#3|-x \\\\x41\n#3=0 OK\n");
    CHECK_STR(ask("@3 echo -n '\\x41'\n"), "#3~\\\\x41\n#3=0 OK\n");
    CHECK_STR(ask("@4 ls /sys/test\n@5 stat /sys/test/control\n"),
              "#4|control\n#4|counter\n#4=0 OK\n#5|f 0640\n#5=0 OK\n");
    CHECK_STR(ask("@6 cat /sys/test/counter\n"), "#6|shown\n#6=0 OK\n");
}

UNIT_TEST(failures_have_an_errno)
{
    CHECK_STR(ask("@1 nosuch\n"), "#1|sh: unknown command nosuch\n#1=2 ENOENT\n");
    CHECK_STR(ask("@2 cat /no\n"),
              "#2|cat: /no: No such file or directory\n#2=2 ENOENT\n");
    CHECK_STR(ask("@3 fail\n"),
              "#3|before\n#3|fail: thing: Device or resource busy\n#3=16 EBUSY\n");
    CHECK_STR(ask("@4 mkdir /sys/x\n"),
              "#4|mkdir: /sys/x: Operation not permitted\n#4=1 EPERM\n");
    CHECK_STR(ask("@5 echo 'x\n"), "#5|sh: column 6: a quote that is not closed\n"
                                   "#5=22 EINVAL\n");
    CHECK_STR(ask("@6 echo x > /sys/test/counter\n"),
              "#6|sh: /sys/test/counter: Permission denied\n#6=13 EACCES\n");
}

UNIT_TEST(echo_is_one_write)
{
    CHECK_STR(ask("@1 echo -ne 'p:x y\\x0ar:z\\x0a' >> /sys/test/control\n"),
              "#1=0 OK\n");
    CHECK(writes == 1 && truncates == 0 && opens == 0);
    CHECK_STR(written, "p:x y\nr:z\n");
    CHECK_STR(ask("@2 echo -n '' > /sys/test/control\n"), "#2=0 OK\n");
    CHECK(writes == 0 && truncates == 1 && opens == 0);
    CHECK_STR(ask("@3 echo 1 > /sys/test/control\n"), "#3=0 OK\n");
    CHECK(writes == 1 && truncates == 1);
    CHECK_STR(written, "1\n");
    write_answer = -EINVAL;
    CHECK_STR(ask("@4 echo 1 >> /sys/test/control\n"),
              "#4|sh: /sys/test/control: write error: Invalid argument\n#4=22 EINVAL\n");
    write_answer = 0;
}

UNIT_TEST(a_file_gets_the_rest_in_further_writes)
{
    write_most = 4;
    CHECK_STR(ask("@1 echo 1234567890 > /sys/test/control\n"), "#1=0 OK\n");
    CHECK(writes == 3 && truncates == 1);
    CHECK_STR(written, "90\n");
    write_most = 0;
}

UNIT_TEST(bad_requests_are_answered_too)
{
    CHECK_STR(ask("@x ls\n"),
              "sh: a request begins with @TAG and a blank: Invalid argument\r\n");
    CHECK_STR(ask("help\n\n\r\n"),
              "sh: only requests here: @TAG COMMAND: Invalid argument\r\n");
    CHECK_STR(talk(SHELL_MACHINE, "@5 e\0x\n@6 \n", 11, 100),
              "sonde: machine interface, version 1\r\n"
              "#5|sh: a request has no byte 0 in it: Invalid or incomplete multibyte or "
              "wide character\n#5=84 EILSEQ\n#6=0 OK\n");
}

UNIT_TEST(overlong_lines_are_refused_and_the_next_one_works)
{
    size_t len = SHELL_LINE_MAX + 10;
    char *request = malloc(len + 20);

    memset(request, 'x', len);
    memcpy(request, "@1 echo ", 8);
    strcpy(request + len, "\n@2 echo y\n");
    CHECK_STR(ask(request),
              "#1|sh: line of 16394 bytes, the limit is 16384: Argument list too long\n"
              "#1=7 E2BIG\n#2|y\n#2=0 OK\n");
    free(request);
}

UNIT_TEST(without_memory_errors_are_told_and_small_things_work)
{
    const char *reply;

    CHECK_STR(ask("@1 hog\n@2 echo on\n"),
              "#1|sh: output of hog is lost: Cannot allocate memory\n#1=12 ENOMEM\n"
              "#2|on\n#2=0 OK\n");
    fake_heap_fail_after(0);
    reply = ask("@1 wide\n@2 hog\n@3 echo on\n");
    fake_heap_fail_after(0);
    CHECK_STR(strstr(reply, "#1=0"),
              "#1=0 OK\n#2|sh: output of hog is lost: Cannot allocate memory\n"
              "#2=12 ENOMEM\n#3|on\n#3=0 OK\n");
}

/* -- typed lines --------------------------------------------------------------------- */

UNIT_TEST(a_typed_line_is_echoed_and_run)
{
    CHECK_STR(see("echo hi\r"), "sonde> echo hi\r\nhi\r\nsonde> ");
    CHECK_STR(see("echo -n hi\n\n"), "sonde> echo -n hi\r\nhi\r\nsonde> \r\nsonde> ");
    CHECK_STR(see("echo -ne '\\x1b\\x5c\\x9b'\r"),
              "sonde> echo -ne '\\x1b\\x5c\\x9b'\r\n\\x1b\\\\x9b\r\nsonde> ");
}

UNIT_TEST(errors_name_the_thing)
{
    char line[400];

    CHECK_STR(see("cat /nosuch\r"), "sonde> cat /nosuch\r\ncat: /nosuch: No such file or "
                                    "directory\r\nsonde> ");
    CHECK_STR(see("ls a b\r"), "sonde> ls a b\r\nusage: ls [DIR]\r\nsonde> ");
    snprintf(line, sizeof(line), "@1 cat /%0300d\n", 0); /* no text is cut */
    CHECK(strstr(ask(line), "0: File name too long\n#1=36 ENAMETOOLONG\n"));
    snprintf(line, sizeof(line), "@1 echo | grep %064d\n", 0);
    CHECK_STR(ask(line),
              "#1|grep: the pattern has more than 63 characters\n#1=7 E2BIG\n");
}

UNIT_TEST(a_mistyped_word_gets_a_suggestion)
{
    CHECK_STR(ask("@1 ehco hi\n"), /* two letters exchanged */
              "#1|sh: unknown command ehco (did you mean `echo`?)\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 powerof\n"), /* a letter is missing */
              "#1|sh: unknown command powerof (did you mean `poweroff`?)\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 help grepp\n"),
              "#1|help: unknown command grepp (did you mean `grep`?)\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 xyzzy\n"), "#1|sh: unknown command xyzzy\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 et\n"), "#1|sh: unknown command et\n#1=2 ENOENT\n");
    CHECK(memcmp(ask("@1 echoechoechoechoechoechoechoechoechoechoechoechoecho\n"),
                 "#1|sh: unknown command echo", 27) == 0);
}

UNIT_TEST(an_unknown_option_is_named)
{
    CHECK_STR(ask("@1 sort -nx\n"),
              "#1|sort: no option -nx\n#1|usage: sort [-nru] [FILE...]\n#1=22 EINVAL\n");
    CHECK_STR(ask("@1 sort -run -x\n"), /* letters may stand together */
              "#1|sort: no option -x\n#1|usage: sort [-nru] [FILE...]\n#1=22 EINVAL\n");
    CHECK_STR(ask("@1 head -n x\n"), /* the option is right, the number is not */
              "#1|usage: head [-n N] [FILE...]\n#1=22 EINVAL\n");
}

UNIT_TEST(pipes_and_files_work)
{
    CHECK_STR(ask("@1 lines 20 | grep 1 | sort -r | head -n 2\n"),
              "#1|line 19\n#1|line 18\n#1=0 OK\n");
    CHECK_STR(
        ask("@1 lines 3 > /tmp/f\n@2 tail -1 /tmp/f\n@3 wc -l /tmp/f\n@4 rm /tmp/f\n"),
        "#1=0 OK\n#2|line 2\n#2=0 OK\n#3|3\n#3=0 OK\n#4=0 OK\n");
    CHECK_STR(ask("@1 fail | wc -l\n"),
              "#1|fail: thing: Device or resource busy\n#1|1\n#1=16 EBUSY\n");
    CHECK_STR(ask("@1 cat\n"), "#1|usage: cat FILE...\n#1=22 EINVAL\n");
    CHECK_STR(ask("@1 slow a\n"), "#1|usage: slow\n#1=22 EINVAL\n");
    CHECK_STR(ask("@1 wc /no\n"), "#1|wc: /no: No such file or directory\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 echo -n hi > /tmp/f\n@2 cat /no /tmp/f\n@3 rm /tmp/f\n"),
              "#1=0 OK\n#2|cat: /no: No such file or directory\n#2~hi\n#2=2 ENOENT\n"
              "#3=0 OK\n");
    CHECK_STR(ask("@1 echo a b c | wc -lw\n"), "#1|1 3\n#1=0 OK\n");
    CHECK_STR(ask("@1 echo a b c | wc -c\n"), "#1|6\n#1=0 OK\n");
    CHECK_STR(ask("@1 echo hi | cat\n"), "#1|hi\n#1=0 OK\n");
    CHECK_STR(
        ask("@1 wc\n"),
        "#1|wc: neither a file nor a pipe to read: Invalid argument\n#1=22 EINVAL\n");
}

UNIT_TEST(control_c_stops_a_command)
{
    CHECK_STR(see("loop\r\003echo x\r"),
              "sonde> loop\r\n^C\r\nsonde> echo x\r\nx\r\nsonde> ");
    CHECK_STR(see("loop\rdropped\r\003echo x\r"),
              "sonde> loop\r\n^C\r\nsonde> echo x\r\nx\r\nsonde> ");
    CHECK_STR(talk(SHELL_HUMAN, "loop\r\003", 6, 1), "sonde> loop\r\n^C\r\nsonde> ");
    CHECK_STR(ask("@1 loop\n\003@2 loop\n"), "#1=4 EINTR\n#2|not interrupted\n#2=0 OK\n");
    CHECK_STR(ask("@1 loop\n@2 echo dropped\n\003@3 echo x\n"),
              "#1=4 EINTR\n#3|x\n#3=0 OK\n");
    CHECK_STR(ask("@1 lines 5\n\003"), "#1=4 EINTR\n");
    CHECK_STR(ask("@1 fail | loop | lines 1 > /sys/test/control\n\003"),
              "#1|fail: thing: Device or resource busy\n#1=16 EBUSY\n");
    CHECK_EQ(writes, 0);
    CHECK_STR(see("abc\003"), "sonde> abc^C\r\nsonde> ");
}

UNIT_TEST(the_end_of_input_switches_off)
{
    see("\004");
    CHECK(powered_off);
    see("echo x\r\004");
    CHECK(powered_off);
    see("\004echo x\r"); /* with bytes behind it, it is not the end of the input */
    CHECK(!powered_off);
    see("abc\004");
    CHECK(!powered_off);
    ask("\004");
    CHECK(!powered_off);
}

UNIT_TEST(tab_completes_commands_paths_and_symbols)
{
    CHECK_STR(see("ech\thi\r"), "sonde> echo hi\r\nhi\r\nsonde> ");
    CHECK_STR(see("cat /sy\tte\tcou\t\r"),
              "sonde> cat /sys/test/counter \r\nshown\r\nsonde> ");
    CHECK_STR(see("echo x >/sys/t\t"), "sonde> echo x >/sys/test/");
    CHECK_STR(see("echo x | gre\t"), "sonde> echo x | grep ");
    CHECK_STR(see("sym km\t"), "sonde> sym kmalloc ");
    CHECK_STR(see("sym v\t"), "sonde> sym vfs_");
    CHECK_STR(see("nosuch v\t"), "sonde> nosuch v");
    CHECK_STR(see("help ech\t"), "sonde> help echo ");
    CHECK_STR(see("head -\t5"), "sonde> head -n 5");
    CHECK_STR(see("starved f\tx"), "sonde> starved fx");
    CHECK(strstr(see("grep -\t\t"), "\r\n-c  -i  -v\r\n"));
}

UNIT_TEST(completions_know_the_first_argument)
{
    CHECK_STR(see("pair f\t"), "sonde> pair first ");
    CHECK_STR(see("pair first \t"), "sonde> pair first first ");
    CHECK_STR(see("lines 1 | pair other x o\t"), "sonde> lines 1 | pair other x other ");
}

UNIT_TEST(progress_is_for_people)
{
    CHECK_STR(see("slow\r"), "sonde> slow\r\n\r50 %\033[K\r\033[Kdone\r\nsonde> ");
    CHECK_STR(ask("@1 slow\n"), "#1|done\n#1=0 OK\n");
}

UNIT_TEST(a_second_tab_lists)
{
    CHECK_STR(see("sym vfs_\t\t"), "sonde> sym vfs_\r\nvfs_open   vfs_read   "
                                   "vfs_write\r\n\rsonde> sym vfs_\033[K");
    CHECK_STR(see("cat /sys/test/\t\t"),
              "sonde> cat /sys/test/co\r\ncontrol  counter\r\n\rsonde> "
              "cat /sys/test/co\033[K");
}

UNIT_TEST(shell_execute_prints_to_a_text)
{
    struct seq s;

    set_up_once();
    seq_init(&s, NULL, NULL);
    CHECK_EQ(shell_execute("echo hi | wc -c", &s), 0);
    CHECK_STR(seq_str(&s), "3\n");
    seq_free(&s);
    CHECK_EQ(shell_execute("cat /no", &s), -ENOENT);
    CHECK_STR(seq_str(&s), "cat: /no: No such file or directory\n");
    seq_free(&s);
}

UNIT_TEST(commands_run_inside_of_others)
{
    CHECK_STR(ask("@1 nest echo 'a  b'\n"), "#1|a  b\n#1|nested: 0\n#1=0 OK\n");
    CHECK_STR(ask("@1 nest 'echo a b | wc -w'\n"), "#1|2\n#1|nested: 0\n#1=0 OK\n");
    CHECK_STR(ask("@1 nest 'echo a' | wc -l\n"), "#1|2\n#1=0 OK\n");
    CHECK_STR(ask("@1 twice spoil abc\n"), "#1|abc\n#1|abc\n#1=0 OK\n");
    CHECK_STR(ask("@1 nest fail | wc -l\n"),
              "#1|fail: thing: Device or resource busy\n#1|2\n#1=16 EBUSY\n");
    CHECK_STR(ask("@1 nest fail more | wc -l\n"),
              "#1|fail: thing: Device or resource busy\n#1|2\n#1=16 EBUSY\n");
    CHECK_STR(ask("@1 nest nothing\n"),
              "#1|sh: unknown command nothing\n#1|nested: -2\n#1=2 ENOENT\n");
    CHECK_STR(ask("@1 nest nest nest nest nest nest nest nest echo x | head -n 1\n"),
              "#1|x\n#1=0 OK\n");
    CHECK_STR(ask("@1 nest nest nest nest nest nest nest nest nest echo x | wc -l\n"),
              "#1|sh: echo: inside of 8 commands already\n#1|9\n#1=7 E2BIG\n");
    CHECK_STR(ask("@1 nest nest echo x > /tmp/n\n@2 cat /tmp/n\n@3 rm /tmp/n\n"),
              "#1=0 OK\n#2|x\n#2|nested: 0\n#2|nested: 0\n#2=0 OK\n#3=0 OK\n");
}

/* locked_run - print in the middle of things that a mutex guards. */
static int locked_run(struct shell *sh, int argc UNUSED, char **argv)
{
    static struct mutex lock;
    bool stop = shell_interrupted(sh);

    mutex_lock(&lock);
    shell_printf(sh, "one\n");
    shell_progress(sh, "half");
    shell_progress(sh, NULL);
    if (argv[1])
        shell_error(sh, 0, "locked: a message");
    shell_printf(sh, "two\n");
    mutex_unlock(&lock);
    shell_printf(sh, "thr");
    shell_printf(sh, "ee\n");
    mutex_lock(&lock);
    shell_printf(sh, "four\n");
    mutex_unlock(&lock);
    return stop ? -EINTR : 0;
}

UNIT_TEST(a_thread_with_a_mutex_does_not_wait_for_the_console)
{
    static const struct shell_command locked = { "locked", "[WORD]", "", locked_run,
                                                 NULL };

    set_up_once();
    CHECK_EQ(shell_add_command(&locked), 0);
    CHECK_STR(ask("@1 locked\n"), "#1|one\n#1|two\n#1|three\n#1|four\n#1=0 OK\n");
    CHECK_STR(see("locked x\r"), "sonde> locked x\r\n\rhalf\033[K\r\033[K"
                                 "one\r\nlocked: a message\r\ntwo\r\nthree\r\nfour\r\n"
                                 "sonde> ");
    CHECK_STR(ask("@1 locked\n\003"), "#1=4 EINTR\n");
    CHECK_STR(ask("@1 locked x\n\003"), "#1|one\n#1|locked: a message\n#1=4 EINTR\n");
    CHECK_STR(ask("@1 nest locked x\n\003"),
              "#1|one\n#1|locked: a message\n#1=4 EINTR\n");
    CHECK_STR(ask("@1 locked | wc -l\n"), "#1|4\n#1=0 OK\n");
}

static int stop_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    shell_printf(sh, "half a line");
    while (!shell_interrupted(sh))
        continue;
    shell_printf(sh, "\ndropped\n");
    shell_error(sh, 0, "stop: half of it is done");
    shell_printf(sh, "dropped, too\n");
    return -EINTR;
}

UNIT_TEST(control_c_drops_no_message)
{
    static const struct shell_command stop = { "stop", "[WORD]", "stops", stop_run,
                                               NULL };

    set_up_once();
    CHECK(!shell_has_command((uintptr_t)stop_run, (uintptr_t)stop_run + 1));
    CHECK_EQ(shell_add_command(&stop), 0);
    CHECK(shell_has_command((uintptr_t)stop_run, (uintptr_t)stop_run + 1));
    CHECK_STR(ask("@1 stop\n\003"), "#1|stop: half of it is done\n#1=4 EINTR\n");
    CHECK_STR(ask("@1 nest stop x\n\003"), "#1|stop: half of it is done\n#1=4 EINTR\n");
    CHECK_STR(ask("@1 stop | wc -l\n\003"), "#1|stop: half of it is done\n#1=4 EINTR\n");
    CHECK_STR(see("stop\r\003"),
              "sonde> stop\r\nstop: half of it is done\r\n^C\r\nsonde> ");
}

static unsigned taken, taken_again;

static int until_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    while (!shell_interrupted(sh))
        continue;
    shell_printf(sh, "dropped\nhalf of a line, ");
    taken += shell_take_interrupt(sh);
    taken_again += shell_take_interrupt(sh);
    shell_printf(sh, "so far\n");
    return 0;
}

UNIT_TEST(a_command_that_ends_by_control_c_prints_its_result)
{
    static const struct shell_command until = { "until", "[WORD]", "", until_run, NULL };

    set_up_once();
    taken = taken_again = 0;
    CHECK_EQ(shell_add_command(&until), 0);
    CHECK_STR(ask("@1 until\n@2 echo dropped\n\003@3 echo x\n"),
              "#1|so far\n#1=0 OK\n#3|x\n#3=0 OK\n");
    CHECK_STR(ask("@1 nest until x | tail -n 1\n\003"), "#1|nested: 0\n#1=0 OK\n");
    CHECK_STR(see("until\r\003echo x\r"),
              "sonde> until\r\n^C\r\nso far\r\nsonde> echo x\r\nx\r\nsonde> ");
    CHECK_EQ(taken, 3);
    CHECK_EQ(taken_again, 0);
}

UNIT_TEST(control_c_stops_what_runs_inside)
{
    loops_stopped = 0;
    CHECK_STR(ask("@1 nest loop | wc -l\n\003@2 echo x\n"),
              "#1=4 EINTR\n#2|x\n#2=0 OK\n");
    CHECK_STR(ask("@1 nest loop x | wc -l\n\003"), "#1=4 EINTR\n");
    CHECK_STR(ask("@1 nest 'nest loop' | wc -l\n\003"), "#1=4 EINTR\n");
    CHECK_EQ(loops_stopped, 3);
    CHECK_STR(ask("@1 nest loop\n"), "#1|not interrupted\n#1|nested: 0\n#1=0 OK\n");
}

UNIT_TEST(help_lists_what_developers_need_apart)
{
    static const struct shell_command tool = { "tool", "", "of developers", loop_run,
                                               NULL };
    const char *text, *head;

    set_up_once();
    CHECK_EQ(shell_add_developer_command(&tool), 0);
    CHECK_EQ(shell_add_developer_command(&tool), -EEXIST);
    text = ask("@1 help\n@2 help tool\n");
    head = strstr(text, "#1|\n#1|For work on the kernel itself:\n");

    CHECK(head && strstr(head, "#1|tool       of developers\n#1|\n"));
    CHECK(strstr(text, "#1|wide ") < head);
    CHECK(strstr(text, "#1|tool ") > head);
    CHECK(strstr(text, "#2|tool\n#2|of developers\n#2=0 OK\n"));
}

UNIT_TEST(commands_have_one_name_each)
{
    static const struct shell_command again = { "echo", "", "", loop_run, NULL };

    set_up_once();
    CHECK_EQ(shell_add_command(&again), -EEXIST);
}

/* While a line is edited, a terminal gets each change. A pipe gets the finished line
 * only.
 */
UNIT_TEST(a_pipe_is_sent_whole_lines)
{
    char line[200], want[700];

    for (size_t step = 1; step <= 100; step += 99) {
        CHECK_STR(pipe_through("echo abd\033[Dc\recho x\n", step),
                  "sonde> echo abcd\r\nabcd\r\nsonde> echo x\r\nx\r\nsonde> ");
        CHECK_STR(pipe_through("slow\n", step), "sonde> slow\r\ndone\r\nsonde> ");
        CHECK_STR(pipe_through("abc\003\014echo\tx\n", step),
                  "sonde> abc^C\r\nsonde> echo\tx\r\nx\r\nsonde> ");
        CHECK_STR(pipe_through("ech\t\thi\n", step),
                  "sonde> ech\t\thi\r\nsh: unknown command ech (did you "
                  "mean `echo`?)\r\nsonde> ");
    }
    snprintf(line, sizeof(line), "echo %0150d", 7);
    snprintf(want, sizeof(want), "sonde> %s\r\n%s\r\nsonde> ", line, line + 5);
    strcat(line, "\n");
    CHECK_STR(pipe_through(line, 100), want);
    CHECK_STR(pipe_through("@1 echo x\n", 100), "sonde> \r\n#1|x\n#1=0 OK\nsonde> ");
}

UNIT_TEST(a_pipes_failure_is_told_at_the_end)
{
    pipe_through("echo x\npoweroff\n", 100);
    CHECK(powered_off && !power_off_failed);
    pipe_through("fail\necho x\npoweroff\n", 100);
    CHECK(powered_off && power_off_failed);
    pipe_through("nonsense\n\004", 100);
    CHECK(powered_off && power_off_failed);
    pipe_through("echo 'unclosed\n\004", 100);
    CHECK(powered_off && power_off_failed);
    pipe_through("@1 fail\n\004", 100); /* the reply has told the host of the failure */
    CHECK(powered_off && !power_off_failed);
    see("fail\rpoweroff\r"); /* the user has seen the failure */
    CHECK(powered_off && !power_off_failed);
}

UNIT_TEST(random_bytes_leave_a_working_shell)
{
    static const char question[] = "\003\n@99 echo alive\n";
    size_t len = 1 << 20;
    char *noise = malloc(len + sizeof(question));
    size_t blocks;
    const char *reply;

    set_up_once();
    blocks = fake_heap_blocks();
    for (size_t i = 0; i < len; i++)
        noise[i] = (char)unit_random();
    memcpy(noise + len, question, sizeof(question));
    reply = talk(SHELL_HUMAN | SHELL_MACHINE, noise, len + sizeof(question) - 1, 64);
    CHECK(strstr(reply, "\n#99|alive\n#99=0 OK\n") != NULL);
    CHECK(!powered_off);
    CHECK_EQ(fake_heap_blocks(), blocks);
    free(noise);
}

UNIT_TESTS()
