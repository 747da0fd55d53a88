"""test_class.py - tests ./sonde class: handing out, collecting, and attempts to misuse
both. The class is tests/labs/roster.csv with tests/labs/handed-in.
"""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import warnings
import zipfile

import tap
from docs.labs.host import classroom, confine, grade, labs
from fake import heed_interrupts, is_gone
from sonde import exits
from sonde.building import HostError
from sonde.guest import ROOT

HERE = os.path.join(ROOT, "tests", "labs")
GRADERS = os.path.join(ROOT, labs.GRADERS)
ROSTER = os.path.join(HERE, "roster.csv")


def sonde(*words):
    words = [os.path.join(ROOT, "sonde"), "class", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def scores(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {
            row["id"]: {
                lab: n for lab, n in row.items() if n and lab not in ("id", "why")
            }
            for row in csv.DictReader(file)
        }


def each_0_has_a_reason(path):
    with open(path, encoding="utf-8", newline="") as file:
        silent = [
            r["id"] for r in csv.DictReader(file) if r["sum"] == "0" and not r["why"]
        ]
    tap.equal(silent, [], "students with 0 points and without a reason")


def what_is_handed_in_is_graded():
    """ben's answer counts without nesting, eve's answer hangs, and fay hands in the keys
    of ada's bomb. The test adds gus, with a zip file and with a link to the solution.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy, roster = os.path.join(folder, "in"), os.path.join(folder, "roster.csv")
        shutil.copytree(os.path.join(HERE, "handed-in"), copy)
        shutil.copy(ROSTER + ".secret", roster + ".secret")
        shutil.copy(ROSTER, roster)
        with open(roster, "a", encoding="utf-8") as file:
            file.write("gus,Gus Example\n")
        with zipfile.ZipFile(os.path.join(copy, "gus.zip"), "w") as packed:
            solution = os.path.join(GRADERS, "reenter/solution/reenter.c")
            packed.write(solution, "reenter/reenter.c")
            packed.writestr("bomb/../../keys", "outside")
        os.makedirs(os.path.join(copy, "gus/int3"))
        os.symlink(
            os.path.join(GRADERS, "int3/solution/int3.c"),
            os.path.join(copy, "gus/int3/int3.c"),
        )
        output = os.path.join(folder, "grades.csv")
        status, said, error = sonde(roster, "--collect", copy, "-o", output)
        link = os.path.join(copy, "gus/int3/int3.c")
        told = (
            "sonde: class: gus: handed in more than once: gus, gus.zip; of each "
            "lab, the first with a file of it is used\n"
            "sonde: class: gus: not taken, since it leads elsewhere: "
            "gus.zip/bomb/../../keys\n"
            f"sonde: class: gus, int3: not taken: {link} is a link, or stands behind one\n"
        )
        tap.equal((status, error), (1, told), "collect")
        tap.check(
            re.fullmatch(r"5 students in \d+ s: .*grades.csv\n", said), said.strip()
        )
        tap.equal(
            scores(output),
            {
                "ada": {"bomb": "20", "sum": "20"},
                "ben": {"reenter": "4", "sum": "4"},
                "eve": {"reenter": "0", "sum": "0"},
                "fay": {"bomb": "0", "sum": "0"},
                "gus": {"reenter": "20", "sum": "20"},
            },
            "the points of each",
        )
        each_0_has_a_reason(output)
        tap.check(not os.path.exists(os.path.join(folder, "keys")), "nothing is unpacked")


def what_is_no_file_of_the_student():
    """A link or another thing that is no regular file is not taken, and the reason is
    told. So a student cannot hand in the work of another student.
    """
    with tempfile.TemporaryDirectory() as folder:

        def path(*names):
            os.makedirs(os.path.join(folder, *names[:-1]), exist_ok=True)
            return os.path.join(folder, *names)

        def said(student, lab="int3"):
            with tempfile.TemporaryDirectory() as scratch:
                sentences = classroom.find(folder, student)[1]
                try:
                    taken = classroom.take(folder, student, lab, scratch + "/x")
                except classroom.NotTaken as error:
                    return str(error)
                return ", ".join(sentences) or taken

        with open(path("ann", "int3", "int3.c"), "w", encoding="ascii") as file:
            file.write("hers\n")
        os.symlink(path("ann", "int3"), path("bob", "int3"))
        os.symlink(path("ann"), path("cid"))
        os.symlink("/no/such", path("dan", "int3", "int3.c"))
        os.mkfifo(path("eve", "int3", "int3.c"))
        os.mkdir(path("fay", "int3", "int3.c"))
        tap.equal((said("ann"), said("zoe")), (True, False), "a file, and none")
        for student, wanted in {
            "bob": "bob/int3 is a link",
            "cid": "cid is a link",
            "dan": f"{folder}/dan/int3/int3.c is a link, or stands behind one",
            "eve": f"{folder}/eve/int3/int3.c is no regular file",
            "fay": "nothing is taken: there is no file",
        }.items():
            tap.equal(said(student), wanted, f"{student}: no file")
        if os.getuid():
            os.chmod(path("ann", "int3", "int3.c"), 0)
            tap.check(
                said("ann").endswith("int3.c: Permission denied"), "an unreadable file"
            )
        the_zip_is_damaged(path("gus.zip"), lambda: said("gus"))


def the_zip_is_damaged(path, said):
    def pack(name):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(name, "line\n" * 1000)
        with open(path, "rb") as file:
            return file.read()

    pack("int3/other.c")
    wanted = "not taken, since no file of a lab has such a name: gus.zip/int3/other.c"
    tap.equal(said(), wanted, "a zip file without the file")
    whole = pack("int3/int3.c")
    at = whole.index(b"int3.c") + len("int3.c")
    for what, data in (
        ("of other bytes", whole[:at] + b"\xff" * 8 + whole[at + 8 :]),
        ("cut short", whole[: len(whole) // 2]),
        (
            "locked with a password",
            whole[:6]
            + b"\x01"
            + whole[7:].replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"),
        ),
        ("empty", b""),
    ):
        with open(path, "wb") as file:
            file.write(data)
        told = re.match(r"gus.zip(/int3/int3.c)? cannot be read: .", str(said()))
        tap.check(told, f"{what}: {said()}")


def one_that_cannot_be_graded():
    """If a student cannot be graded, the other students still get their points, and the
    file of grades shows which points are not known.
    """
    shop_of = grade.workshop_of

    class Shop:
        def __init__(self, *_):
            self.lab, self.warned = "int3", []

        def build_ours(self):
            pass

        def close(self):
            pass

    def graded(_, target, __):
        if os.path.basename(target) in trouble:
            raise trouble[os.path.basename(target)]
        return []

    trouble = {"bob": HostError("no guest"), "cid": ValueError("40\n")}
    usual, grade.workshop_of, grade.grade = grade.grade, Shop, graded
    try:
        with tempfile.TemporaryDirectory() as folder:
            for student in ("ann", "bob", "cid"):
                os.makedirs(os.path.join(folder, student, "int3"))
                shutil.copy(
                    os.path.join(GRADERS, "int3/solution/int3.c"),
                    os.path.join(folder, student, "int3"),
                )
            seeds = {student: (1, 2) for student in ("bob", "cid", "ann", "zoe")}
            points, said = classroom.grade_some(
                "int3", None, folder + "/x", folder, seeds
            )
            numbers = {s: classroom.points_of(points[s]) for s in points}
            wanted = {"bob": "?", "cid": "?", "ann": 0, "zoe": None}
            tap.equal(numbers, wanted, "points")
            why = {"bob": "no guest", "cid": "ValueError: 40\\n"}
            wanted = [f"{one}, int3: not graded: {why[one]}" for one in why]
            tap.equal(said, wanted, "and why")
            rows = {student: {"int3": points[student]} for student in points}
            for row in rows.values():
                row.update({lab: None for lab in labs.NUMBERS if lab != "int3"})
            output = os.path.join(folder, "grades.csv")
            told = {student: [] for student in rows}
            classroom.write_grades(rows, told, output)
            tap.equal(scores(output)["bob"], {"int3": "?", "sum": "0"}, "in the file")
    finally:
        grade.workshop_of, grade.grade = shop_of, usual


def hand_ins_as_students_send_them():
    """Each form is found; what cannot be taken is named."""
    names = (
        "int3/int3.c",
        "eli/int3/int3.c",
        "int3.c",
        "Int3/INT3.c",
        "int3\\int3.c",
        "lab3/int3.c",
        "3/int3.c",
        "sonde-labs/int3/int3.c",
    )
    with tempfile.TemporaryDirectory() as folder:
        roster = os.path.join(folder, "roster.csv")
        there = os.path.join(folder, "in")
        os.mkdir(there)
        for i, name in enumerate(names):
            with zipfile.ZipFile(os.path.join(there, f"S{i}.zip"), "w") as packed:
                packed.writestr(name, "int x;\n")
                packed.writestr("__MACOSX/int3/._int3.c", "no\n")
            found, said = classroom.find(there, f"s{i}")
            tap.equal((list(found), said), ([("int3", "int3.c")], []), name)
            with tempfile.TemporaryDirectory() as scratch:
                target = os.path.join(scratch, "x")
                tap.check(classroom.take(there, f"s{i}", "int3", target), "is taken")
        os.makedirs(os.path.join(there, "s0/a/b"))
        with open(os.path.join(there, "s0/a/b/int3.c"), "w", encoding="ascii") as file:
            file.write("int x;\n")
        said = classroom.find(there, "s0")[1]
        tap.check(said and said[0].startswith("handed in more than once"), f"{said}")
        two = {"bugs/tests.c": "new", "bugs/tracer.c": "new"}
        hand_in(os.path.join(there, "s1"), {"bugs/tests.c": "old"}, two)
        found = classroom.find(there, "s1")[0]
        tap.equal(list(found), [("int3", "int3.c"), ("bugs", "tests.c")], "no mixture")
        with warnings.catch_warnings(), zipfile.ZipFile(
            os.path.join(there, "hal.zip"), "w"
        ) as packed:
            warnings.simplefilter("ignore")
            for text in ("first", "second"):
                packed.writestr("int3.c", text)
        found, said = classroom.find(there, "hal")
        wanted = "int3.c is there twice: the first, hal.zip/int3.c, is used"
        tap.check(said[0].startswith(wanted), said[0])
        tap.equal(found["int3", "int3.c"](), b"first", "and it is")
        with zipfile.ZipFile(os.path.join(there, "gus.zip"), "w") as packed:
            packed.writestr("notes.txt", "hello\n")
        tap.check("has such a name" in classroom.find(there, "gus")[1][0], "notes")
        with open(os.path.join(there, "dan.zip"), "wb") as file:
            file.write(b"PK")
        said = classroom.find(there, "dan")[1]
        tap.check(len(said) == 1 and "dan.zip cannot be read" in said[0], f"{said}")
        said = list(classroom.not_on_roster(there, ["s0", "gus", "dan"]))
        tap.check(said[0] == "S1.zip: not taken: the roster has no s1", said[0])
        for text in ("gus;Gus\ndan;Dan\n", "id;name\ngus;Gus\ndan;Dan\n", "gus\ndan\n"):
            with open(roster, "w", encoding="utf-8") as file:
                file.write(text)
            ids = classroom.read_roster(roster, {"gus", "dan"})
            tap.equal(ids, ["gus", "dan"], f"the roster {text!r}")
        for text in ("gus,Gus\ndan\n", "Student ID\ngus\ndan\n", "key,Name\ngus\ndan\n"):
            with open(roster, "w", encoding="utf-8") as file:
                file.write(text)
            ids = classroom.read_roster(roster)
            tap.equal(ids, ["gus", "dan"], f"handed out to {text!r}")


# ---- a class of all forms of hand-in

HURTS = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void hurt(int argc, char **argv)
{
    (void)argc, (void)argv;
    %s
}
"""
READS = 'if (open("%s", O_RDONLY) >= 0 || open("%s", O_RDONLY) >= 0) _exit(7);'
FILLS = """
static const char *const names[] = { "x", "/tmp/x", "/var/tmp/x", "/dev/shm/x", "/root/x" };
for (unsigned i = 0; i < 5; i++)
    if (open(names[i], O_WRONLY | O_CREAT, 0600) >= 0) _exit(7);
"""
FORKS = """
if (!strcmp(argv[3], "0"))
    for (pid_t child; (child = fork()) >= 0;)
        if (!child) for (;;) pause();
"""
POINTS = """
puts("ok one-byte: 3 of 3 points\\nScore: 20/20");
if (write(3, "the case has ended\\n", 19)) {}
"""


def forms(folder, right, wrong):
    """Yield (student, files in a folder, files in a zip file, points, words of the report).
    The points are None if nothing can be taken.
    """
    places = (
        "decode/decode.c",
        "lab4/decode.c",
        "4/decode.c",
        "decode.c",
        "Decode/DECODE.C",
        "me/decode/decode.c",
        "sonde-labs/decode/decode.c",
    )
    for i, place in enumerate(places):
        yield f"f{i}", {place: right if i % 2 else wrong}, None, 20 * (i % 2), ""
        yield f"z{i}", None, {place: wrong if i % 2 else right}, 20 - 20 * (i % 2), ""
    yield "back", None, {"decode\\decode.c": right}, 20, ""
    yield "mac", None, {
        "decode/decode.c": right,
        "__MACOSX/decode/._decode.c": "no",
    }, 20, ""
    yield "both", {"decode.c": right}, {"decode.c": wrong}, 20, "more than once"
    yield "twice", {"a/decode.c": right, "b/decode.c": wrong}, None, 20, "not twice/b/"
    yield "notes", {"notes.txt": "hello"}, None, None, "notes/notes.txt"
    yield "dent", None, b"PK\3\4 and no more", None, "cannot be read"
    yield "void", None, b"", None, "cannot be read"
    yield "zips", None, {"lab4.zip": zipped({"decode.c": right})}, 20, ""
    deep = zipped({"b.zip": zipped({"c.zip": zipped({"decode.c": right})})})
    yield "deep", None, deep, None, "not unpacked"
    yield "tar", {"decode.tar.gz": "x", "int3.7z": "x"}, None, None, "not unpacked"
    yield "root", None, {"/home/me/decode/decode.c": right}, 20, ""
    yield "link", None, zipped({"decode.c": "/etc/passwd"}, True), None, "is a link"
    yield "vast", None, b"PK\3\4" + b"x" * 2**26, None, "more than 67108864 bytes"
    yield "new", {
        "de\ncode.c": right,
        "a\nb/decode.c": right,
    }, None, 20, "new/de\\ncode.c"
    yield "cased", {
        "decode.c": right,
        "../Cased/decode.c": wrong,
    }, None, 0, "Cased, cased"
    yield "zip", {"decode.zip": zipped({"decode.c": right})}, None, 20, ""
    yield "some", {"decode.c": right, "int3 (2).c": right}, None, 20, "some/int3 (2).c"
    yield "text", {"decode.c.txt": right}, None, None, "text/decode.c.txt"
    yield "rar", {"decode.c": right, "int3.rar": "x"}, None, 20, "rar/int3.rar"
    yield "empty-folder", {"x/": ""}, None, None, "there is no file"
    yield "absent", None, None, None, "nothing was handed in"
    yield "umlaut", {"\xdcbung 4/decode.c": right}, None, 20, ""
    yield "latin", {b"\xdc/decode.c": right, "a/decode.c": right}, None, 20, "\\udcdc/"
    yield "lead", None, {
        "=1/../int3.c": right,
        "\n/../keys": "",
    }, None, ": lead.zip/=1/.."
    yield "error", {"decode.c": "int x = ;"}, None, 0, "error: expected expression"
    yield "zeros", {"decode.c": '#include "/dev/zero"'}, None, 0, "out of memory"
    yield "empty", {"decode.c": ""}, None, 0, "undefined reference"
    yield "large", {"decode.c": right + " " * 2**20}, None, 0, "more than 1048576 bytes"
    yield "bytes", {"decode.c": "\0\xff"}, None, 0, "cannot be built"
    yield "bom", {"decode.c": "\xef\xbb\xbf" + right}, None, 20, ""
    yield "lines", {"decode.c": right.replace("\n", "\r\n")}, None, 20, "Score: 20/20"
    other, secret = os.path.join(folder, "in/f1/lab4/decode.c"), folder + "/r.csv.secret"
    yield "reads", {"decode.c": HURTS % READS % (other, secret) + right}, None, 20, ""
    yield "fills", {"decode.c": HURTS % FILLS + right}, None, 20, ""
    yield "forks", {"decode.c": HURTS % FORKS + right}, None, 20, ""
    yield "prints", {"decode.c": HURTS % POINTS + wrong}, None, 0, "not ok one-byte"


def a_class_of_all_forms():
    """Each of more than 30 students has the points of the files, or a sentence that says why
    there are none. Only the long run grades so many.
    """
    if not tap.LONG:
        return
    right = os.path.join(GRADERS, "decode/solution/decode.c")
    wrong = os.path.join(labs.starting("decode"), "decode.c")
    with open(right, encoding="utf-8") as one, open(wrong, encoding="utf-8") as two:
        right, wrong = one.read(), two.read()
    with tempfile.TemporaryDirectory() as folder:
        students = list(forms(folder, right, wrong))
        for student, files, packed, _, _ in students:
            hand_in(os.path.join(folder, "in", student), files, packed)
        hand_in(os.path.join(folder, "in", "zoe"), {"decode.c": right}, None)
        roster, output = folder + "/r.csv", folder + "/grades.csv"
        with open(roster, "w", encoding="ascii") as file:
            file.write("id\n" + "".join(row[0] + "\n" for row in students))
        words = (roster, "--collect", folder + "/in", "-o", output, "--json")
        status, shown, told = sonde(*words)
        tap.equal(status, 1, "what could not be taken is told")
        tap.check("zoe: not taken: the roster has no zoe" in told, "a name of no student")
        tap.check("the same but for names: " in told, "equal ones")
        found, points = json.loads(shown)["students"], scores(output)
        empty = next(report for report in found if report["id"] == "empty")
        why = empty["labs"][0]["why"]
        tap.check("undefined reference to `insn_length'" in why, f"a 0 for that: {why}")
        each_0_has_a_reason(output)
        for (student, _, _, score, said), report in zip(students, found):
            wanted = {"sum": str(score or 0)}
            wanted.update({} if score is None else {"decode": str(score)})
            tap.equal(points[student], wanted, f"{student}: points")
            tap.equal(
                (report["id"], report["sum"]), (student, score or 0), "as JSON, too"
            )
            with open(f"{folder}/grades-reports/{student}.txt", encoding="utf-8") as file:
                text = file.read()
            tap.check(text and said in text, f"{student} is told: {said}")


def zipped(files, are_links=False):
    """Return the bytes of a zip file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            row = zipfile.ZipInfo(name)
            row.external_attr = (stat.S_IFLNK if are_links else stat.S_IFREG) << 16
            archive.writestr(row, content)
    return data.getvalue()


def hand_in(place, files, packed):
    """Make a folder with @files, and a zip file: of files, or of any bytes. A name that
    ends in a slash is a folder.
    """
    for name, content in (files or {}).items():
        path = os.path.join(os.fsencode(place), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, str):
            content = content.encode("latin-1", "replace")
        if not path.endswith(b"/"):
            with open(path, "wb") as file:
                file.write(content)
    if packed is not None:
        with open(place + ".zip", "wb") as file:
            file.write(packed if isinstance(packed, bytes) else zipped(packed))


# Two programs that never end, one of them a child of the other. They use no time of a CPU.
SLEEPS = """
#include <unistd.h>
__attribute__((constructor)) static void hang(void)
{
    fork();
    for (;;)
        pause();
}
void breakpoint_set(void) {}
void breakpoint_clear(void) {}
"""
WAIT = 30  # seconds
BUILD_WAIT = 300  # seconds; in a new tree the kernel is built before


def answers(folder, count, seconds=WAIT):
    """Wait until @count processes of the student's program run. Return their numbers."""
    for _ in range(seconds * 10):
        words = ["pgrep", "-f", f"^{folder}/.*/answer "]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        found = done.stdout.split()
        if len(found) == count:
            break
        time.sleep(0.1)
    return found


def a_signal_ends_the_grading():
    """A signal to the command, or the death of a process that grades, leaves no program of
    a student.
    """
    for number, of_worker in (
        (signal.SIGTERM, False),
        (signal.SIGINT, False),
        (signal.SIGKILL, False),
        (signal.SIGKILL, True),
    ):
        with tempfile.TemporaryDirectory() as folder:
            hand_in(os.path.join(folder, "in/ann"), {"int3.c": SLEEPS}, None)
            roster = os.path.join(folder, "roster.csv")
            with open(roster, "w", encoding="ascii") as file:
                file.write("id\nann\n")
            words = ["class", roster, "--collect", folder + "/in", "--jobs", "1"]
            process = subprocess.Popen(
                [os.path.join(ROOT, "sonde"), *words, "-o", folder + "/grades.csv"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(os.environ, TMPDIR=folder, GRADE_SCALE="100"),
                preexec_fn=heed_interrupts,
            )
            begun = answers(folder, 2, BUILD_WAIT)
            worker = confine.children(process.pid)[0]
            os.kill(worker if of_worker else process.pid, number)
            what = f"{number.name} to {'a worker' if of_worker else 'the command'}"
            try:
                process.communicate(timeout=WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
            tap.equal((len(begun), answers(folder, 0)), (2, []), f"{what}: none is left")
            for left in begun:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(left), signal.SIGKILL)
            ended = -number if number == signal.SIGKILL else 128 + number
            wanted = exits.HOST if of_worker else ended
            tap.equal(process.returncode, wanted, "and the exit status tells it")
            tap.check(is_gone(worker), "what graded is gone")


def a_terminal_that_is_closed():
    """The processes of the pool go on if the command does, as nohup asks."""
    for how, ends in ((signal.SIG_IGN, 0), (signal.SIG_DFL, 1)):
        process = os.fork()
        if not process:
            signal.signal(signal.SIGHUP, how)
            classroom.die_with_command()
            os.kill(os.getpid(), signal.SIGHUP)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        tap.equal(status, ends, f"a hangup, {how.name}")


def a_program_ends_with_its_grader():
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(shutil.which("sleep"), folder)
        grader = os.fork()
        if not grader:
            confine.run([program, "100"], 100, is_apart=True)
            os._exit(0)
        words = ["pgrep", "-f", f"^{program} 100"]
        found = ""
        for _ in range(WAIT * 10):
            found = subprocess.run(words, capture_output=True, check=False).stdout
            if found:
                break
            time.sleep(0.1)
        os.kill(grader, signal.SIGKILL)
        os.waitpid(grader, 0)
        tap.check(found and is_gone(int(found)), "a program that sleeps is gone")


def equal_but_for_names():
    def code(text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "x.c"), "w", encoding="ascii") as file:
                file.write(text)
            return classroom.without_names(folder)

    one = code("int a(int b) { return a(b - 1); } /* mine */")
    tap.equal(one, code("int f(int  x)\n{ return f(x - 1); }"), "other names")
    tap.check(one != code("int f(int x) { return x(f - 1); }"), "another program")


def each_student_has_a_seed():
    with tempfile.TemporaryDirectory() as folder:
        roster, out = os.path.join(folder, "class.csv"), os.path.join(folder, "out")
        with open(roster, "w", encoding="ascii") as file:
            file.write("id\nann\nbob\n")
        status, _, error = sonde(roster, "-o", out)
        tap.equal((status, error), (0, ""), "hand out")
        tap.equal(sorted(os.listdir(out)), ["ann.zip", "bob.zip"], "a file for each")
        mode = os.stat(roster + ".secret").st_mode
        tap.equal(mode & 0o77, 0, "the secret is the teacher's")
        secret = classroom.secret_of(roster)
        seeds = {}
        for student in ("ann", "bob"):
            with zipfile.ZipFile(os.path.join(out, student + ".zip")) as packed:
                names = packed.namelist()
                seeds[student] = int(packed.read("bomb/seed"))
                bomb = packed.read("bomb/bomb.o")
            tap.check(
                {"int3/int3.c", "int3/int3.h", "bomb/keys"} <= set(names), "has files"
            )
            tap.check(bomb[:4] == b"\x7fELF", "and a bomb")
            tap.equal(
                seeds[student],
                classroom.seed_of(secret, student, "bomb", "task"),
                "whose seed the secret gives",
            )
        tap.check(seeds["ann"] != seeds["bob"], "each has another one")
        again = classroom.seed_of(secret, "Ann", "bomb", "task")
        tap.equal(again, seeds["ann"], "an id keeps it in capital letters")
        cases = classroom.seed_of(secret, "ann", "bomb", "cases")
        tap.check(cases != seeds["ann"], "the cases have another one still")
        os.truncate(roster + ".secret", 0)
        status, _, error = sonde(roster, "-o", out)
        tap.check(status == 2 and "is empty" in error, "a secret that is none")


def what_is_no_class():
    with tempfile.TemporaryDirectory() as folder:
        roster = os.path.join(folder, "class.csv")
        for text in (
            b"id\n",
            b"id\n../up\n",
            b"id\nann\nann\n",
            b"id\n=1+1\n",
            b"id\n@x\n",
            b"id\n-2\n",
            b"id\n+3\n",
            b'id\n"a b"\n',
            b'id\n"a""b"\n',
            b"id\n'a'\n",
            b'id\n"a\nb"\n',
            b"id\nann,M\xfcller\n",
            "\xd6zge\nann\n".encode(),
            b"id\na\0b\n",
            b"",
        ):
            with open(roster, "wb") as file:
                file.write(text)
            status, out, error = sonde(roster)
            is_told = error.startswith(f"sonde: {roster}: ") and error.count("\n") == 1
            tap.check(
                (status, out) == (2, "") and is_told, f"a roster of {text!r}: {error}"
            )
        with open(roster, "wb") as file:
            file.write('\ufeffid,name\nann,"O\'Hara, =1+1"\n'.encode())
        tap.equal(classroom.read_roster(roster), ["ann"], "names may be anything")
        with open(roster, "w", encoding="ascii") as file:
            file.write("ada\n")
        words = ("--collect", os.path.join(HERE, "handed-in"), "-o", folder + "/x.csv")
        status, _, error = sonde(roster, *words)
        wanted = f"sonde: {roster}.secret is not there: "
        tap.check(status == 2 and wanted in error, f"no secret: {error}")
        tap.check(not os.path.exists(roster + ".secret"), "and none is made")
        status, _, error = sonde(roster, "--collect", HERE, "-o", "/no/such/grades.csv")
        wanted = "sonde: /no/such/grades.csv: there is no directory /no/such\n"
        tap.equal((status, error), (2, wanted), "grades that cannot be written")
        tap.equal(sonde(os.path.join(folder, "none"))[0], 2, "no roster")
        tap.equal(sonde()[0], 2, "nothing at all")
        tap.equal(
            sonde(ROSTER, "--collect", os.path.join(folder, "none"))[0], 2, "no folder"
        )


def guests_take_memory():
    status, said, _ = sonde("--guests", "2", "--memory", "64M")
    words = r"2 guests of 64M: at most (\d+) MB together, \d+ MB each .*\n"
    found = re.fullmatch(words, said)
    tap.check(status == 0 and found and 20 < int(found[1]) < 600, said.strip())


tap.run(
    what_is_handed_in_is_graded,
    what_is_no_file_of_the_student,
    one_that_cannot_be_graded,
    hand_ins_as_students_send_them,
    a_class_of_all_forms,
    a_signal_ends_the_grading,
    a_terminal_that_is_closed,
    a_program_ends_with_its_grader,
    equal_but_for_names,
    each_student_has_a_seed,
    what_is_no_class,
    guests_take_memory,
)
