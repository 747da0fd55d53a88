"""test_requests.py - tests that the machine interface transfers every byte correctly
under load.
"""

import os
import random
import threading
import time

import tap
from sonde.machine import quote
from session import LIMIT, ask, at_prompt, run_on, typed

SEED = int(os.environ.get("SEED", time.time()))
REPLIES, LISTS = (100, 5) if tap.LONG else (20, 1)


def answers_are_exact_under_load(guest):
    """A command on COM1 keeps all CPUs busy while the test sends requests to COM3."""
    chance = random.Random(SEED)
    symbols = ask(guest, "cat /proc/kallsyms")
    stop = threading.Event()

    def load():
        while not stop.is_set():
            typed(guest, "run all")

    loader = threading.Thread(target=load)
    loader.start()
    wrong = 0
    try:
        for _ in range(REPLIES):
            data = chance.randbytes(chance.randrange(1, 2000))
            reply = guest.machine.request(f"echo -ne {quote(data)}", LIMIT, may_fail=True)
            wrong += reply.output != data or reply.errno != 0
        for _ in range(LISTS):
            wrong += ask(guest, "cat /proc/kallsyms") != symbols
    finally:
        stop.set()
        loader.join(LIMIT)
    tap.equal(wrong, 0, f"{REPLIES + LISTS} replies under load, none with a wrong byte")


if __name__ == "__main__":
    tap.note(f"seed {SEED}")
    with at_prompt(smp=4) as shared:
        run_on(shared, answers_are_exact_under_load)
