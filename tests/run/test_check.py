"""test_check.py - tests of ./sonde check with a fake guest: verdicts, status, reports."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import tap
from fake import load_launcher, run_launcher, with_fake_qemu
from sonde import options as values
from sonde.transcript import OPTIONS

ENOUGH = "8"  # seconds in which a guest is ready, even on a busy host


def check(text, *options):
    """Check a transcript: (status, lines of standard output, standard error)."""
    status, out, err = run_launcher("check", *options, "-", stdin=text.encode())
    return status, out.decode().splitlines(), err


LOGGED = "sonde> log hello\n[    9.999999] C0: hello\n"
# These wait for time limits. All of them begin with the test, and other checks run meanwhile.
WAITING = {
    "no end": ("sonde> forever\nsonde> say a\na\n", "--timeout", ENOUGH),
    "hangs": ("sonde> hang\nsonde> say a\na\n", "--timeout", ENOUGH),
    "another line": (LOGGED.replace("C0: hello", "C0: bye"),),
}
begun = {}


def begin_waiting(pool):
    for name, arguments in WAITING.items():
        begun[name] = pool.submit(check, *arguments)


def verdicts(lines):
    return [line for line in lines if line.startswith(("ok", "not ok", "1.."))]


def output_is_compared():
    status, lines, err = check("sonde> say a b\na ...\nsonde> lines 3\n0\n...\n")
    want = ["ok 1 - -:1: sonde> say a b", "ok 2 - -:3: sonde> lines 3", "1..2"]
    tap.equal((status, verdicts(lines), err), (0, want, ""), "all as shown: 0")
    status, lines, _ = check("sonde> say a b\na c\nsonde> say d\nd\n")
    want = ["not ok 1 - -:1: sonde> say a b", "ok 2 - -:3: sonde> say d", "1..2"]
    tap.equal((status, verdicts(lines)), (1, want), "a difference: 1, and it goes on")
    want = ["# expected, -:2: a c", "# got: a b", "# all that came:", "# | a b"]
    tap.equal(lines[1:5], want, "expected and got")
    tap.equal(
        lines[-2], "# 2 commands: 1 as shown, 1 different, 0 not run", "and counted"
    )


def files_are_read():
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        file.write(b"sonde> lines 2\r\r\n0\r\r\n1\r\r\nsonde> bare \xe9\r\r\n\\xe9\r\r\n")
        file.flush()
        status, out, _ = run_launcher("check", file.name)
    tap.equal((status, out.count(b"ok ")), (0, 2), "with the ends of lines of a terminal")


def a_failure_is_shown_or_told():
    status, _, _ = check("sonde> fail 2 ENOENT\nno such thing\n")
    tap.equal(status, 0, "a failure that is shown is as shown")
    status, lines, _ = check("sonde> fail 2 ENOENT\n...\n")
    tap.check(status == 1 and "2 ENOENT" in lines[1], "three dots do not hide one")
    status, lines, _ = check("$ ./sonde exec 'fail 2 ENOENT'\n...\n")
    tap.check(status == 1 and "status 1" in lines[1], "nor a status of ./sonde")


def a_session_is_a_file():
    ends = "sonde> poweroff\nsonde> exit\nsonde> reboot\n"
    status, _, _ = check(ends + "sonde> say a\na\n")
    tap.equal(status, 0, "a guest that was told to end is followed by another")
    status, lines, _ = check("sonde> reset\nsonde> say a\na\n")
    tap.equal((status, len(verdicts(lines))), (1, 3), "one that ends by itself is not")
    text = "sonde> say a\na\nsonde> panic\nsonde> say b\nb\n"
    text += "$ ./sonde run\nboot\nsonde> say c\nc\n"
    status, lines, _ = check(text)
    found = verdicts(lines)
    tap.equal(
        [line.split(" - ")[0] for line in found],
        ["ok 1", "not ok 2", "not ok 3", "not ok 4", "ok 5", "1..5"],
        "behind a panic all fails up to the next ./sonde run, below which a line is shown",
    )
    tap.check("# the kernel panicked, in 'panic'" in lines, "the panic is named")
    tap.check("# | panic: asked for" in lines, "with its report")
    tap.check(
        "# not run: the kernel panicked, in 'panic' (-:3)" in lines, "and its place"
    )
    text = "$ ./sonde run --smp many\nsonde> say a\na\n$ ./sonde run\n...\n"
    status, lines, _ = check(text)
    found = [line.split(" - ")[0] for line in verdicts(lines)]
    tap.equal(found, ["not ok 1", "not ok 2", "ok 3", "1..3"], "options that are refused")


def commands_of_the_host():
    status, lines, _ = check("$ ./sonde exec 'say a' \\\n  'say b'\na\nb\n")
    tap.equal((status, len(verdicts(lines))), (0, 2), "./sonde exec")
    complaint = "sonde: 'fail 2 ENOENT' failed: 2 ENOENT"
    status, _, _ = check(f"$ ./sonde exec 'fail 2 ENOENT'\nno such thing\n{complaint}\n")
    tap.equal(status, 0, "what it complains of is output, too")
    text = "$ make run\n...\nsonde> say a\na\n$ ./sonde exec a | cat\nsonde> \3x\n"
    status, lines, _ = check(text)
    want = [
        "ok 1 - -:1: $ make run # SKIP not a command of ./sonde",
        "ok 2 - -:3: sonde> say a",
        "ok 3 - -:5: $ ./sonde exec a | cat # SKIP it needs the host's shell",
        "ok 4 - -:6: sonde> \3x # SKIP a request is one line, without Ctrl-C",
        "1..4",
    ]
    tap.equal((status, verdicts(lines)), (0, want), "what is not run is named")
    tap.equal(
        lines[-2], "# 4 commands: 1 as shown, 0 different, 3 not run", "and counted"
    )


PYTHON = "open('{}', 'w').write('x')"
# Commands by which a transcript could write {}, a file.
HARMFUL = (
    f'python -c "{PYTHON}"',
    "exec --log {} 'say a'",
    "exec --lo={} 'say a'",
    "run --log {}",
    "run --qemu '-D {}'",
    "record {} 'say a'",
    "film svg poke -o{}",
    "check --junit={} README.md",
    "lab int3 {}",
)
NAMES_A_FILE = (values.output_file, values.new_socket, values.words, values.input_file)


def a_transcript_of_a_stranger_does_no_harm():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        text = "".join(f"$ ./sonde {one.format(path)}\n" for one in HARMFUL)
        status, lines, _ = check(text + "sonde> say a\na\n")
        tap.equal(os.listdir(folder), [], "no file is written")
    told = [line for line in lines if line.endswith("is not for transcripts")]
    tap.equal((status, len(told)), (0, len(HARMFUL)), "each command is named as not run")
    named = {
        option
        for parser in load_launcher().make_parser()[1].values()
        for action in parser._actions
        for option in action.option_strings
        if action.type in NAMES_A_FILE
    }
    tap.equal(named & OPTIONS, set(), "no option names a file")


def nothing_to_run_is_no_success():
    for text in ("", "text\n", "$ make run\n"):
        status, lines, err = check(text)
        tap.check(
            status == 2 and not lines and "no command to run" in err,
            f"{text!r}: status 2",
        )
    status, _, err = run_launcher("check", "/does/not/exist")
    tap.check(status == 2 and "/does/not/exist" in err, "so has a file that is not there")
    status, _, _ = run_launcher("check")
    tap.equal(status, 2, "and no file at all")


def a_command_without_end():
    status, lines, _ = begun["no end"].result()
    want = ["not ok 1 - -:1: sonde> forever", "ok 2 - -:2: sonde> say a", "1..2"]
    tap.equal(
        (status, verdicts(lines)), (1, want), "is stopped, and the rest has its guest"
    )
    tap.check(
        lines[1] == f"# does not end within {ENOUGH} s; stopped by Ctrl-C", "by Ctrl-C"
    )
    status, lines, _ = check(
        "$ ./sonde exec forever\nsonde> say a\na\n", "--timeout", "1"
    )
    tap.equal((status, lines[1]), (1, "# does not end within 1 s"), "of the host, too")


def a_guest_that_hangs():
    status, lines, _ = begun["hangs"].result()
    found = [line.split(" - ")[0] for line in verdicts(lines)]
    tap.equal((status, found), (1, ["not ok 1", "not ok 2", "1..2"]), "the rest fails")
    why = f"# not run: no answer within {ENOUGH} s, in 'hang' (-:1)"
    tap.check(why in lines, "and says why")
    os.environ["FAKE"] = "silent"
    status, lines, _ = check("sonde> say a\na\nsonde> say b\nb\n", "--timeout", "1")
    del os.environ["FAKE"]
    found = [line.split(" - ")[0] for line in verdicts(lines)]
    tap.equal((status, found), (1, ["not ok 1", "not ok 2", "1..2"]), "no prompt at all")


def lines_of_the_log():
    tap.equal(check(LOGGED)[0], 0, "one on the console, as a terminal shows it")
    tap.equal(begun["another line"].result()[0], 1, "another one")
    tap.equal(check("sonde> log hello\n")[0], 0, "one that is not shown")
    shown = "sonde> say [ 1.5] C0: a\n[ 2.5] C1: a\n"
    tap.equal(check(shown)[0], 0, "one that a command has printed")


def junit_is_written():
    text = "sonde> say <a>&\n<b>\nsonde> say \x02\n\\x02\n$ make\n"
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        status, _, _ = check(text, "--junit", file.name)
        root = ElementTree.parse(file.name).getroot()
    refused = check(text, "--junit", "/does/not/exist")
    tap.equal(
        refused[:2], (2, []), "a report that cannot be written: before anything runs"
    )
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    tap.equal(status, 1, "the status is as without")
    tap.equal(
        [suite.get(name) for name in ("tests", "failures", "skipped")],
        ["3", "2", "1"],
        "the suite is counted",
    )
    tap.equal(
        cases[0].get("name"), "-:1: sonde> say <a>&", "a case has the command's name"
    )
    tap.equal(cases[0].find("failure").get("message"), "expected, -:2: <b>", "and why")
    tap.check("got: <a>&" in cases[0].find("failure").text, "and what came")
    tap.check(cases[2].find("skipped") is not None, "what is not run is skipped")


def any_text_is_xml():
    """Parsers refuse some characters, and UTF-8 has none for a byte of a file's name."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder.encode(), b"t\xff.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sonde> say a\n\ufffe \uffff\n$ make \x02\n$ ./sonde \uffff\x03\n")
        report = os.path.join(folder, "report.xml")
        status, _, err = run_launcher("check", path, "--junit", report)
        cases = ElementTree.parse(report).getroot().find("testsuite").findall("testcase")
    tap.equal((status, err, len(cases)), (1, "", 3), "the report can be read")
    tap.equal(cases[0].get("file"), f"{folder}/t\\udcff.txt", "a byte in a name")
    tap.check("\\ufffe \\uffff" in cases[0].find("failure").text, "what is no character")


def standard_input_is_read_once():
    done = run_launcher("check", "--list", "-", "-", stdin=b"sonde> say a\n")
    tap.equal(done, (0, b"-:1: sonde> say a\n", ""), "a second - finds nothing")
    done = run_launcher("exec", "-f-", "-f", "-", "say b", stdin=b"say a")
    tap.equal(done, (0, b"b\na\n", ""), "of exec as well")


def a_list_runs_nothing():
    os.environ["FAKE"] = "broken"
    status, lines, _ = check("$ make\nsonde> say a\nb\n", "--list")
    del os.environ["FAKE"]
    want = ["-:1: $ make  (not run: not a command of ./sonde)", "-:2: sonde> say a"]
    tap.equal((status, lines), (0, want), "--list")
    tap.equal(check("$ make\n", "--list")[0], 2, "2 when there is nothing to run")


def main():
    with ThreadPoolExecutor(len(WAITING)) as pool:
        begin_waiting(pool)
        tap.run(
            output_is_compared,
            files_are_read,
            a_failure_is_shown_or_told,
            a_session_is_a_file,
            commands_of_the_host,
            a_transcript_of_a_stranger_does_no_harm,
            nothing_to_run_is_no_success,
            lines_of_the_log,
            junit_is_written,
            any_text_is_xml,
            standard_input_is_read_once,
            a_list_runs_nothing,
            a_command_without_end,
            a_guest_that_hangs,
        )


with_fake_qemu(main)
