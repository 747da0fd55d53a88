"""program_model.py - programs of hits at random, and what each must leave: a model of
probes/program that shares nothing with it but the names of the operations.
"""

import functools
import math
import random

MASK = (1 << 64) - 1
MEMORY, WORDS, TABLE, HITS = 1024, 80, 64, 3
OPS_MAX, TOGETHER = 32, 4
VALUE, IMM, ADDRESS, CPU, THREAD, OWN, CYCLES = range(16, 23)
SP, DI = 4, 7
KEYED, SIGNED, OR_ZERO, UP = 1, 2, 4, 8
ANY, NONE = 16, 17
KINDS = ("live", "dead", "call")
PAGE = 4096
LOWEST = 0x10000  # no memory lies below, and none from HIGHEST on
HIGHEST = 1 << 47


class Unknown(Exception):
    """A program reads memory whose content the model does not know."""


class Fault(Exception):
    """A load fails."""


class End(Exception):
    """The program ends."""


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        x = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        yield x ^ x >> 31


def signed(value, bits=64):
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


# ---- a program, and what it leaves ----


class Op:
    def __init__(self, name, source=0, sub=0, skip=0, at=0, imm=0):
        self.name, self.source, self.sub = name, source, sub
        self.skip, self.at, self.imm = skip, at, imm

    def changed(self, **fields):
        return Op(**{**vars(self), **fields})

    def __str__(self):
        numbers = (self.source, self.sub, self.skip, self.at, self.imm)
        return f"{self.name},{','.join(map(hex, numbers))}"


class Case:
    """Programs at one place. @seed: of registers, flags and memory"""

    def __init__(self, kind, seed, programs):
        self.kind, self.seed, self.programs = kind, seed, programs

    def __str__(self):
        programs = " + ".join(" ".join(map(str, ops)) for ops in self.programs)
        return f"{self.kind} {self.seed} {programs}"


class Machine:
    """What program_ways.c says of itself in its first line."""

    def __init__(self, line):
        numbers = [int(word, 16) for word in line.split()]
        self.memory, self.top, self.cpu, self.thread = numbers[:4]
        self.places = numbers[4:]

    def place(self, case, slot):
        return self.places[KINDS.index(case.kind) * len(self.places) // len(KINDS) + slot]


@functools.cache
def input_of(seed):
    """The memory and the registers of input number @seed, as fixture.c has them."""
    numbers = splitmix(seed)
    words = [next(numbers) for _ in range(MEMORY // 8)]
    memory = b"".join(word.to_bytes(8, "little") for word in words)
    return memory, [next(numbers) for _ in range(16)]


class Hit:
    """Memory and registers that a hit finds."""

    def __init__(self, machine, seed, ip):
        self.memory, registers = input_of(seed)
        self.start, self.machine, self.ip = machine.memory, machine, ip
        self.registers = registers[:]
        self.registers[DI] = self.start
        self.registers[SP] = machine.top - 56  # fixture_call.asm, program_places.asm

    def load(self, at, size):
        off = at - self.start
        if at + size <= LOWEST or HIGHEST <= at <= MASK + 1 - size:
            raise Fault
        if MEMORY - size < off < MEMORY + PAGE - size:
            raise Fault  # a page that cannot be read follows
        if not 0 <= off <= MEMORY - size:
            raise Unknown
        return int.from_bytes(self.memory[off : off + size], "little")


class Program:
    """What a program of a case has left so far. @tables: of the case"""

    def __init__(self, ops, tables):
        self.ops, self.tables = ops, tables
        self.hits = self.calls = self.reserved = self.commits = 0
        self.words = [self.begins(i) for i in range(WORDS)]
        self.faults = 0
        self.record = bytearray(64)

    def begins(self, word):
        last, table = 0, None  # the greatest key so far; (begin, end, of)
        for op in self.ops:
            last = max(last, key_max(op))
            counts = op.name in ("count", "sum", *BEGINS) and op.at <= word
            if counts and (not table or op.at > table[0]):
                table = op.at, op.at + (last if op.sub & KEYED else 0), op
        if not table or word > table[1] or table[2].name not in BEGINS:
            return 0
        return BEGINS[table[2].name](table[2])

    def run(self, hit):
        self.hits += 1
        self.value = self.key = 0
        self.hit, self.next = hit, 0
        while self.next < len(self.ops):
            op = self.ops[self.next]
            self.next += 1
            try:
                RUN[op.name](self, op)
            except End:
                break

    def operand(self, op):
        hit = self.hit
        if op.source < 16:
            return hit.registers[op.source]
        machine = hit.machine
        return (self.value, op.imm, hit.ip, machine.cpu, machine.thread, 0)[
            op.source - 16
        ]

    def place(self, op):
        return op.at + (self.key if op.sub & KEYED else 0)

    def add(self, op, number):
        at = self.place(op)
        self.words[at] = (self.words[at] + number) & MASK

    def text(self):
        yield f" + hits={self.hits:x} calls={self.calls}"
        yield f" reserved={self.reserved} commits={self.commits}"
        yield from text_of("w", self.words + [self.faults])
        words = [self.record[i : i + 8] for i in range(0, 64, 8)]
        yield from text_of("r", [int.from_bytes(word, "little") for word in words])


def text_of(name, numbers):
    return [f" {name}{i}={number:x}" for i, number in enumerate(numbers) if number]


def expect(machine, case, slot):
    """What a case must leave, as program_ways.c says it."""
    tables = [[0] * TABLE, [0] * TABLE]
    programs = [Program(ops, tables) for ops in case.programs]
    for seed in range(case.seed, case.seed + HITS):
        hit = Hit(machine, seed, machine.place(case, slot))
        for program in programs:
            program.run(hit)
    told = [word for program in programs for word in program.text()]
    return "same" + "".join(told + text_of("t", tables[0] + tables[1]))


# ---- the operations ----

FORGET = Op("and", IMM)


def run_get(p, op):
    """Each hit takes another time: the next operation must replace it by 0."""
    behind = p.ops[p.next : p.next + 1]
    if op.source == CYCLES and [str(one) for one in behind] != [str(FORGET)]:
        raise Unknown
    p.value = 0 if op.source == CYCLES else p.operand(op)


def extended(op, value):
    bits = 8 * (op.sub >> 4)
    return signed(value, bits) & MASK if op.sub & SIGNED else value & (1 << bits) - 1


def run_load(p, op):
    try:
        loaded = p.hit.load((p.value + signed(op.at, 32)) & MASK, op.sub >> 4)
    except Fault:
        p.faults += 1
        p.value = 0
        if not op.sub & OR_ZERO:
            raise End from None
        p.next += op.skip
    else:
        p.value = extended(op, loaded)


def run_extend(p, op):
    p.value = extended(op, p.value)


def computing(result):
    def run(p, op):
        p.value = result(p.value, p.operand(op)) & MASK

    return run


def shifting(result):
    def run(p, op):
        p.value = result(p.value, op.imm) & MASK

    return run


HOLDS = {
    2: lambda a, b: a < b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a == b,
    5: lambda a, b: a != b,
    6: lambda a, b: a <= b,
    7: lambda a, b: a > b,
    12: lambda a, b: signed(a) < signed(b),
    13: lambda a, b: signed(a) >= signed(b),
    14: lambda a, b: signed(a) <= signed(b),
    15: lambda a, b: signed(a) > signed(b),
    ANY: lambda a, b: a & b != 0,
    NONE: lambda a, b: a & b == 0,
}


def run_if(p, op):
    if not HOLDS[op.sub](p.operand(op), op.imm):
        p.next += op.skip


def run_unless(p, op):
    if op.imm % 2:
        p.next += op.skip


def run_every(p, op):
    p.add(op, -1)
    if signed(p.words[p.place(op)]) >= 0:
        p.next += op.skip
    else:
        p.add(op, op.imm)


def run_end(p, op):
    raise End


def run_log2(p, op):
    value = p.operand(op)
    p.key = max(value - 1, 0).bit_length() if op.sub & UP else value.bit_length()


def run_linear(p, op):
    step, count = op.imm & 0xFFFFFFFF, op.imm >> 32
    over = signed(p.operand(op)) - signed(op.at, 32)
    p.key = 0 if over < 0 else min(over // step, count) + 1


def run_small(p, op):
    p.key = min(p.operand(op), op.imm)


def run_by(p, op):
    """The 16 places of a bucket, which the high bits of a product choose."""
    table, size = p.tables[op.imm % 2], 1 << op.at
    bucket = (p.value * 0x9E3779B97F4A7C15 & MASK) * (size // 16) >> 64
    if not p.value:
        p.key = size
        return
    for p.key in range(16 * bucket, 16 * bucket + 16):
        if table[p.key] in (0, p.value):
            table[p.key] = p.value
            return
    p.key = size + 1


def run_count(p, op):
    p.add(op, 1)


def run_sum(p, op):
    p.add(op, p.operand(op))


def extreme(better):
    def run(p, op):
        as_said = signed if op.sub & SIGNED else int
        p.words[p.place(op)] = better(p.operand(op), p.words[p.place(op)], key=as_said)

    return run


def run_call(p, op):
    p.value, p.key = 7 * p.calls + 1, 0
    p.calls += 1


def run_reserve(p, op):
    p.reserved += 1
    p.value = p.key = 0
    if p.reserved % 3 == 0:
        p.next += op.skip


def run_store(p, op):
    size = op.sub >> 4
    number = p.operand(op) & (1 << 8 * size) - 1
    p.record[op.at : op.at + size] = number.to_bytes(size, "little")


def run_commit(p, op):
    p.commits += 1
    p.value = p.key = 0


RUN = {name[4:]: run for name, run in globals().items() if name.startswith("run_")}
RUN |= {
    "add": computing(lambda a, b: a + b),
    "sub": computing(lambda a, b: a - b),
    "and": computing(lambda a, b: a & b),
    "or": computing(lambda a, b: a | b),
    "xor": computing(lambda a, b: a ^ b),
    "shl": shifting(lambda a, n: a << n),
    "shr": shifting(lambda a, n: a >> n),
    "sar": shifting(lambda a, n: signed(a) >> n),
    "min": extreme(min),
    "max": extreme(max),
}
BEGINS = {
    "every": lambda op: op.imm - 1,
    "min": lambda op: MASK >> (1 if op.sub & SIGNED else 0),
    "max": lambda op: 1 << 63 if op.sub & SIGNED else 0,
}
KEY_MAX = {
    "log2": lambda op: 64,
    "linear": lambda op: (op.imm >> 32) + 1,
    "small": lambda op: op.imm,
    "by": lambda op: (1 << op.at) + 1,
}


def key_max(op):
    return KEY_MAX[op.name](op) if op.name in KEY_MAX else 0


# ---- at random ----

OFTEN = (0, 1, 2, 63, 64, 100, 127, 128, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
         MASK, MASK >> 1, 1 << 63, (1 << 47) - 1, MASK - 0x7FFFFFFF)  # fmt: skip
SIZES = (0x10, 0x20, 0x40, 0x80)


class Maker:
    """Makes cases. Each operation takes its turn, so that none is seldom."""

    def __init__(self, machine, seed):
        self.machine, self.random = machine, random.Random(seed)
        self.turn = 0

    def number(self):
        if self.random.random() < 0.6:
            return self.random.choice(OFTEN)
        return self.random.getrandbits(64) >> self.random.randrange(64)

    def source(self, *more):
        choice = self.random.choice
        return choice((*(i for i in range(16) if i != SP), VALUE, VALUE, IMM, *more))

    def pair(self, left):
        """An address, and a load from there."""
        good = self.machine.memory + self.random.randrange(-16, MEMORY + 64)
        address = self.random.choice((good, good, good, self.number()))
        return [Op("get", IMM, imm=address), self.load(left - 1)]

    def load(self, left):
        choice = self.random.choice
        sub = choice(SIZES) | choice((0, SIGNED)) | choice((0, OR_ZERO))
        at = choice((0, 8, self.random.randrange(-128, 128) & 0xFFFFFFFF))
        return Op("load", sub=sub, at=at, skip=self.skip(left) if sub & OR_ZERO else 0)

    def step(self, op):
        """A number at a boundary of a step of @op, as the value that it takes."""
        step, count = op.imm & 0xFFFFFFFF, op.imm >> 32
        number = signed(op.at, 32) + self.random.randrange(count + 1) * step
        number += self.random.choice((-1, 0, step - 1))
        return [Op("get", IMM, imm=number & MASK), op.changed(source=VALUE)]

    def bits(self):
        """Count at the number of bits of a value that is often a power of two."""
        choice, rest = self.random.choice, self.random.randrange
        value = (1 << rest(64)) - choice((0, 0, 1))
        count = Op("count", sub=KEYED, at=rest(12))
        return [Op("get", IMM, imm=value), Op("log2", VALUE, choice((0, UP))), count]

    def near(self, op):
        """A number at the constant of @op, or next to it, as the value that it takes."""
        number = op.imm + self.random.choice((-1, 0, 1))
        return [Op("get", IMM, imm=number & MASK), op.changed(source=VALUE)]

    def skip(self, left):
        return self.random.randrange(min(left, 6) + 1)

    def store(self):
        size = self.random.choice(SIZES)
        at = self.random.randrange(65 - (size >> 4))
        return Op("store", self.source(SP, ADDRESS), size, 0, at, self.number())

    def record(self, left):
        stores = [self.store() for _ in range(self.random.randrange(1, min(4, left)))]
        return [Op("reserve", skip=len(stores) + 1), *stores, Op("commit")]

    def one(self, name, left):
        choice, rest = self.random.choice, self.random.randrange
        how, at = choice((0, 0, KEYED)), rest(12)
        if name == "get":
            source = self.source(SP, ADDRESS, CPU, THREAD, OWN)
            return Op(name, IMM if source == VALUE else source, imm=self.number())
        if name == "load":
            return self.load(left)
        if name == "extend":
            return Op(name, sub=choice(SIZES[:3]) | choice((0, SIGNED)))
        if name in ("shl", "shr", "sar"):
            return Op(name, imm=rest(64))
        if name == "if":
            source = self.source()
            source = VALUE if source == IMM else source
            return Op(
                name, source, choice(list(HOLDS)), self.skip(left), 0, self.number()
            )
        if name == "unless":
            return Op(name, skip=self.skip(left), imm=rest(2))
        if name == "every":
            return Op(name, 0, how, self.skip(left), at, rest(1, 6))
        if name in ("log2", "linear", "small"):
            source = self.source()
            source = VALUE if source == IMM else source
            if name == "log2":
                return Op(name, source, choice((0, UP)))
            if name == "small":
                return Op(name, source, imm=rest(64))
            count = rest(1, 61)
            largest = min(math.isqrt(MASK // count), 0xFFFFFFFF)
            step = choice((1, 2, largest, 1 + self.number() % largest))
            low = self.number() & 0xFFFFFFFF
            return Op(name, source, at=low, imm=step | count << 32)
        if name == "by":
            return Op(name, VALUE, at=rest(5, 7), imm=rest(2))
        if name in ("min", "max"):
            source = choice((3, 5, 6, 7, 8, 11, 15, VALUE, VALUE))
            return Op(name, source, how | choice((0, SIGNED)), 0, at)
        if name == "count":
            return Op(name, sub=how, at=at)
        if name == "sum":
            return Op(name, self.source(), how, 0, at, self.number())
        if name in ("call", "end"):
            return Op(name, imm=rest(2) if name == "call" else 0)
        return Op(name, self.source(), imm=self.number())  # arithmetic

    def ops(self):
        count = self.random.choice((1, 2, 4, 8, 16, OPS_MAX))
        names = [name for name in RUN if name not in ("store", "commit")]
        ops = []
        while len(ops) < count:
            left = count - len(ops) - 1
            name = names[self.turn % len(names)]
            self.turn += 1 + self.random.randrange(3)
            if name == "end" and self.random.random() < 0.8:
                continue
            if name == "load" and left:
                ops += self.pair(left)
            elif name == "linear" and left:
                ops += self.step(self.one(name, left - 1))
            elif name == "log2" and left > 1:
                ops += self.bits()
            elif name == "if" and left and self.random.random() < 0.4:
                ops += self.near(self.one(name, left - 1))
            elif name == "get" and left and self.random.random() < 0.2:
                ops += [Op(name, CYCLES), FORGET]
            elif name != "reserve":
                ops.append(self.one(name, left))
            elif left > 2:
                ops += self.record(left)
        return ops

    def case(self, slot=0):
        """A case that reads no memory with unknown content, and what it must leave."""
        while True:
            count = self.random.choice((1, 1, 1, 2, 3, TOGETHER))
            programs = [self.ops() for _ in range(count)]
            seed = self.random.randrange(1000)
            case = Case(self.random.choice(KINDS), seed, programs)
            try:
                return case, expect(self.machine, case, slot)
            except Unknown:
                pass
