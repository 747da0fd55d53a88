"""grader.py - grades lab 1: makes another bomb for each seed, and knows its six keys."""

import os
import random

from docs.labs.host.grade import Difference, Workshop as Hosted
from sonde.errors import write_whole
from sonde.guest import ROOT
from sonde.options import UsageError
from docs.labs.host.in_guest import GuestWorkshop, Seen

PHASES = ("count", "argument", "register", "return", "caller", "inlined")
NAMES = """amber basalt chalk cobalt copper coral flint garnet gypsum iron jade jasper lead
    marble nickel onyx opal pearl quartz ruby silver slate tin topaz zinc""".split()
CALLERS = 8
SHUT, MODULUS = 0x9E3779B1, 2**32


def shut(number):
    """Return @number in the form that bomb.c contains, so that the number itself is not
    in the object. The bomb computes the number from it when it runs.
    """
    return f"{number * SHUT % MODULUS}u"


class Bomb:
    """The names and numbers in the bomb of a seed. keys: {phase: key as text}."""

    def __init__(self, seed):
        dice = random.Random(f"bomb {seed}")
        names = dice.sample(NAMES, len(NAMES))
        self.names = {phase: names.pop() for phase in PHASES}
        self.also = names.pop()
        self.callers = {names.pop(): which for which in dice.sample(range(50), CALLERS)}
        keys = {phase: dice.randrange(10000, 2**24) for phase in PHASES}
        keys["count"] = dice.randrange(1000, 9000)
        keys["inlined"] = dice.randrange(1000, 9000)
        self.numbers = dict(keys)
        keys["caller"] = dice.choice(sorted(self.callers))
        self.keys = {phase: str(key) for phase, key in keys.items()}
        self.which = {
            "argument": dice.randrange(40),
            "return": dice.randrange(40),
            "caller": self.callers[keys["caller"]],
        }
        self.fold_by = dice.randrange(2**20, 2**24) | 1

    def defines(self):
        """Return the options for the compiler."""
        rows = {
            "OPENS": pow(SHUT, -1, MODULUS),
            "FOLD_BY": self.fold_by,
            "NAME_ALSO": self.also,
        }
        rows["CALLERS(A)"] = " ".join(
            f"A({n}, {shut(which)})" for n, which in self.callers.items()
        )
        for phase in PHASES:
            rows["NAME_" + phase.upper()] = self.names[phase]
            rows["SHUT_" + phase.upper()] = shut(self.numbers[phase])
        for phase, which in self.which.items():
            rows["WHICH_" + phase.upper()] = which
        return [f"-D{name}={value}" for name, value in rows.items()]


def begin(path, seed):
    """Make the files that are different for each student: bomb.o and its seed. If there
    is a bomb, make it again with the same keys, because the kernel may have changed.
    Return the names of the files that were not there before.
    """
    kept = os.path.join(path, "seed")
    new = [
        file
        for file in ("bomb.o", "seed")
        if not os.path.exists(os.path.join(path, file))
    ]
    if seed is None and os.path.exists(kept):
        seed = seed_of(path)
        if seed is None:  # another bomb would have other keys
            raise UsageError(f"{kept} has no seed; without this file, a new bomb is made")
    if seed is None:
        seed = random.SystemRandom().randrange(2**31)
    write_whole(kept, f"{seed}\n".encode())
    make(ROOT, path, seed)
    return new


def make(tree, path, seed):
    """Compile the bomb of a seed into a folder."""
    workshop = GuestWorkshop("bomb", tree, path)
    made = workshop.kernel_object(
        os.path.join(workshop.grader, "bomb.c"), ".made", Bomb(seed).defines()
    )
    os.replace(made, os.path.join(path, "bomb.o"))
    os.rmdir(os.path.dirname(made))
    os.remove(os.path.join(path, "messages"))


def seed_of(path):
    """Return the seed of the bomb in a folder; None: there is none."""
    try:
        with open(os.path.join(path, "seed"), encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


class Workshop(Hosted):
    """Grades the file `keys`, which a student hands in. Its lines are PHASE KEY."""

    def build_ours(self):
        pass

    def build_answer(self, handed_in):
        with open(
            self.taken(handed_in, "keys"), encoding="utf-8", errors="replace"
        ) as file:
            rows = [line.split("#")[0].split() for line in file]
        self.found = {
            row[0].rstrip(":"): " ".join(row[1:]).lstrip(": ") for row in rows if row
        }

    def compare(self, line, seed, case):
        key = self.found.get(line, "")
        right = Bomb(seed).keys[line]
        if is_key(key, right):
            return None
        why = f"'{key[:40]}' is not the key" if key else "there is no key yet"
        if key and right.isdecimal() and not is_number(key):
            why = f"'{key[:40]}' is no number; write 417 or 0x1a1"
        unknown = sorted(set(self.found) - set(PHASES))
        if not key and unknown:
            why += f"; there is no phase '{unknown[0][:40]}'"
        return Difference([], [], Seen(why))

    def how_to_debug(self, line, seed, case):
        return None


def is_number(text):
    try:
        int(text, 0)
        return True
    except ValueError:
        return False


def is_key(found, key):
    """Is @found the right key? A number may be written in any base. A function may be
    written as `trace` prints a place in it.
    """
    if is_number(found) and key.isdecimal():
        return int(found, 0) == int(key)
    return found.removeprefix("bomb:").partition("+")[0] == key
