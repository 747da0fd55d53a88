"""test_bench.py - `bench` measures what it says, and leaves nothing behind. How long
anything takes is no test.
"""

import re

import tap
from session import ask, at_prompt

FIGURE = re.compile(r"sonde\.(\S+) ([0-9.]+) \S+")


def figures(text):
    lines = text.splitlines()
    found = [FIGURE.fullmatch(line) for line in lines]
    tap.equal([l for l, f in zip(lines, found) if not f], [], "every line is a figure")
    return {match[1]: float(match[2]) for match in found if match}


def stat(guest, name):
    return int(re.search(rf"^{re.escape(name)} (\d+)$", ask(guest, "probe stat"), re.M)[1])


def parts_of_the_hits():
    ways = {"int3_boostable": "boost", "int3_emulated": "emulate", "int3_tf": "step"}
    with at_prompt(smp=1) as guest:
        for kind, way in ways.items():
            before = stat(guest, f"hits.{way}")
            out = figures(ask(guest, f"bench hit.{kind}"))
            names = {f"hit.{kind}.cycles", f"hit.{kind}.cycles_min"}
            tap.equal(set(out), names, f"bench hit.{kind}: two figures")
            tap.check(min(out.values()) > 0, "a hit costs something")
            tap.check(stat(guest, f"hits.{way}") - before > 500000, f"they went by {way}")
        tap.check("step-int3" in ask(guest, "probe stat"), "the step engine is as before")
        tap.equal(stat(guest, "probes"), 0, "no probe is left")


def jumps():
    knob = "/proc/sys/debug/kprobes-optimization"
    with at_prompt(smp=2) as guest:
        ask(guest, f"echo 0 > {knob}")
        for kind in ("opt", "opt_pad", "opt_count", "opt_light"):
            hits, traps = stat(guest, "hits"), stat(guest, "traps")
            out = figures(ask(guest, f"bench hit.{kind}"))
            names = {f"hit.{kind}.cycles", f"hit.{kind}.cycles_min"}
            tap.equal(set(out), names, f"bench hit.{kind}: two figures")
            tap.check(stat(guest, "hits") - hits > 500000, "each call was a hit")
            tap.check(stat(guest, "traps") - traps < 1000, "and none a trap")
        for kind in ("kret_opt", "kprobe_kret_opt", "jprobe_opt", "opt_posthandler"):
            tap.check(figures(ask(guest, f"bench hit.{kind}")), f"bench hit.{kind}")
        tap.equal(ask(guest, f"cat {knob}").strip(), "0", "the switch is as before")
        tap.equal(stat(guest, "probes"), 0, "no probe is left")


def a_crowd_and_the_cache():
    with at_prompt(smp=2) as guest:
        out = figures(ask(guest, "bench scale.1000 cache"))
        for name in ("register_one_by_one", "register_set", "unregister_set", "optimize_set"):
            tap.check(out.get(f"scale.{name}.1000.ns_per_probe"), f"{name} was measured")
        tap.check(0 < out.get("mem.per_probe.bytes", 0) < 1000, "probes take memory")
        tap.check(out.get("scale.hit.1000.cycles"), "and hits among them time")
        tap.check(out.get("scale.optimize_set.1000.breakpoints", 1000) <= 10, "by jumps")
        tap.check(0 < out.get("mem.jump_per_probe.bytes", 0) < 1000, "these take more")
        tap.check(50 < out.get("cache.hit_ratio", 0) <= 100, "most hits are in the cache")
        tap.equal(stat(guest, "probes"), 0, "no probe is left")


def what_it_does_not_have():
    with at_prompt(smp=1) as guest:
        for words, name in (("nothing", "EINVAL"), ("hit.nothing", "ENOENT"),
                            ("scale.7", "ENOENT"), ("cache.x", "ENOENT")):  # fmt: skip
            reply = guest.machine.request(f"bench {words}", 60)
            tap.equal(reply.name, name, f"bench {words}")


tap.run(parts_of_the_hits, jumps, a_crowd_and_the_cache, what_it_does_not_have)
