"""asm_frames.py - where the words of a stack lie at each instruction of an assembly routine.

A compiler tells debuggers this about its code; NASM does not. But it follows from the
instructions that move the stack pointer, that store registers, and that load registers
again. So this program walks each routine along all its branches. Some facts follow from
no instruction, such as what lies on the stack after a trap. The source states them as
`frame KIND` (kernel/base/proc.inc), in front of an instruction.

All places are counted from the CFA, the canonical frame address: an address that is the same
at all instructions of a routine. A register that was stored has its value at a place until
it is loaded from there again. A register that was not stored is taken to be unchanged.
"""

import dataclasses
import os
import re

WORD = 8
HERE = os.path.dirname(os.path.abspath(__file__))
ROW = re.compile(r'X\("(\w+)", \w+, \d+, \d+, (\d+)\)')


def registers():
    """{name: DWARF's number} of the table kernel/base/registers.h."""
    with open(os.path.join(HERE, "../base/registers.h"), encoding="utf-8") as file:
        return {name: int(number) for name, number in ROW.findall(file.read())}


REGISTERS = registers()
RETURN, FLAGS = 16, 49  # further numbers
STACK = REGISTERS["rsp"]
IMAGE_REGISTERS = {name: number for name, number in REGISTERS.items() if number != STACK}

# The fields of struct pt_regs, and their places. The CFA of a trap is the struct's end.
IMAGE_WORDS = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi aux orig_ax "
    "ip cs flags sp ss"
).split()
IMAGE_LEN = len(IMAGE_WORDS) * WORD
AT = {name: i * WORD - IMAGE_LEN for i, name in enumerate(IMAGE_WORDS)}

# The kinds of `frame`, in the order of their numbers in proc.inc.
KINDS = (
    "call end same trap trap_error int3 image leaving way_back detour detour_called "
    "detour_post returns returning returned pattern"
).split()


@dataclasses.dataclass
class State:
    """What is known before one instruction is executed."""

    rsp: int = None  # the CFA is this many bytes above rsp; None: unknown
    rbp: int = None  # the CFA is this many bytes above rbp; None: rbp is no frame pointer
    saved: dict = dataclasses.field(default_factory=dict)  # number: place from the CFA
    # number: Rule, of RETURN and STACK
    rules: dict = dataclasses.field(default_factory=dict)

    def copy(self):
        return State(self.rsp, self.rbp, dict(self.saved), dict(self.rules))

    @property
    def is_known(self):
        return self.rsp is not None or self.rbp is not None


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a register of the caller is found. how: at (an address), value, unknown"""

    how: str
    words: tuple = ()  # of a DWARF expression for it, which begins with the CFA


def at(place):
    return Rule("at", (("plus", place),))


UNKNOWN = Rule("unknown")
TRAP = {RETURN: at(AT["ip"]), STACK: at(AT["sp"])}
# The program is at the int3 that has trapped: one byte before the ip.
INT3 = Rule("value", (("plus", AT["ip"]), "deref", ("lit", 1), "minus"))


def cell_owner(place):
    """Words that compute the struct site of the cell that the address at @place is in.
    The last word of a cell is the address of its site: insn_slot.h."""
    return (
        ("plus", place),
        "deref",
        ("lit", 1),
        "plus",
        ("lit", 31),
        "or",
        ("lit", 7),
        "minus",
        "deref",
    )


def starting(kind, args):
    """The state at a `frame @kind` in the source; None: the kind changes no state."""
    site_addr, site_len = args
    probed = ("deref_at", site_addr)
    if kind == "same":
        return None
    if kind == "call":
        return State(WORD, None, {}, {RETURN: at(-WORD)})
    if kind == "end":
        return State(WORD, None, {}, {RETURN: UNKNOWN})
    if kind in ("trap", "int3", "trap_error"):
        rules = {**TRAP, RETURN: INT3} if kind == "int3" else dict(TRAP)
        return State(
            (5 + (kind == "trap_error")) * WORD, None, {FLAGS: AT["flags"]}, rules
        )
    if kind == "image":
        saved = {number: AT[name] for name, number in IMAGE_REGISTERS.items()}
        return State(IMAGE_LEN, None, {**saved, FLAGS: AT["flags"]}, dict(TRAP))
    if kind == "way_back":
        return State(2 * WORD, None, {FLAGS: -2 * WORD}, {RETURN: at(-WORD)})
    if kind == "detour":
        place = Rule("value", (*cell_owner(-WORD), probed))
        return State(WORD, None, {}, {RETURN: place})
    if kind == "detour_called":
        place = Rule("value", (*cell_owner(-2 * WORD), probed))
        return State(2 * WORD, None, {}, {RETURN: place})
    if kind == "detour_post":
        behind = (
            *cell_owner(-WORD),
            "dup",
            probed,
            "swap",
            ("plus", site_len),
            ("deref_size", 1),
            "plus",
        )
        return State(WORD, None, {}, {RETURN: Rule("value", behind)})
    if kind in ("returns", "pattern"):
        return State(0, None, {}, {RETURN: UNKNOWN})
    raise ValueError(f"no start of a frame: {kind}")


def changed(kind, state):
    """The state at a `frame @kind` of a kind that changes only a part of @state."""
    state = state.copy()
    if kind == "leaving":  # the two words of the way back are where orig_ax says
        words = (("plus", AT["orig_ax"]), "deref")
        state.rules = {
            RETURN: Rule("at", (*words, ("plus", WORD))),
            STACK: Rule("value", (*words, ("plus", 2 * WORD))),
            FLAGS: Rule("at", words),
        }
        state.saved.pop(FLAGS, None)
    elif kind == "returning":
        state.rules = {RETURN: at(AT["ip"])}
    elif kind == "returned":
        state.rules = {RETURN: at(-WORD)}
    return state


CHANGES = ("leaving", "returning", "returned")
SIGNAL = set(KINDS) - {"call", "end", "same", "returns", "returning", "returned"}


# ---- one instruction ----

IMMEDIATE = re.compile(r"0x[0-9a-f]+|\d+")
FROM_REGISTER = re.compile(r"\[(rsp|rbp)(?:([+-])0x([0-9a-f]+))?\]$")
ENDS = ("ret", "iretq", "jmp", "ud2", "retfq", "retf", "int3")
BRANCH = re.compile(r"j\w+|loop\w*")


def offset_in(operand):
    """(register, bytes) of an operand such as [rsp+0x8]; None: it is another operand."""
    match = FROM_REGISTER.search(operand)
    if not match:
        return None
    distance = int(match[3] or "0", 16)
    return match[1], -distance if match[2] == "-" else distance


def place_of(state, operand):
    """Where a word of the stack is, from the CFA."""
    found = offset_in(operand)
    if not found:
        return None
    base = state.rsp if found[0] == "rsp" else state.rbp
    return None if base is None else found[1] - base


def store(state, name, place):
    """The register was stored. If it was stored before, the first place stays valid."""
    number = FLAGS if name == "flags" else REGISTERS.get(name)
    if number is not None and place is not None and number != STACK:
        state.saved.setdefault(number, place)


def load(state, name, place):
    number = FLAGS if name == "flags" else REGISTERS.get(name)
    if name == "rbp":
        state.rbp = None
    if place is not None and number is not None and state.saved.get(number) == place:
        del state.saved[number]


def move_stack(state, bytes_down):
    if state.rsp is not None:
        state.rsp += bytes_down


def set_stack(state, operand):
    """lea rsp, OPERAND"""
    place = place_of(state, operand)
    state.rsp = None if place is None else -place


def step(state, name, operands):
    """The state after an instruction."""
    state = state.copy()
    first, second = (operands + ["", ""])[:2]
    if name.startswith("push"):
        move_stack(state, WORD)
        top = None if state.rsp is None else -state.rsp
        store(state, "flags" if name.startswith("pushf") else first, top)
    elif name.startswith("pop") and name != "popcnt":
        top = None if state.rsp is None else -state.rsp
        load(state, "flags" if name.startswith("popf") else first, top)
        move_stack(state, -WORD)
    elif name == "leave":
        state.rsp = None if state.rbp is None else state.rbp - WORD
        load(state, "rbp", None if state.rsp is None else -state.rsp - WORD)
        state.saved.pop(REGISTERS["rbp"], None)
    elif first == "rsp":
        if name in ("sub", "add") and IMMEDIATE.fullmatch(second):
            move_stack(state, int(second, 0) * (1 if name == "sub" else -1))
        elif name == "lea":
            set_stack(state, second)
        elif name not in ("cmp", "test"):
            state.rsp = None
    elif first == "rbp" and name == "mov" and second == "rsp":
        state.rbp = state.rsp
    elif name == "mov" and second in REGISTERS:
        store(state, second, place_of(state, first))
    elif name == "mov" and first in REGISTERS:
        load(state, first, place_of(state, second))
    elif name == "xchg" and first in REGISTERS:
        load(state, first, place_of(state, second))
    elif name == "xchg" and second in REGISTERS:
        load(state, second, place_of(state, first))
    return state


# ---- a routine ----


@dataclasses.dataclass(frozen=True)
class Insn:
    addr: int
    name: str
    operands: list
    next: int  # the address behind the instruction
    target: int = None  # of a direct branch

    @property
    def goes_on(self):
        return self.name not in ENDS


def walk(insns, start, marks):
    """{address: State} of all instructions that are reached from @start or from @marks.

    insns: {address: Insn} of one routine   marks: {address: [(kind, args)]}
    """
    states, todo = {}, []

    def reach(addr, state):
        """The code before leads to @addr with @state; None: no code leads there."""
        for kind, args in marks.get(addr, ()):
            if kind in CHANGES:
                state = changed(kind, state or State())
            elif kind != "same":
                state = starting(kind, args)
        if state is None or addr not in insns:
            return
        if addr in states and (states[addr].is_known or not state.is_known):
            return
        states[addr] = state
        todo.append(addr)

    reach(start, starting("call", (0, 0)))
    for addr in sorted(marks):
        if any(kind not in CHANGES and kind != "same" for kind, _ in marks[addr]):
            reach(addr, None)
    while todo:
        insn = insns[todo.pop()]
        before = states[insn.addr]
        after = step(before, insn.name, insn.operands)
        if insn.target is not None and BRANCH.fullmatch(insn.name):
            reach(insn.target, after)
        if insn.goes_on:
            same = any(kind == "same" for kind, _ in marks.get(insn.next, ()))
            reach(insn.next, before if same else after)
    return states
