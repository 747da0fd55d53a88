"""grade.py - gives points for a lab: builds the student's files, runs every case, and
compares the facts of a case with the facts of a program that is known to be right.
"""

import contextlib
import difflib
import fcntl
import glob
import importlib.util
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

from docs.labs.host import confine
from docs.labs.host import labs
from sonde import json_lines
from sonde.building import HostError, must_have_room
from sonde.guest import BUILD, ROOT
from sonde.options import UsageError

SEED_MAX = 2**31
TRAPPING = ("int3", "poke")  # labs with programs that have traps of their own
SHOWN_AROUND = 2  # right facts that are shown before and after a wrong one
CASE_SECONDS = 5  # for one case; the right answers take a few milliseconds
BUILD_SECONDS = 60
SCALE_MAX = 1000  # times more time
FILE_MAX = 2**20  # bytes of a student's file
PRINTED_MAX = 20000  # bytes of a program's output that are shown
# As grader.c has it: a program of a student may write other numbers, of any length.
ENDED = re.compile(r"ended: (\d{1,2}) (-?\d{1,10}) ([0-9a-f]{1,16}) ([0-9a-f]{1,16})")
CODE = re.compile(
    r"code .* at ([0-9a-f]+):((?: [0-9a-f]{2})+)"
)  # as boost/grader.c has it
ADDRESSES = {
    1: "where no memory is",
    2: "whose memory is not to be used so",
}  # by si_code
TRAPPED = ": a trap that no handler takes. Memory without code is full of int3"
NOT_BUILT = "not built: "  # begins the reason of each line if the files do not compile
RUNNING = "running "  # begins what is told while a line is graded
WRONG = "wrong: "  # as docs/labs/host/grader.h has it
SHARED = (
    "docs/labs",
    "docs/model",
    "probes/insn",
    "probes/jump",
    "kernel/base",
    "libc/include",
)

CC = ["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-g", "-O1", "-Wall", "-I.", "-pthread",
      "-fno-pie", "-fno-omit-frame-pointer", "-mno-red-zone",
      "-fcf-protection=none"]  # fmt: skip
NASM = ["nasm", "-f", "elf64", "-g", "-F", "dwarf", "-w-reloc-abs-dword"]
LINK = ["gcc", "-no-pie", "-pthread", "-Wl,-z,noexecstack"]
JOIN = ["ld", "-r"]
KEY_LEN, MARK_LEN, WORD = 16, 9, 2**64  # as grader.c has them
FOREIGN = "not from the grader: "  # in front of a fact whose mark is wrong
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def scale():
    """Return the factor by which this host gets more time, e.g. 3 by GRADE_SCALE=3."""
    try:
        factor = float(os.environ.get("GRADE_SCALE", "1"))
    except ValueError:
        factor = SCALE_MAX + 1
    if not abs(factor) <= SCALE_MAX:  # "nan" is refused, too
        raise UsageError(f"GRADE_SCALE is a number, at most {SCALE_MAX}")
    return max(factor, 1)


def file_in_memory():
    """Open a file in memory. It needs no room on a device, and is gone when it is closed."""
    return os.fdopen(os.memfd_create("case"), "w+b")


def mark_of(key, number, text):
    """Return the mark of a fact, as grader.c computes it."""
    total, last = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    total ^= number
    for i in range(0, len(text), 8):
        word = int.from_bytes(text[i : i + 8], "little")
        total = (total ^ word) * 0x9E3779B97F4A7C15 % WORD
        total ^= total >> 32
    total = (total + last) % WORD
    total = (total ^ total >> 30) * 0xBF58476D1CE4E5B9 % WORD
    total = (total ^ total >> 27) * 0x94D049BB133111EB % WORD
    return b"%08x " % ((total ^ total >> 31) >> 32)


def believed(written, key):
    """Yield the facts in a file that the grader's code has written with this key. The
    student's code may have written others, which are no facts.
    """
    for number, line in enumerate(written.removesuffix(b"\n").split(b"\n")):
        text = line[MARK_LEN:]
        if line[:MARK_LEN] == mark_of(key, number, text):
            yield text.decode(errors="replace")
        elif line:
            yield FOREIGN + line.decode(errors="replace")


class NotBuilt(Exception):
    """The student's files cannot be built; the text is from the compiler."""


def committed(path):
    """Copy the grader's files from the commit to @path, so that changes of a student in
    the tree have no effect. In a tree that has no commit, they are taken from the tree.
    """
    if not os.path.exists(os.path.join(ROOT, ".git")):
        print(
            "sonde: no commit is here, so the grader's files are taken as they are",
            file=sys.stderr,
        )
        return ROOT
    words = ["git", "-C", ROOT, "archive", "HEAD", "--", *SHARED]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise HostError(
            f"grade: the grader is taken from the commit, but git says: {said}"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(path)
    return path


def grader_failed(lab, where, why):
    """Return the HostError for a case in which the right answers fail."""
    more = "; on a slow machine GRADE_SCALE=3 gives more time" * (" within " in why)
    return HostError(f"grade: the grader of {lab}: {where}: {why}{more}")


class Workshop:
    """Builds programs of one lab in a folder of its own.

    tree: where the grader's files are
    """

    def __init__(self, lab, tree, folder):
        self.lab, self.tree, self.folder = lab, tree, os.path.abspath(folder)
        self.grader = os.path.join(tree, labs.GRADERS, lab)
        self.scale = scale()
        self.seconds = CASE_SECONDS * self.scale
        self.right = {}  # (line, seed, case): right facts
        self.printed = ""  # the output of the last case
        self.warned = []  # the compiler's warnings about the student's files
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def start(self):
        """The folder with the headers of the lab."""
        return labs.starting(self.lab, self.tree)

    @property
    def theirs(self):
        """The folder of the student's files and of the objects made from them."""
        return self.path("theirs")

    def compile(self, source, name):
        """Compile a file of the grader. Return the path of the object."""
        target = self.path(name + ".o")
        self.run(self.to_compile(source, target), self.folder, ("/",))
        return target

    def compile_theirs(self, source):
        """Compile a student's file. The compiler cannot read the grader's files."""
        target = source + ".o"
        words = self.to_compile(source, target)
        self.note_warnings(self.run(words, self.theirs, (self.start,)))
        return target

    def note_warnings(self, said):
        if said not in self.warned:
            self.warned.append(said)

    def to_compile(self, source, target):
        """Return the words of a command. The compiler looks for headers in the lab first."""
        if source.endswith(".asm"):
            return [*NASM, "-o", target, source]
        return [*CC, "-iquote", self.start, "-c", "-o", target, source]

    def run(self, words, writable, readable):
        """Run a compiler or linker. Return its messages. Raises NotBuilt if it fails."""
        with open(self.path("messages"), "w+b") as messages:
            ended = confine.run(
                words,
                BUILD_SECONDS * self.scale,
                output=messages,
                writable=(writable,),
                readable=readable,
                output_max=2**27,
                cwd=self.tree,
            )
            messages.seek(0)
            said = messages.read(PRINTED_MAX).decode(errors="replace")
            said = said.replace(self.theirs + "/", "")
        if ended.why:
            must_have_room(self.folder)
            raise NotBuilt(said or ended.why)
        return said

    @property
    def asked_for(self):
        """The names in the headers of the lab: what the student's files and the grader's
        have in common.
        """
        names = set()
        for header in glob.glob(os.path.join(self.start, "*.h")):
            with open(header, encoding="utf-8") as file:
                names.update(re.findall(r"\w+", COMMENT.sub("", file.read())))
        return names

    def joined(self, name, objects):
        """Join objects into one, in which all names are local but those that the headers
        of the lab have. So neither a function of the student's takes the place of one of
        the C library or of the grader, nor can the student's code call the grader's own.
        Remove the pointers to functions that run before grader.c takes its key.
        """
        target, kept = self.path(name + "-joined.o"), self.path("kept")
        names, words = self.asked_for, ["objcopy", "--keep-global-symbols=" + kept]
        if name == "theirs":
            words += ["--remove-section=.preinit_array*"]
        else:
            names.add("main")
        with open(kept, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(names)))
        self.run([*JOIN, "-o", target, *objects], self.folder, ())
        self.run([*words, target], self.folder, ())
        return target

    def link_both(self, name, theirs, ours):
        """Link a program of the student's objects and the grader's."""
        # The student's code comes first: at its end a function without `ret` meets ours.
        both = [self.joined("theirs", theirs), self.joined("ours", ours)]
        return self.link(name, both)

    def link(self, name, objects):
        self.run(LINK + ["-o", self.path(name), *objects], self.folder, ())
        return self.path(name)

    def ours(self, pattern):
        """Compile the grader's files that match @pattern. Return the objects."""
        sources = sorted(glob.glob(pattern, root_dir=self.tree))
        return [
            self.compile(os.path.join(self.tree, source), source.replace("/", "-"))
            for source in sources
        ]

    def build_ours(self):
        """Build the program with the right answers, and the one that makes the input, if
        the lab has one.
        """
        try:
            self.link_ours(f"{labs.GRADERS}/{self.lab}")
        except NotBuilt as error:
            raise HostError(f"grade: the grader of {self.lab}: {error}") from None

    def link_ours(self, lab):
        self.frame = self.ours("docs/labs/host/grader*.[ca]*")
        shared = self.ours(lab + "/shared.c")
        self.driver = self.ours(lab + "/grader.[ca]*") + shared
        right = "truth" if os.path.isdir(self.grader + "/truth") else "solution"
        makes_input = os.path.exists(self.grader + "/input.c")
        library = self.ours("probes/insn/*.c") if makes_input or right == "truth" else []
        self.truth = self.link(
            "truth",
            self.frame + self.driver + self.ours(f"{lab}/{right}/*.[ca]*") + library,
        )
        self.input = makes_input and self.link(
            "input", self.frame + self.ours(lab + "/input.c") + shared + library
        )

    def taken(self, handed_in, file):
        """Copy a student's file to the folder `theirs`. Only files that the lab asks for
        are there. Return the path of the copy.
        """
        source = os.path.join(handed_in, file)
        if not os.path.isfile(source):
            raise NotBuilt(f"{file}: there is no such file")
        if os.path.getsize(source) > FILE_MAX:
            raise NotBuilt(f"{file}: more than {FILE_MAX} bytes")
        os.makedirs(self.theirs, exist_ok=True)
        try:
            return shutil.copyfile(source, os.path.join(self.theirs, file))
        except OSError:
            must_have_room(self.folder)
            raise

    def build_answer(self, handed_in):
        """Build the program with the student's files. Raises NotBuilt."""
        objects = [
            self.compile_theirs(self.taken(handed_in, file))
            for file in labs.handed_in(self.lab, self.tree)
        ]
        self.answer = self.link_both("answer", objects, self.frame + self.driver)

    def run_case(self, program, line, seed, case, given=None):
        """Run one case. Return (facts, Ended). self.printed is then the output."""
        key = os.urandom(KEY_LEN)
        with file_in_memory() as facts, file_in_memory() as output:
            facts.write(key)
            facts.seek(0)
            ended = confine.run(
                [program, line, str(seed), str(case)],
                self.seconds,
                given or subprocess.DEVNULL,
                output,
                facts,
                is_apart=True,
            )
            facts.seek(0)
            output.seek(0)
            self.printed = output.read(PRINTED_MAX).decode(errors="replace")
            found = list(believed(facts.read(), key))
        last = [fact for fact in found if ENDED.fullmatch(fact)]
        if last and ended.why:
            ended.why += self.place_of(program, ENDED.fullmatch(last[0]))
        return [fact for fact in found if fact not in last], ended

    def place_of(self, program, last):
        """Return words for the place at which a program was when it ended, and for the
        address of a bad access. @last: the match of its last fact.
        """
        number, code = int(last[1]), int(last[2])
        with file_in_memory() as output:
            words = ["addr2line", "-fse", program, last[3]]
            confine.run(words, BUILD_SECONDS, output=output, readable=(program,))
            output.seek(0)
            said = output.read().decode(errors="replace").splitlines()
        name, line = [*said, "??", "??"][:2]
        where = f"in no function, at 0x{last[3]}" if name == "??" else f"in {name}()"
        where += "" if line.startswith("??") else f", {line.partition(' ')[0]}"
        if number in (signal.SIGSEGV, signal.SIGBUS) and code in ADDRESSES:
            return f", {where}: address 0x{last[4]}, {ADDRESSES[code]}"
        return f", {where}" + TRAPPED * (number == signal.SIGTRAP)

    def compare(self, line, seed, case):
        """Run a case of both programs. Return a Difference, or None."""
        given = self.make_input(line, seed, case) if self.input else None
        if (line, seed, case) not in self.right:
            self.right[line, seed, case] = self.run_ours(
                self.truth, line, seed, case, given
            )
        got, ended = self.run_case(self.answer, line, seed, case, self.again(given))
        want = self.right[line, seed, case]
        if got == want and not ended.why:
            return None
        return Difference(got, want, ended)

    def make_input(self, line, seed, case):
        """Return a file with the facts of the program that makes the input."""
        file = file_in_memory()
        made = self.run_ours(self.input, line, seed, case, None)
        file.write("\n".join(made[:-1] + [""]).encode())
        return file

    def run_ours(self, program, line, seed, case, given):
        """Run a case of a program of the grader. Return the facts. Raises HostError."""
        facts, ended = self.run_case(program, line, seed, case, self.again(given))
        why = ended.why or next((fact for fact in facts if fact.startswith(WRONG)), None)
        if why:
            raise grader_failed(self.lab, f"{line}, case {case}", why)
        return facts

    def how_to_debug(self, line, seed, case):
        """Return a shell command that debugs a case, or None."""
        words = ["--args", self.answer, line, str(seed), str(case)]
        if self.lab in TRAPPING:
            traps = os.path.join(ROOT, "kernel/host/gdb/pass_traps.py")
            words = ["-x", traps, "-ex", "handle SIGSEGV stop print", *words]
        return shlex.join(["gdb", *words])

    def note(self, line):
        """Return what is said of a line that is passed: nothing here."""
        return ""

    def close(self):
        """End what this object has started: nothing here, a guest in subclasses."""

    @staticmethod
    def again(given):
        if given:
            given.seek(0)
        return given


def own_grader(lab, tree):
    """Load the grader.py of a lab. Return the module; None: the lab has no grader.py."""
    path = os.path.join(tree, labs.GRADERS, lab, "grader.py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location(f"lab_{lab}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def workshop_of(lab, tree, folder):
    """Return the Workshop of a lab. A lab with a grader.py has its own class."""
    return getattr(own_grader(lab, tree), "Workshop", Workshop)(lab, tree, folder)


def begin(lab, path, seed=None):
    """Make a student's folder, with the files that the lab makes for each student. Return
    the names of new files.
    """
    new = labs.begin(lab, path)
    return new + (own_grader(lab, ROOT).begin(path, seed) if has_seeds(lab) else [])


def has_seeds(lab):
    """Does the task of the lab depend on a seed in the student's folder?"""
    return hasattr(own_grader(lab, ROOT), "begin")


def seed_of(lab, path):
    """Return the seed in a student's folder; None: there is none, or the lab needs none."""
    return own_grader(lab, ROOT).seed_of(path) if has_seeds(lab) else None


class Difference:
    """How the facts of a case differ. why: one line about the first wrong fact."""

    def __init__(self, got, want, ended):
        self.got, self.want = got, want
        if ended.why:
            self.why = ended.why
            return
        self.why = next(in_words(got, want), "that is no answer")


def aligned(got, want):
    """Return (facts that were found, difflib's opcodes). If there are very many facts,
    only the first ones are compared.
    """
    got = got[: 2 * len(want) + 100]
    matcher = difflib.SequenceMatcher(None, got, want, autojunk=False)
    return got, matcher.get_opcodes()


def wrong_fact(got, want):
    """Return a sentence about a fact "WHAT: VALUE" whose value is wrong."""
    what = os.path.commonprefix([got, want]).rpartition(": ")[0]
    if not what:
        return f"got: {got}; right: {want}"
    behind = len(what) + len(": ")
    return f"{what}: got {got[behind:]}; right {want[behind:]}"


def in_words(got, want):
    """Yield a sentence for each difference, in order."""
    got, parts = aligned(got, want)
    for kind, i, _, k, _ in parts:
        if kind == "replace":
            yield wrong_fact(got[i], want[k])
        elif kind == "delete":
            yield f"got: {got[i]}; right: nothing of that"
        elif kind == "insert" and i == len(got):
            yield f"it ended before it was done; right: {want[k]}"
        elif kind == "insert":
            yield f"missing: {want[k]}"


class Verdict:
    """The result of a line of the rubric. case: the number of the case that failed.
    note: what is said of a line that is passed
    """

    def __init__(self, line, case=None, why=None, note=""):
        self.line, self.case, self.why, self.note = line, case, why, note
        self.points = 0 if why else line.points

    def show(self, number, seed):
        points = f"{self.points} of {self.line.points} points"
        note = f" ({self.note})" if self.note else ""
        print(f"{'not ok' if self.why else 'ok'} {self.line.name}: {points}{note}")
        if self.why:
            print(f"    {self.line.about}\n    {self.why}")
        if self.case is not None:
            print(f"    again: ./sonde grade {number} --seed {seed} --case {self.case}")

    def as_json(self):
        return {
            "name": self.line.name,
            "points": self.points,
            "of": self.line.points,
            "case": self.case,
            "why": self.why,
        }


def grade(workshop, handed_in, seed, begins=lambda _line: None):
    """Return the verdicts, one for each line of the rubric. The cases of a line end with
    the first case that fails. The numbers of cases count through the whole rubric.
    @begins: called with each line before its cases run
    """
    lines = labs.rubric(workshop.lab, workshop.tree)
    workshop.warned = []
    try:
        workshop.build_answer(handed_in)
    except NotBuilt as error:
        return [Verdict(line, None, NOT_BUILT + str(error)) for line in lines]
    verdicts, first = [], 0
    for line in lines:
        begins(line)
        verdicts.append(grade_line(workshop, line, seed, first))
        first += line.cases
    return verdicts


def grade_line(workshop, line, seed, first):
    for case in range(line.cases):
        difference = workshop.compare(line.name, seed, case)
        if difference:
            return Verdict(line, first + case, difference.why)
    return Verdict(line, note=workshop.note(line.name))


def tell_line(line):
    print(f"{RUNNING}{line.name}: {line.about}", file=sys.stderr, flush=True)


def is_not_built(verdicts):
    return bool(verdicts) and all((v.why or "").startswith(NOT_BUILT) for v in verdicts)


def show(verdicts, number, seed, as_json, warned="", folder=""):
    """Print the verdicts. Return whether the score is full.
    @warned: the compiler's warnings, @folder: the files that were graded
    """
    score, of = sum(v.points for v in verdicts), sum(v.line.points for v in verdicts)
    if as_json:
        print(
            json.dumps(
                {
                    "lab": number,
                    "seed": seed,
                    "folder": folder,
                    "score": score,
                    "of": of,
                    "warnings": warned,
                    "lines": [v.as_json() for v in verdicts],
                }
            )
        )
        return score == of
    print(f"# seed {seed}, the files in {folder}\n{warned}", end="")
    if is_not_built(verdicts):
        print(verdicts[0].why.removeprefix(NOT_BUILT).rstrip())
        print("Your files cannot be built, so no case was run.")
    else:
        for verdict in verdicts:
            verdict.show(number, seed)
    print(f"Score: {score}/{of}")
    return score == of


def show_case(workshop, handed_in, seed, case, as_json=False):
    """Run one case. Show its output, and its facts beside the right facts. Return
    whether it passed.
    """
    workshop.build_answer(handed_in)
    first = 0
    for line in labs.rubric(workshop.lab, workshop.tree):
        if case < first + line.cases:
            break
        first += line.cases
    else:
        raise UsageError(f"--case {case}: the cases are 0 to {first - 1}")
    difference = workshop.compare(line.name, seed, case - first)
    printed = disassembled(workshop.printed)
    if as_json:
        shown = {
            "lab": labs.NUMBERS[workshop.lab],
            "seed": seed,
            "case": case,
            "name": line.name,
            "why": None,
            "printed": printed,
        }
        if difference:
            shown.update(why=difference.why, got=difference.got, right=difference.want)
        print(json.dumps(shown))
        return not difference
    print(f"# seed {seed}, case {case}: {line.name}: {line.about}")
    if printed:
        print("it printed:\n" + printed.rstrip())
    if not difference:
        print("ok")
        return True
    print(difference.why)
    print("\n".join(both(difference.got, difference.want)))
    command = workshop.how_to_debug(line.name, seed, case - first)
    if command:
        print("under gdb: " + command)
    if command and workshop.lab in TRAPPING:
        print(
            "    there, `through run` and `through continue` leave your program its traps"
        )
    return False


def disassembled(printed):
    """Return a program's output, with the instructions below each line that has code."""
    lines = []
    for line in printed.splitlines():
        lines.append(line)
        found = CODE.fullmatch(line)
        if not found:
            continue
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes.fromhex(found[2]))
            file.flush()
            words = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64"]
            words += [f"--adjust-vma=0x{found[1]}", "--no-show-raw-insn", file.name]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines += [text for text in done.stdout.splitlines() if text.startswith(" ")]
    return "\n".join(lines)


def both(got, want):
    """Yield lines that show wrong facts beside the right ones. Of the facts that are
    right, only a few around the wrong ones are shown.
    """
    got, parts = aligned(got, want)
    for kind, i, i_end, k, k_end in parts:
        same = got[i:i_end] if kind == "equal" else []
        before = SHOWN_AROUND if i_end < len(got) or k_end < len(want) else 0
        behind = SHOWN_AROUND if i else 0
        if len(same) > before + behind:
            same[behind : len(same) - before] = ["..."]
        yield from ("  " + fact for fact in same)
        if kind == "insert" and i == len(got):
            yield f"! it ended; right would be  {want[k]}"
        elif kind != "equal":
            yield from (f"! got    {fact}" for fact in got[i:i_end])
            yield from (f"! right  {fact}" for fact in want[k:k_end])


def own_folder(name, path):
    path = path or labs.folder(name)
    if not os.path.isdir(path):
        raise UsageError(
            f"there is no folder {path}; begin with: ./sonde lab {labs.NUMBERS[name]}"
        )
    return path


@contextlib.contextmanager
def work_folder(name):
    """Return the folder in which a lab is built, after emptying it. The folder
    stays after the grading, for gdb. A second grading of the same lab waits for the
    end of the first.
    """
    path = os.path.join(BUILD, "labs", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                f"sonde: waiting for the end of another grading of {name}",
                file=sys.stderr,
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        yield path


def must_be_there(name, handed_in):
    """A single case takes all files of the lab. For the points, a missing file is a 0."""
    for file in labs.handed_in(name):
        if not os.path.isfile(os.path.join(handed_in, file)):
            raise UsageError(f"grade --case: {handed_in} has no {file}")


def seed_to_grade(name, handed_in, seed):
    """Return the seed for a grading. @seed: of the command line, or None"""
    own = seed_of(name, handed_in)
    if None not in (seed, own) and seed != own:
        raise UsageError(f"{handed_in} is of seed {own}: leave --seed {seed} away")
    if seed is None and own is None and has_seeds(name):
        again = f"./sonde lab {labs.NUMBERS[name]} {handed_in}"
        raise UsageError(f"{handed_in} has no seed: --seed N, or {again}")
    if seed is None:
        seed = own
    return random.SystemRandom().randrange(SEED_MAX) if seed is None else seed


def command(name, handed_in, options):
    """Run ./sonde grade. Return whether the score is full."""
    with work_folder(name) as work:
        return grade_in(work, name, handed_in, options.seed, options)


def grade_in(work, name, handed_in, seed, options):
    tree = ROOT if options.tree else committed(os.path.join(work, "tree"))
    with contextlib.closing(
        workshop_of(name, tree, os.path.join(work, "built"))
    ) as workshop:
        workshop.build_ours()
        try:
            if options.case is not None:
                return show_case(workshop, handed_in, seed, options.case, options.json)
        except NotBuilt as error:
            print(str(error).rstrip(), file=sys.stderr)
            if options.json:
                number = labs.NUMBERS[name]
                json_lines.show(lab=number, seed=seed, case=options.case, why=str(error))
            return False
        begins = [tell_line] if options.progress or sys.stderr.isatty() else []
        verdicts = grade(workshop, handed_in, seed, *begins)
    return show(
        verdicts,
        labs.NUMBERS[name],
        seed,
        options.json,
        "".join(workshop.warned),
        os.path.abspath(handed_in),
    )
