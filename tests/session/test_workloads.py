"""test_workloads.py - a seed must give the same checksums on any number of CPUs."""

import re

import tap
from session import ask, at_prompt, run_on

SEED = 42


def checksums(guest):
    text = ask(guest, f"run all {SEED}")
    return dict(re.findall(r"^(\w+): checksum (0x[0-9a-f]+)", text, re.M))


def they_do_not_depend_on_cpus():
    seen = {}
    for smp in (1, 3):
        with at_prompt(smp=smp) as guest:
            seen[smp] = checksums(guest)
    tap.check(len(seen[1]) >= 12, f"{len(seen[1])} workloads")
    for name in seen[1]:
        tap.equal(seen[3].get(name), seen[1][name], f"{name}: 1 and 3 CPUs agree")


def the_list_says_what_they_do(guest):
    names = ask(guest, "run list").split()
    tap.check("vfs" in names and "fork" in names, "run list has vfs and fork")
    rows = ask(guest, "run list").splitlines()
    lost = [row for row in rows if len(row.split()) < 3]
    tap.check(rows and not lost, f"and says what each of {len(rows)} does: {lost}")


if __name__ == "__main__":
    they_do_not_depend_on_cpus()
    with at_prompt() as shared:
        run_on(shared, the_list_says_what_they_do)
