#!/usr/bin/env python3
"""bochs_test.py - run the kernel's own tests in one boot of Bochs, and print TAP.

    tests/run/bochs_test.py SELECTION SMP          e.g. kprobe,frame 2

Bochs has no device that ends it with a status, so it is killed when the last test has its
verdict. SEED=N repeats a run, LIMIT=N ends it after N seconds.
"""

import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
import image
import tap
from bochs import Bochs, make_iso
from ktap import Flat

LIMIT = 7200  # seconds


def main():
    selection, smp = sys.argv[1], int(sys.argv[2])
    words = f"tests={selection} kprobes-jump=off"
    if os.environ.get("SEED"):
        words += " seed=" + os.environ["SEED"]
    end = time.monotonic() + float(os.environ.get("LIMIT", LIMIT))
    flat = Flat(lambda line: print(line, flush=True), f"Bochs, {smp} CPUs, ")
    with tempfile.TemporaryDirectory(prefix="sonde-bochs-") as folder:
        iso = make_iso(folder, image.TESTS, words)
        with Bochs(iso, smp) as bochs:
            while flat.planned is None or flat.tests < flat.planned:
                line = bochs.expect(b"\n", max(0, end - time.monotonic()))
                if line is None:
                    flat.result("not ok", "the guest has no end")
                    for line in bochs.last_lines():
                        print("# | " + line)
                    break
                flat.take(line)
    flat.finish()


if __name__ == "__main__":
    tap.quiet_interrupts()
    main()
