"""test_extra_objs.py - tests the linking of a user's objects into the kernel. The objects
are the example of docs/api.md, built by the commands of the page, and others.
"""

import os
import re
import shutil
import subprocess
import tempfile

import tap
from sonde.guest import BUILD, ROOT

SAMPLES = os.path.join(ROOT, "docs", "samples")

BUILD_LIMIT = 600

SECOND = """
static int order;

__attribute__((constructor(200))) static void later(void) { order = order * 10 + 2; }
__attribute__((constructor(101))) static void sooner(void) { order = order * 10 + 1; }

#include "kernel/work/work.h"

static int order_run(struct work *w)
{
    seq_printf(w->out, "order %d\\n", order);
    return 0;
}
WORKLOAD(order, order_run, "in which order constructors ran");
"""

AT_BOOT = """
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

static int look(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static struct kprobe p = { .symbol_name = "vfs_read", .pre_handler = look };
static int err;

__attribute__((constructor)) static void at_boot(void) { err = register_kprobe(&p); }

static int at_boot_run(struct work *w)
{
    for (int i = 0; i < 1000 && !(p.flags & KPROBE_FLAG_OPTIMIZED); i++)
        thread_sleep_ns(10000000);
    seq_printf(w->out, "registered %d, jump %d\\n", err,
               !!(p.flags & KPROBE_FLAG_OPTIMIZED));
    return 0;
}
WORKLOAD(at_boot, at_boot_run, "what became of a probe that was set at boot");
"""


def page(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def block(name, language):
    """Return the first block of a language in a page of docs/."""
    return re.search(rf"```{language}\n(.*?)```", page(name), re.S)[1]


def environment():
    """Return the environment without the variables of an outer make and without B, which
    names a build directory.
    """
    return {
        k: v
        for k, v in os.environ.items()
        if k not in ("B", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }


def shell(script, limit=BUILD_LIMIT, **variables):
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=ROOT,
        capture_output=True,
        env={**environment(), **variables},
        timeout=limit,
        check=False,
    )
    text = done.stdout.decode() + done.stderr.decode()
    return done.returncode, text


def in_folder(words, folder):
    """Return the commands of a page, changed so that all their files are in @folder."""
    words = re.sub(r"\breads\.[co]\b", lambda m: f"{folder}/{m[0]}", words)
    return re.sub(r"build/reads", folder + "/b", words)


def the_example_of_the_page_works(folder):
    with open(folder + "/reads.c", "w", encoding="utf-8") as source:
        source.write(block("api.md", "c"))
    status, text = shell(in_folder(block("api.md", "sh"), folder))
    row = re.search(r"^(\d+) reads of (\d+) bytes, 0 missed$", text, re.M)
    tap.equal(status, 0, "the page's commands succeed")
    if not tap.check(row and int(row[1]) > 0 and int(row[2]) > 0, "reads are counted"):
        tap.note(text)


def compiled(folder, name, text):
    """Write folder/name.c. Return the command that compiles it, with few flags."""
    with open(f"{folder}/{name}.c", "w", encoding="utf-8") as source:
        source.write(text)
    flags = (
        "-ffreestanding -fno-pic -mcmodel=kernel -mno-red-zone -mgeneral-regs-only -I."
    )
    return f"gcc {flags} -c {folder}/{name}.c -o {folder}/{name}.o; "


def h80_probes_set_at_boot_become_jumps(folder):
    """A probe that was registered at boot becomes a jump, without any command."""
    tree = folder + "/b"
    script = compiled(folder, "at_boot", AT_BOOT)
    script += f"make -s -j2 B={tree} EXTRA_OBJS={folder}/at_boot.o {tree}/sonde.elf"
    tap.equal(shell(script), (0, ""), "an object that sets a probe at boot")
    for smp in (1, 3):
        status, text = shell(f"./sonde exec --smp {smp} 'run at_boot' 'run vfs'", B=tree)
        tap.check(
            status == 0 and "registered 0, jump 1\n" in text, f"{smp} CPUs: it is a jump"
        )


def more_objects(folder):
    """Link two more objects. The build uses the objects of the first build again."""
    script = compiled(folder, "order", SECOND)
    script += f"make -s -j2 B={folder}/b EXTRA_OBJS='{folder}/reads.o {folder}/order.o' "
    script += f"{folder}/b/sonde.elf"
    tap.equal(shell(script), (0, ""), "two objects, one with few flags")
    tree = folder + "/b"
    status, text = shell("./sonde exec 'run order' 'run reads' 'run list'", B=tree)
    tap.equal(status, 0, "both workloads run")
    tap.check("order 12\n" in text, "constructors ran in the order of their priority")
    told = r"^order +in which order .*(\n.*)*^reads +how often files"
    tap.check(re.search(told, text, re.M), "run list names them and what they do")
    status, text = shell(f"make -s {tree}/sonde.elf; ./sonde exec 'run list'", B=tree)
    tap.check(
        status == 0 and "\norder " not in text, "a plain make leaves them out again"
    )


def all_samples_are_linked_in(folder):
    """A sample is a module, and the same file can be linked in."""
    tree = folder + "/b"
    script = f"make -s -j2 B={tree} samples; make -s -j2 B={tree} "
    script += f'EXTRA_OBJS="$(echo {tree}/docs/samples/*.o)" {tree}/sonde.elf'
    tap.equal(shell(script), (0, ""), "all samples are linked into one kernel")
    commands = "'probe blacklist | grep author' 'run guarded' 'run list'"
    _, text = shell(f"./sonde exec {commands}", B=tree)
    tap.check(" add_twice " in text, "what they mark is blacklisted")
    names = [os.path.splitext(name)[0] for name in os.listdir(SAMPLES)]
    missing = [name for name in names if not re.search(rf"^{name} ", text, re.M)]
    tap.equal(missing, [], "each has its workload")


# The files that a build of the kernel makes before it links.
OBJECTS = ("boot", "drivers", "libc", "kernel", "probes", "tests", "libinsn",
           "host/libinsn.a", "link/gen_targets", "asm_offsets.inc", "probe_offsets.inc",
           "flags.stamp", "platforms.stamp")  # fmt: skip


def begin_with_our_objects(tree):
    """Copy our objects with their times into @tree, so that make compiles only what is
    new. To compile everything again would take a minute.
    """
    for name in OBJECTS:
        source, target = os.path.join(BUILD, name), os.path.join(tree, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)


def objects_are_linked_into_the_kernel():
    """Run the examples one after the other in one tree."""
    with tempfile.TemporaryDirectory() as folder:
        begin_with_our_objects(folder + "/b")
        the_example_of_the_page_works(folder)
        if tap.LONG:  # each of these links the kernel once or twice more
            all_samples_are_linked_in(folder)
            more_objects(folder)
            h80_probes_set_at_boot_become_jumps(folder)


tap.run(objects_are_linked_into_the_kernel)
