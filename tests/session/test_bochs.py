"""test_bochs.py - the kernel starts all CPUs in Bochs, and a probe is hit there. The long run
has many of the kernel's own tests there as well: kernel/bochs2.
"""

import re

import tap
from bochs import Bochs
from sonde.guest import ISO, PROMPT

CPUS = 4
LIMIT = 300  # seconds; the prompt comes after about 20 s


def all_cpus_start_where_nothing_is_forgiven():
    with Bochs(ISO, CPUS) as bochs:

        def answer(command):
            bochs.type(command)
            bochs.expect(b"\n", LIMIT)  # the echo
            return bochs.expect(PROMPT, LIMIT) or ""

        log = bochs.expect(PROMPT, LIMIT)
        tap.check(log is not None, "the prompt")
        tap.check(f"smp: {CPUS} CPUs online" in (log or ""), f"{CPUS} CPUs are online")
        if not log:
            for line in bochs.last_lines():
                tap.note(line)
            return
        answer("probe add memcpy")
        answer("run format")
        hits = re.search(r"(\d+) +0 +memcpy", answer("probe list"))
        tap.check(hits and int(hits[1]) > 0, "a probe is hit")


tap.run(all_cpus_start_where_nothing_is_forgiven)
