"""test_bench.py - checks that `bench` measures what it says it measures, and that no
probe is left after it. No test here depends on how long something takes.
"""

import os
import re
import subprocess
import tempfile

import rows
import tap
from sonde.guest import ROOT
from session import ask, at_prompt, stat

FIGURE = re.compile(r"sonde\.(\S+) ([0-9.]+) \S+(?:  goal ([0-9.]+)(  MISSED)?)?")
TOTAL = re.compile(r"# (\d+) goals, (\d+) missed")


def figures(text):
    """Return {name: value} of the output of `bench`. Check its statements about goals."""
    lines = text.splitlines()
    total = TOTAL.fullmatch(lines[-1]) if lines else None
    if total:
        lines.pop()
    found = [FIGURE.fullmatch(line) for line in lines]
    wrong = [line for line, figure in zip(lines, found) if not figure]
    tap.equal(wrong, [], "every line is a figure")
    judged = [match for match in found if match and match[3]]
    missed = [match for match in judged if float(match[2]) > float(match[3])]
    tap.equal([m for m in judged if m[4]], missed, "what is above its goal is marked")
    said = (int(total[1]), int(total[2])) if total else (0, 0)
    tap.equal(said, (len(judged), len(missed)), "and counted at the end")
    return {match[1]: float(match[2]) for match in found if match}


def parts_of_the_hits():
    ways = {"int3_boostable": "boost", "int3_emulated": "emulate", "int3_tf": "step"}
    with at_prompt(smp=1) as guest:
        for kind, way in ways.items():
            before = stat(guest)[f"hits.{way}"]
            out = figures(ask(guest, f"bench hit.{kind}"))
            names = {f"hit.{kind}.cycles", f"hit.{kind}.cycles_min"}
            tap.equal(set(out), names, f"bench hit.{kind}: two figures")
            tap.check(min(out.values()) > 0, "a hit costs something")
            tap.check(stat(guest)[f"hits.{way}"] - before > 500000, f"they went by {way}")
        tap.check("step-int3" in ask(guest, "probe stat"), "the step engine is as before")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def jumps():
    knob = "/proc/sys/debug/kprobes-optimization"
    with at_prompt(smp=2) as guest:
        ask(guest, f"echo 0 > {knob}")
        for kind in ("opt", "opt_pad", "opt_count", "opt_light"):
            hits, traps = stat(guest)["hits"], stat(guest)["traps"]
            out = figures(ask(guest, f"bench hit.{kind}"))
            names = {f"hit.{kind}.cycles", f"hit.{kind}.cycles_min"}
            tap.equal(set(out), names, f"bench hit.{kind}: two figures")
            tap.check(stat(guest)["hits"] - hits > 500000, "each call was a hit")
            tap.check(stat(guest)["traps"] - traps < 1000, "and none a trap")
        for kind in ("kret_opt", "kprobe_kret_opt", "jprobe_opt", "opt_posthandler"):
            tap.check(figures(ask(guest, f"bench hit.{kind}")), f"bench hit.{kind}")
        tap.equal(ask(guest, f"cat {knob}").strip(), "0", "the switch is as before")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def a_crowd_and_the_cache():
    with at_prompt(smp=2) as guest:
        out = figures(ask(guest, "bench scale.1000 cache"))
        for name in (
            "register_one_by_one",
            "register_set",
            "unregister_set",
            "optimize_set",
        ):
            tap.check(out.get(f"scale.{name}.1000.ns_per_probe"), f"{name} was measured")
        tap.check(0 < out.get("mem.per_probe.bytes", 0) < 1000, "probes take memory")
        tap.check(out.get("scale.hit.1000.cycles"), "and hits among them time")
        tap.check(out.get("scale.optimize_set.1000.breakpoints", 1000) <= 10, "by jumps")
        tap.check(0 < out.get("mem.jump_per_probe.bytes", 0) < 1000, "these take more")
        tap.check(50 < out.get("cache.hit_ratio", 0) <= 100, "most hits are in the cache")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def a_lookup_among_many():
    with at_prompt(smp=1, icount=True, qemu="-icount shift=0,sleep=off") as guest:
        out = figures(ask(guest, "bench scale.1 scale.1000"))
        one, many = (out.get(f"scale.find.{n}.cycles", 0) for n in (1, 1000))
        tap.check(0 < many < 2 * one, f"{one} instructions among 1, {many} among 1000")


WAYS = ("specialized", "shared", "light", "post", "return_detour", "return_trampoline")


def others_beside_long_handlers():
    with at_prompt(smp=2) as guest:
        hits, traps = stat(guest)["hits"], stat(guest)["traps"]
        out = figures(guest.machine.request("bench starve.50us", 300, may_fail=True).text)
        hits, traps = stat(guest)["hits"] - hits, stat(guest)["traps"] - traps
        names = {f"starve.50us.{way}.late" for way in ("int3", "int3_return", *WAYS)}
        names |= {f"starve.50us.{way}.late_by_trap" for way in WAYS}
        tap.equal(names - set(out), set(), "how late, by each way, and beside a trap")
        ratio = out["starve.50us.specialized.late"] / out["starve.50us.int3.late"]
        told = out["starve.50us.specialized.late_by_trap"]
        tap.check(abs(ratio - told) <= 0.02 + ratio / 50, f"{told} is that ratio")
        tap.check(hits > traps > 0, f"{hits} hits, {traps} of them by a trap")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def goals_stand_beside_figures():
    with at_prompt(smp=2) as guest:
        text = ask(guest, "bench hit.int3_tf hit.opt")
        figures(text)
        tf = re.search(r"^sonde.hit.int3_tf.cycles ([0-9.]+) \S+$", text, re.M)
        opt = re.search(r"^sonde.hit.opt.cycles \S+ \S+  goal ([0-9.]+)", text, re.M)
        tap.check(tf and opt, "a jump has a goal, what it is compared with has none")
        tap.check(
            abs(float(tf[1]) / 10 - float(opt[1])) < 0.02, "a tenth of a trap by TF"
        )
        alone = ask(guest, "bench hit.opt")
        tap.check("goal" not in alone, "none without a figure to compare with")
    with at_prompt(smp=1, icount=True, qemu="-icount shift=0,sleep=off") as guest:
        text = ask(guest, "bench hit.int3_tf hit.opt")
        tap.check(figures(text), "in instructions")
        tap.check("goal" not in text, "a goal for time is none for instructions")


def conditions():
    """Measure markers in instructions: a marker that is off, a marker that is on, and the
    switching of 10,000 places that no CPU executes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "places.o")
        source = os.path.join("probes", "bench", "marks.asm")
        words = ["nasm", "-f", "elf64", "-I./", "-o", path, source]
        subprocess.run(words, cwd=ROOT, check=True)
        module = f"-fw_cfg name=opt/sonde/module/places.o,file={path}"
        setup = {"icount": True, "qemu": f"-icount shift=0,sleep=off {module}"}
        with at_prompt(smp=1, **setup) as guest:
            out = figures(ask(guest, "bench marker.pass"))
            off = {
                kind: round(out[f"marker.{kind}.off"]) for kind in ("immediate", "key")
            }
            tap.equal(off, {"immediate": 3, "key": 1}, "off: that many instructions")
            on = [out[f"marker.{kind}.on"] for kind in ("immediate", "key", "load")]
            tap.check(on[0] > on[1] > 3, f"and on it is a call: {on}")
            tap.equal(ask(guest, "module load /boot/places.o"), "", "10,000 places come")
            out = figures(ask(guest, "bench marker.switch"))
            one, all_ = (out[f"marker.switch.{n}.on"] for n in (1, 10000))
            tap.check(one < all_ < 1000 * one, f"{one} us for one place, {all_} for all")
            keys = [key for key in out if key.startswith("marker.switch.key.1000")]
            tap.check(
                len(keys) == 2 and all(one < out[key] < 1000 * one for key in keys),
                f"as many of a key: {[out[key] for key in keys]} us",
            )
            tap.equal(ask(guest, "module del places"), "", "the places go")


def events():
    """The last of 1000 event definitions costs as many instructions as the first."""
    with at_prompt(smp=1, icount=True, qemu="-icount shift=0,sleep=off") as guest:
        out = figures(ask(guest, "bench events"))
        names = {"define.1000.total", "define.first_100", "define.last_100"}
        names |= {f"{what}.1000" for what in ("enable", "disable", "delete")}
        names = {f"events.{name}" for name in names}
        tap.equal(set(out), names, "events are defined, enabled, disabled, deleted")
        first, last = out["events.define.first_100"], out["events.define.last_100"]
        tap.check(0 < last < 1.1 * first, f"a line: {first:.0f} instructions, {last:.0f}")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def changes_of_text():
    """Measure changes of text by each engine, while one CPU runs, and while two run."""
    changes = ("arm", "disarm", "byte", "instruction", "batch")
    with at_prompt(smp=2) as guest:
        out = figures(ask(guest, "bench text"))
        names = {
            f"text.{engine}.{cpus}.{change}.{what}"
            for engine in rows.engines()
            for cpus in (1, 2)
            for change in changes
            for what in ("ns", "syncs", "others_stand_ns")
            if cpus > 1 or what != "others_stand_ns"
        }
        tap.equal(set(out), names, "bench text: each engine, each number of CPUs")
        tap.check(min(out.values()) > 0, "each change takes time and synchronisations")
        arming = [out[name] for name in names if re.search(r"arm\.syncs$", name)]
        tap.equal(set(arming), {1}, "a breakpoint comes and goes by one synchronisation")
        tap.equal(stat(guest)["probes"], 0, "no probe is left")


def what_it_does_not_have():
    """The image has the help, and the module the groups: each has the other's."""
    with at_prompt(smp=1) as guest:
        groups = re.findall(r"^  (\w+) ", ask(guest, "help bench"), re.M)
        tap.equal(len(groups), 8, "the help has eight groups")
        refused = {"nothing": "EINVAL", **{f"{group}.x": "ENOENT" for group in groups}}
        for words, name in refused.items():
            reply = guest.machine.request(f"bench {words}", 60, may_fail=True)
            tap.equal(reply.name, name, f"bench {words}")


tap.run(
    parts_of_the_hits,
    jumps,
    a_crowd_and_the_cache,
    a_lookup_among_many,
    others_beside_long_handlers,
    goals_stand_beside_figures,
    conditions,
    events,
    changes_of_text,
    what_it_does_not_have,
)
