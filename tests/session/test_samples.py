#!/usr/bin/env python3
"""test_samples.py - builds, loads, runs and unloads each sample in docs/samples."""

import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
import tap
from sonde.guest import ROOT, Guest, Setup
from kernel.module import send as modules

SAMPLES = os.path.join(ROOT, "docs", "samples")
LIMIT = 60

# What the workload of each sample prints after `run vfs`. Numbers in brackets must
# be above 0.
PRINTS = {
    "reads": r"(\d+) reads of (\d+) bytes, 0 missed",
    "times": r"(\d+) opened, (\d+) failed, (\d+) ns each, (\d+) ns at most",
    "names": r"(\d+) opened, (\d+) of them below /tmp",
    "guarded": r"sum (110)",
    "writes": r"(10) writes, the last one in deposit",
    "marks": r"(\d+) opened, (\d+) failed",
}


def ask(guest, command):
    return guest.machine.request(command, LIMIT, may_fail=True)


def a_sample(guest, name):
    modules.load(guest.machine, os.path.join(SAMPLES, name + ".c"), LIMIT)
    ask(guest, "run vfs")
    ask(guest, "cat /nothing/there")
    text = ask(guest, f"run {name}").text
    found = re.search(PRINTS[name], text)
    if not tap.check(found and all(int(n) for n in found.groups()), f"{name}: is hit"):
        tap.note(text)
    tap.equal(ask(guest, f"module del {name}").errno, 0, f"{name}: goes")
    tap.equal(ask(guest, f"run {name}").name, "ENOENT", f"{name}: is gone")


def the_blacklist_of_a_sample(guest):
    modules.load(guest.machine, os.path.join(SAMPLES, "guarded.c"), LIMIT)
    names = {"count": "OK", "add": "EPERM", "add_twice": "EPERM"}
    for name, answer in names.items():
        reply = ask(guest, f"probe add guarded:{name}")
        tap.equal(reply.name, answer, f"guarded:{name}: {answer}")
    tap.equal(ask(guest, "module del guarded").errno, 0, "it goes with a probe on it")
    tap.check("guarded:count [GONE]" in ask(guest, "probe list").text, "which is gone")


def every_sample_works():
    names = sorted(os.path.splitext(name)[0] for name in os.listdir(SAMPLES))
    tap.equal(names, sorted(PRINTS), "every sample is tried")
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        for name in names:
            a_sample(guest, name)
        the_blacklist_of_a_sample(guest)


def an_event_on_a_function_of_a_sample():
    """An event on a static function: only the module's own table has its name."""
    tracing = "/sys/kernel/tracing"
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        ask(guest, "module load /boot/reads.o")
        for what in ("reads:reads_run calls=+0x18(%di)", "reads:before_read"):
            reply = ask(
                guest, f"echo 'p:k/{what[6:10]} {what}' >> {tracing}/kprobe_events"
            )
            tap.equal(reply.errno, 0, f"an event on {what}")
        ask(guest, f"echo 1 > {tracing}/events/k/enable")
        ask(guest, "run reads")
        ask(guest, f"echo 0 > {tracing}/events/k/enable")  # a read of the trace would hit
        text = ask(guest, f"cat {tracing}/trace").text
        seen = re.findall(r" (read|befo): \((\w+)\+0x0/0x\w+ \[reads\]\)", text)
        wanted = [("read", "reads_run"), *[("befo", "before_read")] * 5]
        tap.equal(seen, wanted, "are recorded, with the name of the module")
        profile = ask(guest, f"cat {tracing}/kprobe_profile").text.split()
        tap.equal(profile, ["read", "1", "0", "befo", "5", "0"], "and counted")
        tap.equal(ask(guest, "module del reads").errno, 0, "their module goes")


def what_cannot_be_reloaded():
    """A file that is no object leaves the old module in its place."""
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        ask(guest, "module load /boot/reads.o")
        ask(guest, "echo text > /tmp/reads.o")
        for path, errno in (("/boot/x/reads.o", 2), ("/tmp/reads.o", 8)):
            reply = ask(guest, f"module reload {path}")
            tap.equal(reply.errno, errno, f"{path} is refused")
            held = ask(guest, "module list").text
            tap.check(" Live " in held, f"the old one stays: {held}")
        tap.equal(ask(guest, "module reload /boot/reads.o").errno, 0, "an object comes")
        for name, text in NO_MODULES.items():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "reads.c")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with open(modules.compiled(path), "rb") as file:
                    modules.send(guest.machine, file.read(), "/tmp/reads.o", LIMIT)
            reply = ask(guest, "module reload /tmp/reads.o")
            said = reply.errno and "; the old module is gone" in reply.text
            tap.check(said, f"{name}: {reply.text.strip()}")
            tap.equal(ask(guest, "module list").text, "", "it is")
            reply = ask(guest, "module reload /tmp/reads.o")
            tap.check("gone" not in reply.text, "there was none the second time")
            ask(guest, "module load /boot/reads.o")


NO_MODULES = {
    "a symbol that nothing has": "int nothing(void); int f(void) { return nothing(); }",
    "a constructor that refuses": """
        void module_refuse(int err);
        __attribute__((constructor)) static void refuse(void) { module_refuse(-19); }
    """,
}


COMMON = """
    #include "kernel/base/err.h"
    #include "kernel/console/shell.h"
    #include "kernel/fs/vfs.h"
    #include "kernel/module/module.h"
    #include "kernel/thread/thread.h"
    #include "kernel/work/work.h"
    static int run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
    {
        shell_printf(sh, "it runs\\n");
        return 0;
    }
    static struct shell_command command = { "NAME", "", "stays", run, NULL };
    static int late(void *unused UNUSED)
    {
        thread_sleep_ns(2000000);
        return shell_add_command(&command);
    }
    static struct clone_args thread USED = { .fn = late, .name = "late", .detached = true };
    static int work(struct work *w)
    {
        seq_puts(w->out, "it works\\n");
        return 0;
    }
    static const struct workload load USED = { "NAME", "is late", work };
    static int show(struct seq *s, void *priv UNUSED)
    {
        seq_puts(s, "it shows\\n");
        return 0;
    }
    static const struct vfs_file file USED = { "NAME", .mode = 0444, .show = show };
    __attribute__((constructor)) static void comes(void) { COMES }
    __attribute__((destructor)) static void goes(void) { GOES }
"""


def load_late(guest, name, comes, goes):
    """Load a module whose constructor does @comes and its destructor @goes."""
    text = COMMON.replace("COMES", comes).replace("GOES", goes).replace("NAME", name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with open(modules.compiled(path), "rb") as file:
            modules.send(guest.machine, file.read(), f"/tmp/{name}.o", LIMIT)
    return ask(guest, f"module load /tmp/{name}.o")


def a_command_keeps_its_module():
    """So it does if the module refuses, or adds it while the module goes."""
    ways = {
        "refuses": ("shell_add_command(&command); module_refuse(-ENODEV);", "", 19),
        "destroys": ("", "shell_add_command(&command);", 0),
        "threads": ("", "kernel_clone(&thread);", 0),
    }
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        for name, (comes, goes, errno) in ways.items():
            reply = load_late(guest, name, comes, goes)
            tap.equal(reply.errno, errno, f"{name}: comes")
            tap.equal("which stays" in reply.text, errno > 0, f"{name}: {reply.text}")
            reply = ask(guest, f"module del {name}")
            said = reply.name == "EBUSY" and "a command, which stays" in reply.text
            tap.check(said, f"{name}: does not go: {reply.text}")
            tap.equal(ask(guest, name).text, "it runs\n", f"{name}: runs all the same")


def what_a_destructor_adds_goes():
    adds = 'workload_add(&load, 1); vfs_add_tree("/proc", &file, 1);'
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        load_late(guest, "late", "", adds)
        tap.equal(ask(guest, "module del late").errno, 0, "the module goes")
        tap.equal(ask(guest, "run late").name, "ENOENT", "a workload goes")
        tap.equal(ask(guest, "cat /proc/late").name, "ENOENT", "a file goes")


def object_of(name):
    return modules.compiled(os.path.join(SAMPLES, name + ".c"))


def files_of(*paths):
    """Return the words for QEMU that make these files mine0.o, mine1.o, ... in /boot."""
    return " ".join(
        f"-fw_cfg name=opt/sonde/module/mine{i}.o,file={path}"
        for i, path in enumerate(paths)
    )


def at_boot(**given):
    """Boot with modules that the kernel loads before the prompt. Return (the text of
    `module list`, the files of /boot).
    """
    with Guest(Setup(**given)) as guest:
        guest.wait_prompt(LIMIT)
        return ask(guest, "module list").text, ask(guest, "ls /boot").text.split()


def modules_come_with_the_kernel():
    objects = sorted([*(name + ".o" for name in PRINTS), "bench.o"])
    for boot in ("pvh", "iso", "uefi") if tap.LONG else ("pvh", "iso"):
        loaded, files = at_boot(boot=boot, append="modules=times,reads")
        tap.equal(files, objects, f"{boot}: /boot has the samples and bench")
        tap.check(
            re.fullmatch(r"times .* Live .*\nreads .* Live .*\n", loaded),
            f"{boot}: two are loaded, in the order of the argument",
        )
    mine = files_of(object_of("reads"), object_of("times"))
    loaded, files = at_boot(append="modules=mine1,mine0", qemu=mine)
    tap.check(
        re.fullmatch(r"mine1 .* Live .*\nmine0 .* Live .*\n", loaded)
        and {"mine0.o", "mine1.o"} <= set(files),
        "fw_cfg: other ones",
    )
    loaded, files = at_boot(
        append="modules=module0", qemu=f"-initrd {object_of('reads')}"
    )
    tap.check(
        re.fullmatch(r"module0 .* Live .*\n", loaded) and "module0.o" in files,
        "PVH: by its list",
    )


tap.run(
    every_sample_works,
    an_event_on_a_function_of_a_sample,
    what_cannot_be_reloaded,
    a_command_keeps_its_module,
    what_a_destructor_adds_goes,
    modules_come_with_the_kernel,
)
