"""test_questions.py - the counts of `trace`: a function is counted the same alone and
together with all others, and what the tracer does itself is not in an answer.
"""

import random
import re

import tap
from session import ask, at_prompt

ALONE = 10  # functions that are asked alone
TRACING = "/sys/kernel/tracing"


def counts(text):
    return {name: int(n) for n, name in re.findall(r"^ +(\d+)  (\S+)$", text, re.M)}


def alone_and_together():
    with at_prompt(smp=1) as guest:
        both = [counts(ask(guest, "trace count '*' -- run vfs")) for _ in range(2)]
        steady = sorted(
            f
            for f, n in both[0].items()
            if both[1].get(f) == n and re.match(r"vfs_|work_|seq_|str|memcpy", f)
        )
        tap.check(len(steady) >= 20, f"{len(steady)} functions have the same count twice")
        said = ask(guest, "run vfs")
        calls = re.search(r"calls (\d+) of vfs_read", said)
        tap.equal(
            both[0].get("vfs_read"), int(calls[1]), "that of vfs_read is what it says"
        )
        wrong = {}
        for name in ["memcpy", *random.sample(steady, ALONE)]:  # the tracer copies
            got = counts(ask(guest, f"trace count {name} -- run vfs"))
            if got != {name: both[0][name]}:
                wrong[name] = got, both[0][name]
        tap.equal(wrong, {}, f"{ALONE} of them have it alone, too")


def the_tracers_own_hits_are_misses():
    with at_prompt(smp=1) as guest:
        for name, place in (("x", "vfs_read"), ("y", "memcpy")):
            ask(guest, f"echo 'p:own/{name} {place}' >> {TRACING}/kprobe_events")
            ask(
                guest,
                f"echo 'hist:keys=stacktrace' > {TRACING}/events/own/{name}/trigger",
            )
        ask(guest, "run vfs")
        row = ask(guest, f"cat {TRACING}/kprobe_profile").splitlines()[1]
        found = re.match(r" +y +(\d+) +(\d+).* own=(\d+)$", row)
        if tap.check(found, f"they have a cause of their own: {row.strip()}"):
            table = ask(guest, f"cat {TRACING}/events/own/y/hist")
            hits = int(re.search(r"Hits: (\d+)", table)[1])
            more = hits - int(found[1])  # what reading the files has called
            tap.check(0 <= more < int(found[3]) // 4, "the table is without them")
            tap.check(int(found[2]) >= int(found[3]) > 0, "they are among the misses")


tap.run(alone_and_together, the_tracers_own_hits_are_misses)
