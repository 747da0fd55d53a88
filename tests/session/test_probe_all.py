"""test_probe_all.py - puts a probe on every instruction. All workloads must run as they
do without probes.
"""

import re

import tap
from session import ask, at_prompt, sonde, typed

COMMANDS = ("run all", "probe all", "run all", "probe stat")
# To remove the probes takes as long as to set them, so only the long run does that.
COMMANDS_LONG = (*COMMANDS, "probe del all", "run all")
LIMIT = 600


def checksums(text):
    return re.findall(r"^(\w+): checksum (0x[0-9a-f]+)", text, re.M)


def stat(text, name):
    row = re.search(rf"^{re.escape(name)} (\d+)$", text, re.M)
    return int(row[1]) if row else None


def everything_is_probed_and_nothing_changes():
    commands = COMMANDS_LONG if tap.LONG else COMMANDS
    words = (
        "exec",
        "--smp",
        "4" if tap.LONG else "2",
        "--timeout",
        str(LIMIT),
        *commands,
    )
    status, out, err = sonde(*words, limit=LIMIT + 60)
    tap.equal((status, err), (0, ""), "the commands succeed")
    armed = re.search(r": armed (\d+) of (\d+) instructions", out)
    tap.check(armed and int(armed[1]) > 40000, "tens of thousands of instructions")
    tap.equal(stat(out, "armed"), int(armed[1]), "stat agrees")
    jumps, rest = map(int, re.search(r"^jumps (\d+) of (\d+) ", out, re.M).groups())
    tap.check(jumps >= rest * 0.9999, f"{jumps} of {rest} instructions are jumps")
    tap.check(stat(out, "hits") > 10000000, "they are hit")
    tap.check(0 < stat(out, "traps") < stat(out, "hits") / 10, "traps are the exception")
    found = checksums(out)
    runs = commands.count("run all")
    each = len(found) // runs
    tap.check(each > 20, "all workloads have run")
    tap.equal(found, found[:each] * runs, "with the same checksums as without probes")


def people_see_that_it_goes_on():
    with at_prompt(smp=2) as guest:
        lines = typed(guest, "probe all vfs_* --ent\t")
        tap.check(
            "functions, " in lines[1] and "probes are being armed" in lines[1],
            "progress, in a line that is written over",
        )
        tap.check(re.search(r"p1: armed \d+ of \d+ entries", lines[1]), "then the result")
        lines = typed(guest, "probe de\tp\t")
        tap.check(lines[0].endswith("probe del p1 "), "names are completed")
        lines = typed(guest, "probe exp\tvfs_rea\t| grep verdict")
        tap.equal(lines[1:], ["verdict    can be probed"], "symbols too")
        lines_of_source_are_completed(guest)


def lines_of_source_are_completed(guest):
    lines = typed(guest, "probe add vfs.c\t14\t\t\x15")  # Ctrl-U
    tap.check(
        lines[0].endswith("probe add vfs.c:14"), "the colon behind the name of a file"
    )
    found = re.findall(r"\bvfs\.c:(14\d+)", "\n".join(lines[1:]))
    tap.check(len(found) > 2, f"lines that have code: {found}")
    for number in found:
        tap.check("no code" not in ask(guest, f"probe explain vfs.c:{number}"), number)
    lines = typed(guest, f"probe explain fs/vfs.c:{found[-1]}\t| grep verdict")
    tap.equal(lines[1:], ["verdict    can be probed"], "and the only one that is left")


tap.run(
    everything_is_probed_and_nothing_changes,
    people_see_that_it_goes_on,
)
