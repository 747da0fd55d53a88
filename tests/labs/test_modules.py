"""test_modules.py - checks that modules of students that cheat or misbehave lose points,
and that the grading goes on with a new guest.
"""

import contextlib
import os
import tempfile
import textwrap

import tap
import wrong
from docs.labs.host import grade, in_guest, labs
from sonde.guest import ROOT

TASK = os.path.join(ROOT, "docs/labs/handler/README.md")
SOLUTION = os.path.join(ROOT, "docs/labs/host/handler/solution/handler.c")

# Code of bad modules, in the place of handler_run().
PRINTS = r'seq_printf(w->out, "all: 97 calls, 3304 bytes, 0 missed\n");'
HANGS = "for (;;) w->calls++;"
PANICS = '__asm__ volatile("cli; ud2");'
OFF = '__asm__ volatile("outb %%al, $0xf4" :: "a"(0x31));'  # the port that ends QEMU
GIGABYTE = r'for (unsigned i = 0; i < 1 << 24; i++) seq_printf(w->out, "%064u\n", i);'
# Bytes to a device that QEMU writes to a file on the host.
DEVICE = (
    '__asm__ volatile("mov $0x20000000, %%ecx; 1: outb %%al, $0xe9; dec %%ecx; jnz 1b"'
    ' ::: "ecx", "cc");'
)
# A probe on the grader's module: the handler changes the seed, which makes
# the task easier.
PROBES = """
static int seen_run(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    struct work *theirs = (struct work *)regs->di;

    theirs->random = 1;
    return 0;
}
static struct kprobe spy = { .symbol_name = "storm:storm_run", .pre_handler = seen_run };
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_run(code):
    """Return the solution with only @code in the function of its command."""
    head, tail = read(SOLUTION).split("static int handler_run(struct work *w)\n{\n")
    return (
        f"{head}static int handler_run(struct work *w)\n{{\n{code}\nreturn 0;\n"
        "}\n" + tail[tail.index("WORKLOAD(") :]
    )


def spying():
    text = read(SOLUTION).replace("static int before(", PROBES + "static int before(", 1)
    return text.replace(
        "int err = register_kprobe(&reads);",
        "int err = register_kprobe(&spy);\n\n    if (!err)\n"
        "        err = register_kprobe(&reads);",
    )


class Bench:
    def __init__(self, folder, workshop):
        self.folder, self.workshop = folder, workshop

    def why(self, text, name):
        """Return the reason why a line of the rubric is lost, or None."""
        path = os.path.join(self.folder, "in")
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "handler.c"), "w", encoding="utf-8") as file:
            file.write(text)
        try:
            self.workshop.build_answer(path)
        except grade.NotBuilt as error:
            return str(error)
        line = next(line for line in labs.rubric("handler") if line.name == name)
        return grade.grade_line(self.workshop, line, 7, 0).why


def modules_that_misbehave():
    with tempfile.TemporaryDirectory() as folder:
        workshop = grade.workshop_of("handler", ROOT, os.path.join(folder, "built"))
        with contextlib.closing(workshop):
            workshop.build_ours()
            workshop.seconds = 3
            the_sample_is_what_is_printed(workshop)
            try_all(Bench(folder, workshop))


def the_sample_is_what_is_printed(workshop):
    """The text of the task shows what the solution prints."""
    ask = in_guest.Asker(workshop.guest_for("truth"), 30)
    ask.load(workshop.truth)
    said = ask("run readers").text + ask("run handler").text
    ask("module del handler")
    sample = textwrap.indent(said, "    ")
    tap.check(f"\n\n{sample}\n" in read(TASK), f"the sample of the task:\n{sample}")


def tells_where(bench, again):
    """Is the function named that hangs? The look at it may meet an interrupt on top."""
    if again:
        bench.why(in_run(HANGS), "arguments")
    return "handler:handler_run+" in bench.workshop.printed


def try_all(bench):
    for what, code, why in (
        ("prints what was right once", PRINTS, "got "),
        ("hangs", HANGS, "no answer within 3 s"),
        ("panics", PANICS, "the kernel panicked"),
        ("ends QEMU", OFF, "in 'run handler'"),
        ("prints a gigabyte", GIGABYTE, ""),
        ("writes to QEMU's files", DEVICE, ""),
    ):
        found = bench.why(in_run(code), "arguments")
        tap.check(found and why in found, f"a module that {what} is told: {found}")
        if code == HANGS:
            tap.check(any(tells_where(bench, again) for again in range(3)), "and where")
    head, tail = read(SOLUTION).split("static int before(")
    text = head + "static int before(" + tail.replace("return 0;", "return 1;", 1)
    found = bench.why(text, "arguments")
    tap.check(
        found and "does a handler return something else than 0?" in found,
        f"a handler that returns 1 is told: {found}",
    )
    locked = next(row for row in wrong.of_people("handler") if row.name == "lock")
    found = bench.why(locked.files["handler.c"], "nmi")
    tap.check(
        found and "a handler took a lock in an NMI" in found,
        f"a handler that takes a lock is told: {found}",
    )
    head = "static int before(struct kprobe *p UNUSED, struct pt_regs *regs)\n{"
    text = read(SOLUTION).replace(head, head + "\n*(volatile int *)16 = 1;")
    found = bench.why(text, "arguments")
    tap.check(
        found and "its handler faulted" in found and "handler:before" in found,
        f"a handler that faults is told: {found}",
    )
    found = bench.why(
        read(SOLUTION).replace("readers:read_bytes", "readers:write_byte"), "arguments"
    )
    tap.check(
        found and "no function has the symbol_name" in found,
        f"a probe at no function is told: {found}",
    )
    found = bench.why("int broken", "arguments")
    tap.check("error:" in found, "a module that is no C: the compiler's words")
    found = bench.why(spying(), "many")
    tap.check(found, f"a module that makes the grader's work easier: {found}")
    found = bench.why(read(SOLUTION), "arguments")
    tap.equal(found, None, "then the solution has its points")


tap.run(modules_that_misbehave)
