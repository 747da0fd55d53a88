"""solve.py - solves lab 1 as a student does: asks the guest with probes, and looks
at the object.

    solve.py FOLDER     reads FOLDER/bomb.o, writes FOLDER/keys
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def sonde(folder, *commands):
    """Run commands in a guest with the bomb. Return what they print."""
    words = [
        os.path.join(os.environ["SONDE_ROOT"], "sonde"),
        "module",
        os.path.join(folder, "bomb.o"),
        *commands,
    ]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def place_of(folder, function, mnemonic):
    """Return FUNCTION+OFFSET of the function's only instruction with this mnemonic."""
    words = [
        "objdump",
        "-d",
        "--no-show-raw-insn",
        f"--disassemble={function}",
        os.path.join(folder, "bomb.o"),
    ]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    start = int(re.search(rf"^([0-9a-f]+) <{function}>:", listed, re.M)[1], 16)
    at = int(re.search(rf"^ *([0-9a-f]+):\s+{mnemonic}", listed, re.M)[1], 16)
    return f"{function}+{at - start:#x}"


class Phase:
    """How to solve a phase of the bomb. The attributes asked and answer are patterns.

    asked: finds the function in the question of the bomb, and a number if it has one
    commands: returns the commands that find the key, with one run of the bomb
    answer: finds the key in the output of these commands
    """

    def __init__(self, asked, commands, answer):
        self.asked, self.commands, self.answer = asked, commands, answer


def trace(question):
    return lambda folder, name: [f"trace '{question.format(name=name)}' -- run bomb"]


def count(place):
    return ["probe add bomb:" + place, "run bomb", "probe list", "probe del all"]


def register(folder, name):
    return trace("bomb:{name} {{ print %bx }}")(folder, place_of(folder, name, "bswap"))


def inlined(folder, name):
    return count(place_of(folder, name, "imul +\\$0x[0-9a-f]{4,},"))


HITS = r"k \w+ +(\d+) +\d+ +bomb:"
PHASES = {
    "count": Phase(r"is (\w+) called", lambda _, name: count(name), HITS),
    "argument": Phase(
        r"of (\w+) when the first is (\d+)",
        trace("bomb:{name} {{ print %di, %dx }}"),
        r"arg1={which:#x} arg2=(\w+)",
    ),
    "register": Phase(r"when (\w+) is", register, r"arg1=(\w+)"),
    "return": Phase(
        r"does (\w+) return .* is (\d+)",
        trace("ret bomb:{name} {{ print $arg1, retval }}"),
        r"arg1={which:#x} retval=(\w+)",
    ),
    "caller": Phase(
        r"calls (\w+) with (\d+)",
        trace("bomb:{name} {{ count by %di, caller }}"),
        r"\n *\d+ +{which:#x} +(\w+)",
    ),
    "inlined": Phase(r"does (\w+) multiply by", inlined, HITS),
}


def solve(folder):
    riddle = sonde(folder, "run bomb")
    commands, numbers = [], []
    for name, phase in PHASES.items():
        function, *number = re.search(rf"^{name} .*{phase.asked}", riddle, re.M).groups()
        commands += phase.commands(folder, function)
        numbers.append(int((number or [0])[0]))
    said = sonde(folder, *commands).split(riddle.split("\n", 1)[0])[1:]
    with open(os.path.join(folder, "keys"), "w", encoding="ascii") as keys:
        for (name, phase), text, number in zip(PHASES.items(), said, numbers):
            answer = phase.answer.replace("{which:#x}", hex(number))
            print(name, re.search(answer, text)[1], file=keys)


if __name__ == "__main__":
    solve(sys.argv[1])
