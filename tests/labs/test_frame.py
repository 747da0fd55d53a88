"""test_frame.py - checks that submissions that cheat or misbehave lose points and do no
harm, and tests the output of ./sonde lab and ./sonde grade.
"""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from unittest import mock

import tap
import wrong
from docs.labs.host import confine, grade, labs
from sonde.building import HostError
from sonde.guest import ROOT

LAB = "int3"
SOLUTION = os.path.join(ROOT, labs.GRADERS, LAB, "solution/int3.c")
START = os.path.join(ROOT, "docs/labs", LAB, "start/int3.c")
VICTIM = os.path.join(ROOT, "tests/labs/rubric-victim.tmp")

# The beginning of a bad submission. Its code runs before the first case begins.
FIRST = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void first(int argc, char **argv)
{
(void)argc, (void)argv;
%s
}
"""

HANGS = "for (;;) ;"
EXITS = "_exit(0);"
GIGABYTE = """
static char zeros[1 << 20];
for (int i = 0; i < 1024; i++) if (write(1, zeros, sizeof(zeros)) < 0) abort();
"""
FACTS = """
const char *all = "instruction 0: 1 hits\\nthe bytes are back\\nthe case has ended\\n";
int to = 3;
while (fcntl(to, F_GETFD) < 0) to++; // the file of facts
if (write(to, all, strlen(all)) < 0) abort();
_exit(0);
"""
# The fact that grader.c writes of a signal, with a number that is too long for one.
LONG = """
char fact[6000];
int to = 3;
while (fcntl(to, F_GETFD) < 0) to++; // the file of facts
memset(fact, '9', sizeof(fact)), memcpy(fact, "ended: ", 7);
memcpy(fact + 5000, " 1 0 0\\n", 8);
if (write(to, fact, 5007) < 0) abort();
_exit(3);
"""
FILES = (
    'char *path = "' + VICTIM + '"; FILE *f = fopen(path, "a"); '
    'if (f) { fputs("x", f); fclose(f); } unlink(path); '
    'f = fopen("/tmp/lab-was-here.tmp", "w"); if (f) fclose(f); '
    'unlink(argv[0]); rename(argv[0], "/tmp/lab-was-here.tmp");'
)
PARENT = "kill(getppid(), SIGKILL); kill(getppid(), SIGSTOP);"
# Runs the program with the right answers, which is in the same folder.
TRUTH = """
char path[4096], **words = argv;
ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 8);
path[length] = 0;
strcpy(strrchr(path, '/') + 1, "truth");
execv(path, words);
"""
CHILDREN = """
int count = 0;
for (pid_t child; count < 2000 && (child = fork()) >= 0; count++)
    if (!child) for (;;) pause();
printf("%d children", count), fflush(stdout);
_exit(3);
"""
# Each child starts children, too.
BOMB = "signal(SIGTERM, SIG_IGN); for (;;) fork();"
# Prints whether it can affect other processes.
OTHERS = """
struct rlimit none = { 0, 0 };
printf("kill %d ", kill(getppid(), 0)), printf("all %d ", kill(-1, 0));
printf("limit %d ", prlimit(getppid(), RLIMIT_NOFILE, &none, 0));
printf("trace %ld ", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
printf("socket %d ", socket(AF_UNIX, SOCK_STREAM, 0));
printf("itself %d %d", kill(getpid(), 0), raise(SIGURG)), fflush(stdout);
_exit(3);
"""
HEADERS = "#include <sys/ptrace.h>\n#include <sys/resource.h>\n#include <sys/socket.h>\n"
DAEMON = "if (!fork()) { setsid(); if (fork()) _exit(0); for (;;) sleep(100); }"


class Bench:
    """Grades text as the student's only file."""

    def __init__(self, folder):
        self.folder = folder
        self.workshop = grade.Workshop(LAB, ROOT, os.path.join(folder, "built"))
        self.workshop.build_ours()

    def lost(self, text, **more):
        """Grade a submission. Return the names of the lines that it loses."""
        path = os.path.join(self.folder, "in")
        os.makedirs(path, exist_ok=True)
        for name, content in {"int3.c": text, **more}.items():
            with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                file.write(content)
        self.verdicts = grade.grade(self.workshop, path, 7)
        return [v.line.name for v in self.verdicts if v.why]

    def printed(self, text, seconds):
        """Run one case of a submission. Return (its output, the reason why it is lost)."""
        usual, self.workshop.seconds = self.workshop.seconds, seconds
        path = os.path.join(self.folder, "in")
        with open(os.path.join(path, "int3.c"), "w", encoding="utf-8") as file:
            file.write(text)
        self.workshop.build_answer(path)
        _, ended = self.workshop.run_case(self.workshop.answer, "hit", 7, 0)
        self.workshop.seconds = usual
        return self.workshop.printed, ended.why


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def early(solution):
    """Return the solution with a constructor that sets the handler of SIGTRAP."""
    text = "    sigaction(SIGTRAP, &action, NULL);\n"
    head = "void breakpoint_set(struct breakpoint *bp)\n{\n"
    before, behind = solution.split(text)
    start, action = before.split(head)
    first = "__attribute__((constructor)) static void first(void)\n{\n"
    return start + first + action + text + "}\n\n" + head + behind


def everything():
    return [line.name for line in labs.rubric(LAB)]


def submissions_that_misbehave():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        solution = read(SOLUTION)
        tap.equal(bench.lost(solution), [], "the solution has every point")
        for what, code, why in (
            ("hangs", HANGS, "it did not end within 1 s"),
            ("exits at once", EXITS, "ended before it was done"),
            ("prints a gigabyte", GIGABYTE, "it wrote too much"),
            ("writes facts of its own", FACTS, "not from the grader: "),
            ("dies by a signal without a name", "raise(40);", "ended by signal 40"),
            ("writes a number without an end", LONG, "it ended with status 3"),
        ):
            usual = bench.workshop.seconds
            bench.workshop.seconds = 1 if code == HANGS else usual
            tap.equal(
                bench.lost(FIRST % code + solution),
                everything(),
                f"a submission that {what}",
            )
            bench.workshop.seconds = usual
            tap.check(
                why in bench.verdicts[0].why, f"it is told: {bench.verdicts[0].why}"
            )
        tap.equal(bench.lost(early(solution)), [], "one that sets its handler early")
        tap.equal(bench.lost("int broken"), everything(), "a submission that is no C")
        tap.check("error:" in bench.verdicts[0].why, "the compiler's words are shown")
        files_stay(bench, solution)
        answers_are_out_of_reach(bench)
        nothing_stays_behind(bench, solution)
        others_are_out_of_reach(bench, solution)
        graders_in_the_folder_do_not_count(bench)


def files_stay(bench, solution):
    if not confine.landlock_abi():
        tap.skip("files cannot be changed", "this Linux has no Landlock")
        return
    with open(VICTIM, "w", encoding="ascii") as file:
        file.write("as it was")
    try:
        bench.lost(FIRST % FILES + solution)
        tap.equal(
            os.path.exists(VICTIM) and read(VICTIM), "as it was", "a file of the grader"
        )
        tap.check(not os.path.exists("/tmp/lab-was-here.tmp"), "and no new file")
        tap.check(os.path.exists(bench.workshop.answer), "its own stays, too")
    finally:
        os.unlink(VICTIM)


def answers_are_out_of_reach(bench):
    if not confine.landlock_abi():
        tap.skip("answers cannot be read", "this Linux has no Landlock")
        return
    tap.equal(
        bench.lost(FIRST % TRUTH + read(START)),
        everything(),
        "a submission that runs the program with the right answers",
    )
    tap.check("SIGTRAP" in bench.verdicts[0].why, "it has gone on without these")
    for name in (SOLUTION, os.path.relpath(SOLUTION, ROOT)):
        tap.equal(
            bench.lost(f'#include "{name}"\n'),
            everything(),
            f"a submission that includes {os.path.relpath(name, ROOT)}",
        )
        tap.check("Permission denied" in bench.verdicts[0].why, "it is not built")


def nothing_stays_behind(bench, solution):
    lost = bench.lost(FIRST % PARENT + solution)
    tap.equal(lost, [], "signals to the grader do nothing")
    tap.equal(
        bench.lost(FIRST % DAEMON + solution),
        [],
        "a submission that leaves processes behind",
    )
    tap.equal(confine.children(), [], "they have been ended")


def others_are_out_of_reach(bench, solution):
    printed, _ = bench.printed(HEADERS + FIRST % OTHERS + solution, 5)
    tap.equal(
        printed,
        "kill -1 all -1 limit -1 trace -1 socket -1 itself 0 0",
        "signals, limits, a debugger, sockets",
    )
    printed, why = bench.printed(FIRST % CHILDREN + solution, 20)
    limit = confine.tasks_of_user() + confine.TASKS_MORE
    tap.check(
        why == "it ended with status 3" and int(printed.split()[0]) < limit,
        f"a submission gets {printed}, and no more",
    )
    _, why = bench.printed(FIRST % BOMB + solution, 1)
    tap.check(why, f"one whose children fork, too: {why}")
    tap.equal(confine.children(), [], "all of them have been ended")


def graders_in_the_folder_do_not_count(bench):
    easy = "int main(void) { return 0; }"
    lost = bench.lost(
        read(START),
        **{"grader.c": easy, "rubric": "0 none 0 nothing", "int3.h": "#error mine"},
    )
    tap.equal(lost, everything(), "a grader, a rubric and a header in the folder")
    tap.check(
        "SIGTRAP" in bench.verdicts[0].why, "the student's program was built and run"
    )


def keys_may_be_written_so():
    """A right key of the bomb is right in any spelling. For a wrong one, the
    reason is told.
    """
    with tempfile.TemporaryDirectory() as folder:
        shop = grade.workshop_of("bomb", ROOT, os.path.join(folder, "built"))
        right = grade.own_grader("bomb", ROOT).Bomb(7).keys

        def why(text, line):
            with open(os.path.join(folder, "keys"), "w", encoding="ascii") as file:
                file.write(text + "\n")
            shop.build_answer(folder)
            found = shop.compare(line, 7, 0)
            return found and found.why

        caller, count = right["caller"], int(right["count"])
        for text in (
            f"caller {caller}",
            f"caller: bomb:{caller}",
            f"caller {caller}+0xe",
            f"caller : {caller} # found",
        ):
            tap.equal(why(text, "caller"), None, text)
        for text in (f"count {count}", f"count {count:#x}", f"count: {count}"):
            tap.equal(why(text, "count"), None, text)
        for text, says in (
            ("count 5af", "'5af' is no number; write 417 or 0x1a1"),
            ("count 7", "'7' is not the key"),
            ("", "there is no key yet"),
            ("cuont 7", "there is no key yet; there is no phase 'cuont'"),
        ):
            tap.equal(why(text, "count"), says, says)


def each_caller_of_a_bomb_calls():
    """Also one that calls with 0, as the one that this seed asks for."""
    with tempfile.TemporaryDirectory() as folder:
        grade.begin("bomb", folder, 5004)
        bomb = grade.own_grader("bomb", ROOT).Bomb(5004)
        tap.equal(bomb.which["caller"], 0, "a caller calls with 0")
        words = ["objdump", "-d", "--no-show-raw-insn", os.path.join(folder, "bomb.o")]
        code = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    # A jump would leave no trace of the caller.
    into = re.findall(rf"\t(\w+) .*<{bomb.names['caller']}>", code)
    tap.equal(into, ["call"] * len(bomb.callers), "each caller calls")


def a_difference_is_told():
    ended = confine.Ended(0, False, 1)
    facts = [f"fact {n}" for n in range(20)]
    without = facts[:9] + facts[10:]
    tap.equal(
        grade.Difference(without, facts, ended).why, "missing: fact 9", "a lost fact"
    )
    more = facts[:9] + ["mine"] + facts[9:]
    tap.equal(
        grade.Difference(more, facts, ended).why,
        "got: mine; right: nothing of that",
        "one too many",
    )
    tap.equal(
        grade.Difference(facts[:9], facts, ended).why,
        "it ended before it was done; right: fact 9",
        "an early end",
    )
    tap.equal(
        list(grade.both(facts[:1], facts)),
        ["  fact 0", "! it ended; right would be  fact 1"],
        "is shown once",
    )
    wrong = facts[:9] + ["mine"] + facts[10:]
    tap.equal(
        grade.Difference(wrong, facts, ended).why,
        "got: mine; right: fact 9",
        "a wrong one",
    )
    tap.equal(
        list(grade.both(wrong, facts)),
        [
            "  ...",
            "  fact 7",
            "  fact 8",
            "! got    mine",
            "! right  fact 9",
            "  fact 10",
            "  fact 11",
            "  ...",
        ],
        "is shown with its neighbours",
    )
    table = grade.own_grader("poke", ROOT)
    why_not = table.Workshop.no_reason(None, table.Table(["1 step 1"]), 1)
    tap.check("say what goes wrong" in why_not, "a reason that lacks is no bug")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        bench.lost("int broken")
        where = "not built: int3.c:1:"
        tap.equal(
            bench.verdicts[0].why[: len(where)],
            where,
            "the words of a compiler name the file",
        )


def where_it_ended_is_told():
    with tempfile.TemporaryDirectory() as folder:
        bench, solution = Bench(folder), read(SOLUTION)
        bench.lost(solution)
        head = "void breakpoint_set(struct breakpoint *bp)\n{\n"
        at = solution[: solution.index(head)].count("\n") + 3
        for code, seconds, why in (
            (
                "*(volatile int *)16 = 1;",
                5,
                f"it was ended by SIGSEGV, in breakpoint_set(), "
                f"int3.c:{at}: address 0x10, where no memory is",
            ),
            (
                "((void (*)(void))0x7000)();",
                5,
                "it was ended by SIGSEGV, in no function, at "
                "0x7000: address 0x7000, where no memory is",
            ),
            (
                "*(volatile char *)breakpoint_set = 1;",
                5,
                "it was ended by SIGSEGV, in "
                f"breakpoint_set(), int3.c:{at}: address 0x",
            ),
            (
                "__builtin_ia32_pause(); for (;;) ;",
                0.5,
                f"it did not end within 0.5 s, in breakpoint_set(), int3.c:{at}",
            ),
        ):
            _, said = bench.printed(solution.replace(head, head + code + "\n"), seconds)
            tap.check((said or "").startswith(why), f"{code} is told: {said}")


def the_sample_is_what_is_printed():
    """docs/labs/README.md shows the output for a solution that forgets pushf."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        forgets = next(w for w in wrong.of_people(LAB) if w.name == "pushf-with-tf")
        with open(os.path.join(folder, "int3.c"), "w", encoding="utf-8") as file:
            file.write(forgets.files["int3.c"])
        bench.workshop.build_answer(folder)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            verdicts = grade.grade(bench.workshop, folder, 2020)
            next(v for v in verdicts if v.why).show(3, 2020)
        sample = textwrap.indent(shown.getvalue(), "    ")
        tap.check(
            sample in read(os.path.join(ROOT, "docs/labs/README.md")),
            f"the sample of docs/labs/README.md:\n{sample}",
        )


def a_program_with_traps_runs_under_gdb():
    """Run the gdb command that grade shows. The solution has the same facts
    as without gdb.
    """
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        bench.lost(read(SOLUTION))
        words = shlex.split(bench.workshop.how_to_debug("hit", 7, 0))
        done = subprocess.run(
            [words[0], "-batch", *words[1:3], "-ex", "through run", *words[3:]],
            capture_output=True,
            text=True,
            check=False,
        )
        facts = bench.workshop.run_case(bench.workshop.truth, "hit", 7, 0)[0]
        tap.check(
            facts and set(facts) <= set(done.stdout.splitlines()), "gdb lets it run"
        )
        if not set(facts) <= set(done.stdout.splitlines()):
            tap.note(done.stdout + done.stderr)


def a_signal_handler_under_gdb():
    """With SA_NODEFER gdb can stop in the handler. Without it, the program ends, and
    gdb says why.
    """
    with tempfile.TemporaryDirectory() as folder:
        bench, solution = Bench(folder), read(SOLUTION)
        for text in (
            solution,
            solution.replace("SA_SIGINFO", "SA_SIGINFO | SA_NODEFER"),
        ):
            tap.equal(bench.lost(text), [], "it has every point")
            words = shlex.split(bench.workshop.how_to_debug("hit", 7, 0))
            more = ["-ex", "break on_trap", "-ex", "through run"]
            more += ["-ex", "through continue"] * 3
            done = subprocess.run(
                [words[0], "-batch", *words[1:3], *more, *words[3:]],
                capture_output=True,
                text=True,
                check=False,
            )
            said = done.stdout + done.stderr
            stops = said.count("\nBreakpoint 1, on_trap")
            ends = said.count("With SA_NODEFER in its sa_flags")
            tap.equal(
                (stops > 1, ends),
                (text != solution, text == solution),
                f"{stops} stops in a handler of SIGTRAP",
            )
            tap.check("Python Exception" not in said, "gdb tells of no error of its own")


def a_device_that_is_full():
    """If a build fails because a device is full, the student does not lose points for it."""
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from docs.labs.host import grade
from sonde.building import HostError
shop = grade.Workshop({LAB!r}, {ROOT!r}, sys.argv[1] + "/built")
shop.build_ours()
with open(sys.argv[1] + "/fill", "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError:
        pass
try:
    print([v.why for v in grade.grade(shop, {os.path.dirname(SOLUTION)!r}, 7)])
except HostError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as folder:
        small = 'mount -t tmpfs -o size=16M none "$1" && exec "$2" -c "$3" "$1"'
        words = [
            "unshare",
            "-rm",
            "sh",
            "-c",
            small,
            "sh",
            folder,
            sys.executable,
            script,
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "unshare" in done.stderr or "mount" in done.stderr:
            tap.skip("a device that is full", done.stderr.strip())
            return
        tap.equal(
            done.stdout + done.stderr,
            f"no space is left on the device of {folder}/built\n",
            "is told",
        )


def sonde(*words):
    program = os.path.join(ROOT, "sonde")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def what_the_commands_say():
    with tempfile.TemporaryDirectory() as home:
        os.environ["SONDE_LABS"] = home
        path = os.path.join(home, LAB)
        status, _, said = sonde("grade", "3")
        refused = f"sonde: there is no folder {path}; begin with: ./sonde lab 3\n"
        tap.equal((status, said), (2, refused), "no folder yet")
        tap.equal(sonde("lab", "77")[0], 2, "no such lab")
        status, shown, _ = sonde("lab", "3")
        tap.equal(status, 0, "lab")
        is_task = shown.startswith("# A breakpoint")
        tap.check(is_task and path in shown, "shows task and folder")
        hints_are_closed(shown)
        with open(os.path.join(path, "int3.c"), "a", encoding="ascii") as file:
            file.write("/* mine */\n")
        status, shown, _ = sonde("lab", "1")
        bomb = os.path.join(home, "bomb")
        tap.check(
            f" {bomb}/bomb.o " in shown and "~/sonde-labs" not in shown,
            "a task names the folder that is used",
        )
        program, early = os.path.join(ROOT, "sonde"), os.path.join(home, "early")
        subprocess.run(
            f"{program} lab 1 early | true",
            shell=True,
            cwd=home,
            check=False,
            stderr=subprocess.DEVNULL,
        )
        tap.check(
            os.path.exists(os.path.join(early, "bomb.o")),
            "the folder is made here, although no one reads the task",
        )
        with open(os.path.join(bomb, "seed"), "w", encoding="ascii") as file:
            file.write("5\n")
        status, _, said = sonde("grade", "1", "--seed", "6")
        tap.check(
            status == 2 and "is of seed 5: leave --seed 6 away" in said, said.strip()
        )
        sonde("lab", LAB)
        kept = read(os.path.join(path, "int3.c")).endswith("mine */\n")
        tap.check(kept, "the student's file stays")
        grade_in(path)


def hints_are_closed(task):
    """A task has only the titles of its hints. `--hint` shows one."""
    tap.check(
        "- `./sonde lab 3 --hint 1`: " in task and "<details>" not in task,
        "the hints are closed",
    )
    shown = sonde("lab", "3", "--hint", "2")[1]
    tap.check(
        shown.startswith("**Hint 2: ") and "Hint 3" not in shown, "one can be opened"
    )
    tap.equal(sonde("lab", "3", "--hint", "4")[0], 2, "no such hint")
    tap.equal(sonde("lab", "--hint", "1")[0], 2, "a hint of no lab")
    words = ["script", "-qc", os.path.join(ROOT, "sonde") + " lab 3", "/dev/null"]
    shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    tap.check(
        "\x1b[" in shown and "](" not in shown,
        "on a terminal lowdown prints it",
    )


def compile_errors_are_told_once():
    with tempfile.TemporaryDirectory() as path:
        with open(os.path.join(path, "int3.c"), "w", encoding="ascii") as file:
            file.write("int broken")
        status, shown, _ = sonde("grade", "--tree", "3", path)
        tap.equal(status, 1, "files that do not compile")
        tap.check(shown.count("error:") == 1 and "not ok" not in shown, shown)
        end = "Your files cannot be built, so no case was run.\nScore: 0/20\n"
        tap.check(shown.endswith(end), "and one sentence")
        tap.check(f", the files in {path}\n" in shown, "the folder is named")


def grade_in(path):
    status, shown, _ = sonde("grade", "--tree", "3", "--seed", "5", path)
    tap.equal(
        (status, shown.split("\n")[-2]), (1, "Score: 0/20"), "the start has no points"
    )
    tap.check("\nnot ok pushf: 0 of 3 points\n" in shown, "each line is shown")
    tap.check(
        "again: ./sonde grade 3 --seed 5 --case 10\n" in shown, "and what to do next"
    )
    status, shown, _ = sonde("grade", "3", "--tree", "--seed", "5", "--case", "10")
    tap.equal(status, 1, "a case that fails")
    named = shown.startswith("# seed 5, case 10: step: ")
    tap.check(named and "under gdb: gdb -x " in shown, "is shown")
    status, shown, _ = sonde(
        "grade", "3", "--tree", "--seed", "5", "--case", "10", "--json"
    )
    found = json.loads(shown)
    tap.equal((status, found["name"], found["case"]), (1, "step", 10), "the same as JSON")
    tap.check(found["why"] and len(found["right"]) > len(found["got"]), "with its facts")
    tap.equal(sonde("grade", "3", "--tree", "--case", "999")[0], 2, "no such case")
    with open(os.path.join(path, "int3.c"), "w", encoding="ascii") as file:
        file.write(read(SOLUTION))
    status, shown, _ = sonde("grade", "3", "--tree", "--json")
    tap.equal((status, json.loads(shown)["score"]), (0, 20), "the solution, as JSON")
    with open(os.path.join(path, "int3.c"), "a", encoding="ascii") as file:
        file.write("static int unused;\n")
    words = [os.path.join(ROOT, "sonde"), "grade", "3", "--tree"]
    two = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate() for process in two]
    tap.check(all(out.endswith("\nScore: 20/20\n") for out, _ in said), "two at a time")
    waits = "sonde: waiting for the end of another grading of int3\n"
    tap.equal(sorted(err for _, err in said), ["", waits], "one waits for the other")
    tap.check(
        all("[-Wunused-variable]" in out for out, _ in said),
        "the compiler's warning is shown",
    )


def the_grader_is_of_the_commit():
    """Grade in a clone with an easier rubric in its working tree: it counts
    only by --tree.
    """
    with tempfile.TemporaryDirectory() as folder:
        clone = os.path.join(folder, "clone")
        words = ["git", "clone", "-q", "--depth", "1", "file://" + ROOT, clone]
        subprocess.run(words, check=True)
        changed = os.path.join(clone, "docs/labs", LAB, "rubric")
        if not os.path.exists(changed):
            tap.check(False, "this lab is not in the commit yet")
            return
        with open(changed, "w", encoding="ascii") as file:
            file.write("20 hit 0 nothing\n")
        program = [os.path.join(clone, "sonde"), "grade", "3", os.path.dirname(START)]
        for option, last in (([], "Score: 0/20"), (["--tree"], "Score: 20/20")):
            words = [*program, *option]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            tap.equal(done.stdout.split("\n")[-2:-1], [last], f"grade {' '.join(option)}")


def a_tree_without_a_commit():
    """Where there is no repository, the files of the tree are taken, and that is said."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(
        grade, "ROOT", folder
    ), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            taken = grade.committed(os.path.join(folder, "tree"))
        except HostError as error:
            taken = error
        tap.equal(taken, folder, "the grader is that of the tree")
        tap.check("no commit is here" in said.getvalue(), "which is said")
        os.mkdir(os.path.join(folder, ".git"))
        try:
            taken = grade.committed(os.path.join(folder, "tree"))
        except HostError as error:
            taken = str(error)
        tap.check("git says: fatal: " in taken, "where git refuses, its words are told")


tap.run(
    submissions_that_misbehave,
    keys_may_be_written_so,
    each_caller_of_a_bomb_calls,
    a_difference_is_told,
    where_it_ended_is_told,
    the_sample_is_what_is_printed,
    a_device_that_is_full,
    a_program_with_traps_runs_under_gdb,
    a_signal_handler_under_gdb,
    what_the_commands_say,
    compile_errors_are_told_once,
    the_grader_is_of_the_commit,
    a_tree_without_a_commit,
)
