#!/usr/bin/env python3
"""icount.py - measures how many instructions a hit of each kind takes, and how many it takes
to register, arm, optimize and unregister very many probes, or to ask about all functions.
Compares this with the recorded figures.

    icount.py               measure, and compare with icount.tsv
    icount.py --update      measure, and record, also in docs/bench-figures.md
    icount.py --release NAME   append what is recorded to history.tsv, as a line
    icount.py FILE          compare the output of `bench hit scale` in FILE

`bench` runs on one CPU whose clock counts instructions, so that the same image gives
the same figures on every machine. The image is that of build/bench, which has 10,000
functions more (probes/bench/crowd.asm): so a hit at one of many sites is measured, too,
and not only a hit at one of a few. Interrupts of the clock add some hundredths to a
figure, so whole instructions are compared.

A question about all functions is asked in the image as it is, in a machine of its own; its
figure has the command and all waiting. The machine has all lines from the start: its
clock goes on while it waits for the host's next command, which made a figure three times
larger. It also waits while a busy host does not read the console, so the lowest of some
figures counts.

The instructions a probe depend on the text of the image: it has the probes, and executes
some of them. Between two images they differ by up to two fifths at 1,000 probes. So a figure
of `scale` may be half above the record. A loop over all probes for each probe adds much more
than that at 37,222 probes. The same holds for a question about all functions.

Exit status: 0 no kind takes more instructions than recorded; 1 some kind does, or a kind is
recorded and not measured, or measured and not recorded; 2 nothing was measured.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BUILD = os.path.join(os.environ.get("B", "build"), "bench")
CROWD = os.path.join(BUILD, "crowd.o")
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "icount.tsv")
HISTORY = os.path.join(os.path.dirname(RECORD), "history.tsv")
TABLE = os.path.join(
    ROOT, "docs", "bench-figures.md"
)  # the same figures, beside those of Linux
SONDE = os.path.join(ROOT, "sonde")
MACHINE = ["--smp", "1", "--icount", "--qemu", "-icount shift=0,sleep=off"]
BENCH = "bench hit scale.1000 scale.10000 scale.37222"
QUESTIONS = {
    "scale.trace_count_all": "trace count '*' -- run vfs",
    "scale.trace_ret_all": "trace 'ret * { count by func }' -- run vfs",
}
TRIES = 3
NOW = "grep now /sys/kernel/tracing/per_cpu/cpu0/stats"
MOMENT = re.compile(r"^now ts: +(\d+)\.(\d{6})$", re.M)
ROW = re.compile(r"^(\| `([\w.]+)` \| )(\d+)( \|)", re.M)
FIGURE = re.compile(r"^sonde\.hit\.(\w+)\.cycles (\d+\.\d+) cycles/hit"
                    r"|^sonde\.(scale\.\w+\.\d+)\.ns_per_probe (\d+) ns", re.M)  # fmt: skip
SCALE = "scale."
STACK = "question_stack"  # looks up functions, so the image's symbols count
APART = (
    "gdb_",
    "scale.trace_",
)  # the names of kinds that `bench` does not measure begin so
HEADER = (
    "# kind\tinstructions a hit; of scale: a probe, or all, in thousands; "
    "by `make bench-icount`\n"
)


def figures(text):
    """Whole instructions of each kind, from the output of `bench hit scale`."""
    return {a or b: round(float(x or y)) for a, x, b, y in FIGURE.findall(text)}


def limit(name, value):
    """The most instructions that are as recorded."""
    if name == STACK:
        return value + value // 50
    return value + value // 2 if name.startswith(SCALE) else value


def recorded(path):
    with open(path, encoding="ascii") as file:
        rows = (line.split() for line in file if line.strip() and line[0] != "#")
        return {name: int(value) for name, value in rows}


def record(path, measured):
    with open(path, "w", encoding="ascii") as file:
        file.write(HEADER)
        file.writelines(f"{name}\t{value}\n" for name, value in measured.items())


def history():
    """The names of the figures in history.tsv; and its lines, each with a name in front."""
    with open(HISTORY, encoding="ascii") as file:
        head, *lines = (line.rstrip("\n").split("\t") for line in file)
    return head[1:], lines


def add_release(name):
    known = recorded(RECORD)
    with open(HISTORY, "a", encoding="ascii") as file:
        file.write("\t".join([name, *(str(known[kind]) for kind in history()[0])]) + "\n")


def in_table(text):
    """The table of instructions in docs/bench-figures.md."""
    start = text.index("# Figures")
    return text[start : text.index("In cycles", start)]


def tabled(path):
    """The figure that the document has for each kind."""
    with open(path, encoding="utf-8") as file:
        return {
            kind: int(value) for _, kind, value, _ in ROW.findall(in_table(file.read()))
        }


def record_in_table(path, measured):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    old = in_table(text)
    new = ROW.sub(lambda row: f"{row[1]}{measured.get(row[2], row[3])}{row[4]}", old)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def compare(measured, known):
    """The lines to print, and whether no figure is worse than the record or missing."""
    lines, holds = [], True
    for name in list(measured) + [name for name in known if name not in measured]:
        new, old = measured.get(name), known.get(name)
        if new is None:
            words = f"recorded with {old}, and not measured"
        elif old is None:
            words = f"{new}, and not recorded"
        elif new > limit(name, old):
            words = f"{new}, {new - old} MORE than the {old} recorded"
        elif limit(name, new) < old:
            words = f"{new}, {old - new} fewer than the {old} recorded"
        else:
            continue
        holds = holds and None not in (new, old) and new <= limit(name, old)
        lines.append(f"{name}: {words}")
    return lines, holds


def stub_figures():
    """The figures of the stub for gdb, which no command of the console measures."""
    import gdb  # here, because gdb.py imports this module

    return gdb.figures()


def told(words, lines=None):
    """What `sonde @words` prints; "" if a command fails. @lines: its input."""
    done = subprocess.run(
        [SONDE, *words], stdout=subprocess.PIPE, input=lines, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def question_figures():
    found = {}
    for name, question in QUESTIONS.items():
        lines = f"{NOW}\n{question}\n{NOW}\n"
        for _ in range(TRIES):
            moments = MOMENT.findall(told(["run", *MACHINE], lines))
            if len(moments) == 2:
                start, end = (int(s + us) for s, us in moments)
                found[name] = min(end - start, found.get(name, end - start))
    return found


def measure(path):
    if path:
        with open(path, encoding="ascii") as file:
            return figures(file.read())
    asked = question_figures()
    subprocess.run(["make", "-s", "-C", ROOT, CROWD], check=True)
    os.environ.update(B=BUILD, EXTRA_OBJS=os.path.join(ROOT, CROWD))  # for what follows
    found = figures(told(["exec", "--timeout", "1800", *MACHINE, BENCH]))
    return found | asked | stub_figures() if found else {}


def main(words):
    if words[:1] == ["--release"] and len(words) == 2:
        add_release(words[1])
        return 0
    update = words == ["--update"]
    if words and not update and not (len(words) == 1 and os.path.isfile(words[0])):
        print("icount: takes --update, --release NAME or a FILE", file=sys.stderr)
        return 2
    measured = measure(words[0] if words and not update else None)
    if not measured:
        print("icount: `bench` has printed no figure", file=sys.stderr)
        return 2
    if update:
        record(RECORD, measured)
        record_in_table(TABLE, measured)
        return 0
    known = {
        name: value
        for name, value in recorded(RECORD).items()
        if name in measured or not (words and name.startswith(APART))
    }
    lines, holds = compare(measured, known)
    print(f"# {len(measured)} figures measured, {len(lines)} not as recorded")
    for line in lines:
        print(line)
    if lines:
        print("# to record these figures: probes/bench/host/icount.py --update")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
