"""check.py - ./sonde check: runs the commands of transcripts, and reports what differs.

All prompts of a file are one session with one guest, which starts at the first prompt.
`$ ./sonde run OPTIONS` ends this guest and starts the next one. Any other command of
./sonde runs by itself, as from the host's shell. transcript.py reads and compares the
text.
"""

import dataclasses
import itertools
import os
import re
import signal
import subprocess
import time
from xml.sax.saxutils import escape, quoteattr

from sonde.errors import read_named, writing
from sonde.guest import EXIT_POWEROFF, ROOT, Guest, GuestError
from sonde.machine import Gone, one_line
from sonde.options import UsageError
from sonde.transcript import (
    GUEST,
    LOG,
    as_rows,
    difference,
    explain,
    is_dots,
    row_agrees,
    sonde_words,
    steps,
)

OK, DIFFERENT, NOT_RUN = "as shown", "different", "not run"

CTRL_C_GRACE = 10  # seconds for a command to end after Ctrl-C
LOG_GRACE = 5  # seconds for lines of the log to arrive behind the command's output
NOTES_MAX = 100  # lines that a difference may take


@dataclasses.dataclass
class Outcome:
    """The result of a step. notes: the reason, as lines."""

    step: object
    verdict: str
    notes: list
    seconds: float


@dataclasses.dataclass
class Runner:
    """The settings by which commands are run.

    setup:  of the guest that is started when a file does not say how
    limit:  seconds that a command may take
    run:    the words behind `./sonde run` as a Setup whose image is built
    sonde:  the words that start ./sonde
    """

    setup: object
    limit: float
    run: object
    sonde: list


class Session:
    """The guest that the prompts of one file use."""

    def __init__(self, runner):
        self.runner = runner
        self.setup = runner.setup
        self.guest = None
        self.lost = None  # why there is no guest any more

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.end()

    def end(self):
        if self.guest:
            self.guest.stop()
        self.guest = None

    def lose(self, why, when):
        self.lost = f"{why} ({when})"
        self.end()

    def run(self, step):
        """Run a step. Return its problems, as lines; []: the output is as shown."""
        if step.prompt == GUEST:
            return self.ask(step)
        words = sonde_words(step.command)
        if words[:1] != ["run"]:
            return self.run_sonde(step, words)
        self.end()
        self.lost = "the guest was not started"
        try:
            self.setup = self.runner.run(words[1:])
        except SystemExit as error:
            return [f"./sonde run ends with status {error.code}"]
        self.lost = None
        told = ["what a start prints is not compared; write three dots for it"]
        return self.start(step) or told * (not all(map(is_dots, step.rows)))

    def start(self, step):
        try:
            self.guest = Guest(self.setup)
            self.guest.wait_prompt(self.runner.limit)
        except GuestError as error:
            self.lose(error, step.place)
            return [str(error), *("| " + line for line in error.lines)]
        return []

    def ask(self, step):
        """Run a command at the prompt of the guest. Return its problems, as lines."""
        if self.lost:
            return [f"not run: {self.lost}"]
        problems = [] if self.guest else self.start(step)
        if problems:
            return problems
        console = len(self.guest.console.text)
        pieces = []
        try:
            machine = self.guest.machine
            reply = machine.request(step.command, self.runner.limit, pieces.append, True)
            errno, name = reply.errno, reply.name
        except Gone:
            errno, name = 0, "OK"
            if not self.was_to_end(step):
                return self.failure(step)
        except TimeoutError:
            return self.too_long(step)
        got = as_rows(b"".join(pieces).decode("utf-8", "backslashreplace"))
        if errno and ends_in_dots(step):
            return [f"it fails with {errno} {name}, and dots stand for what it says"]
        if difference(step.rows, got) is None or self.logged(step, got, console):
            return []
        return explain(step, got)

    def was_to_end(self, step):
        """Has the guest ended because the step asked for it? Then the next prompt starts
        a new guest."""
        status = self.guest.wait_end(5)
        asked = step.command.split()[0]
        ended = asked in ("poweroff", "exit") and status == EXIT_POWEROFF
        ended |= asked == "reboot" and status == 0 and not self.guest.triple_fault()
        if ended:
            self.end()
        return ended

    def failure(self, step):
        error = self.guest.failure(f"in '{step.command}'", self.runner.limit)
        self.lose(error, step.place)
        return [str(error), *("| " + line for line in error.lines)]

    def too_long(self, step):
        """Stop the command, so that later commands still have a guest."""
        problem = f"does not end within {self.runner.limit:g} s"
        try:
            self.guest.machine.interrupt(CTRL_C_GRACE)
        except (TimeoutError, OSError, Gone):
            return [problem, *self.failure(step)]
        return [problem + "; stopped by Ctrl-C"]

    def logged(self, step, got, start):
        """Does the output agree if lines of the log are searched on the console?

        A terminal shows them between the lines of a command's output.
        """
        shown = [row for row in step.rows if LOG.match(row)]
        rest = [row for row in step.rows if not LOG.match(row)]
        if not shown or difference(rest, got) is not None:
            return False
        end = time.monotonic() + LOG_GRACE
        while not all_in(shown, self.guest, start):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def run_sonde(self, step, words):
        """Run a command of the host, and compare its output and its error messages."""
        process = subprocess.Popen(
            [*self.runner.sonde, *words],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=self.runner.limit)[0]
        except subprocess.TimeoutExpired:
            return [f"does not end within {self.runner.limit:g} s"]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        got = as_rows(output.decode("utf-8", "backslashreplace"))
        if process.returncode and ends_in_dots(step):
            status = f"it ends with status {process.returncode}, and dots stand for why"
            return [status, *("| " + row for row in got)]
        return explain(step, got)


def ends_in_dots(step):
    return bool(step.rows) and is_dots(step.rows[-1])


def all_in(shown, guest, start):
    """Does the console, from @start on, have the lines @shown in this order?"""
    text = guest.console.text[start:].decode("utf-8", "backslashreplace")
    rows = iter(as_rows(text))
    return all(any(row_agrees(one, row) for row in rows) for one in shown)


def why_not_run(step):
    """The reason why a step cannot be run; None: it can."""
    try:
        if step.prompt == GUEST:
            one_line(step.command)
        else:
            sonde_words(step.command)
    except ValueError as error:
        return str(error)
    return None


def outcomes(found, runner):
    """Run the steps of one file. Yield an Outcome for each."""
    with Session(runner) as session:
        for step in found:
            start = time.monotonic()
            reason = why_not_run(step)
            problems = [] if reason else session.run(step)
            verdict = NOT_RUN if reason else DIFFERENT if problems else OK
            seconds = time.monotonic() - start
            yield Outcome(step, verdict, [reason] if reason else problems, seconds)


# ---- reports ----


def note(text):
    for line in text.splitlines():
        print("# " + line, flush=True)


def tell(number, outcome):
    """Print an outcome as a line of TAP, and its notes."""
    name = outcome.step.name.replace("\\", "\\\\").replace("#", "\\#")
    if outcome.verdict == NOT_RUN:
        print(f"ok {number} - {name} # SKIP {outcome.notes[0]}", flush=True)
        return
    verdict = "ok" if outcome.verdict == OK else "not ok"
    print(f"{verdict} {number} - {name}", flush=True)
    for line in outcome.notes[:NOTES_MAX]:
        note(line)
    if len(outcome.notes) > NOTES_MAX:
        note(f"({len(outcome.notes) - NOTES_MAX} more lines)")


NOT_IN_XML = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text):
    """The text, with characters that XML does not allow written as Python writes them."""
    return NOT_IN_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def junit_case(outcome):
    step = outcome.step
    yield (
        f"<testcase classname={quoteattr(xml_text(step.path))} "
        f"name={quoteattr(xml_text(step.name))} file={quoteattr(xml_text(step.path))} "
        f'line="{step.line}" time="{outcome.seconds:.3f}">'
    )
    if outcome.verdict == NOT_RUN:
        yield f"<skipped message={quoteattr(xml_text(outcome.notes[0]))}/>"
    if outcome.verdict == DIFFERENT:
        notes = xml_text("\n".join(outcome.notes))
        yield f"<failure message={quoteattr(notes.splitlines()[0])}>{escape(notes)}</failure>"
    yield "</testcase>"


def counted(results):
    """The numbers of steps: (tests, failures, skipped)."""
    verdicts = [outcome.verdict for outcome in results]
    return len(verdicts), verdicts.count(DIFFERENT), verdicts.count(NOT_RUN)


def junit_suite(path, results):
    tests, failures, skipped = counted(results)
    seconds = sum(outcome.seconds for outcome in results)
    yield (
        f'<testsuite name={quoteattr(xml_text(path))} tests="{tests}" '
        f'failures="{failures}" skipped="{skipped}" time="{seconds:.3f}">'
    )
    for outcome in results:
        yield from junit_case(outcome)
    yield "</testsuite>"


def write_junit(file, files):
    """files: (path, outcomes) of each transcript."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for path, results in files:
        lines += junit_suite(path, results)
    file.write("\n".join(lines + ["</testsuites>"]) + "\n")


# ---- the command ----


def read(path):
    """A file as text, with unchanged ends of lines. May raise UsageError."""
    try:
        return read_named(path).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise UsageError(f"check: {path}: {error.strerror}") from None


def read_all(paths):
    """(path, steps) of each file. May raise UsageError."""
    return [(path, steps(path, read(path))) for path in paths]


def must_have_commands(files):
    """Raise UsageError if no file has a command to run."""
    if all(why_not_run(step) for _, found in files for step in found):
        names = " ".join(path for path, _ in files)
        raise UsageError(f"check: no command to run in {names}")


def show(files):
    """Print the commands, and the reasons of those that are not run."""
    for _, found in files:
        for step in found:
            reason = why_not_run(step)
            print(step.name + (f"  (not run: {reason})" if reason else ""))


def check(files, runner, junit=None):
    """Run what read_all() has read. Return the exit status: 0 all as shown, 1 if not."""
    path = junit or os.devnull
    with writing(path), open(path, "w", encoding="utf-8") as report:
        numbers = itertools.count(1)
        done = [(path, list(told(path, found, runner, numbers))) for path, found in files]
        write_junit(report, done)
    return summary([outcome for _, results in done for outcome in results])


def told(path, found, runner, numbers):
    """The outcomes of one file. Each is printed as soon as it is known."""
    if not found:
        note(f"{path}: no transcript")
    for outcome in outcomes(found, runner):
        tell(next(numbers), outcome)
        yield outcome


def summary(results):
    tests, failures, skipped = counted(results)
    note(
        f"{tests} commands: {tests - failures - skipped} as shown, "
        f"{failures} different, {skipped} not run"
    )
    print(f"1..{tests}", flush=True)
    return 1 if failures else 0
