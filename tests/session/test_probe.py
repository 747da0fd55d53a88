"""test_probe.py - the main job: a probe sees every call, on one CPU and on four."""

import re

import tap
from session import ask, at_prompt, sonde

COMMANDS = ("probe add vfs_read", "run vfs", "probe list")


def counts(text):
    """Calls that `run vfs` printed, and hits and misses that `probe list` printed."""
    calls = re.search(r"calls (\d+) of vfs_read", text)
    row = re.search(r"\b(\d+) +(\d+) +vfs_read\+0x0$", text, re.M)
    return calls and int(calls[1]), row and (int(row[1]), int(row[2]))


def hits_equal_calls():
    for boot in ("pvh", "iso", "uefi"):
        for smp in ("1", "4") if boot == "pvh" else ("4",):
            status, out, err = sonde("exec", "--boot", boot, "--smp", smp, *COMMANDS)
            calls, row = counts(out)
            what = f"{boot}, {smp} CPUs: "
            tap.equal((status, err), (0, ""), what + "the three commands succeed")
            if not tap.check(calls and row == (calls, 0), what + "hits equal calls"):
                tap.note(out)


def the_prompt_is_quick():
    status, _, err = sonde("exec", "-v", "--smp", "4", "cat /proc/version")
    tap.check(status == 0 and "prompt after" in err, "-v tells the time to the prompt")
    tap.note(err)


def refusals_say_why():
    with at_prompt() as guest:
        for place, name in (
            ("no_such_symbol", "ENOENT"),
            ("exc_int3", "EPERM"),
            ("vfs_read+1", "EILSEQ"),
            ("vfs_read+100000", "ENOENT"),
        ):
            reply = guest.machine.request(f"probe add {place}", 30)
            tap.equal(reply.name, name, f"probe add {place}")
            tap.check(reply.text.strip(), "and it says why")
            tap.note(reply.text)
        tap.equal(ask(guest, "probe list").count("vfs_read"), 0, "nothing was added")


tap.run(hits_equal_calls, the_prompt_is_quick, refusals_say_why)
