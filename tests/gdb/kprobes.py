"""kprobes.py - gdb commands that know sonde's structures. Loaded by `./sonde gdb`.

    probes            every probed address: symbol, state, way to run, hits, misses
    original WHERE    disassemble a function as if no probe were armed
    slot ADDR         whose copy of an instruction lies around ADDR
    kbreak WHERE      a breakpoint that works on a probed address, too
    trapframe [EXPR]  a struct pt_regs *, by default the variable `regs`
    cpus              what each CPU is doing
    threads           all threads, with where those that are off their CPU stopped

But for kbreak they only read memory, so they work with QEMU's stub and on a dump alike.
"""

import gdb

try:
    import gdb.disassembler as disassembler
except ImportError:  # before gdb 13
    disassembler = None

SLOT_LEN = 32  # INSN_SLOT_LEN: the last 8 bytes of a cell point at its owner


def symbol_at(address):
    """ADDRESS as SYMBOL+0xOFF, or in hex."""
    text = gdb.execute(f"info symbol {address:#x}", to_string=True)
    if text.startswith("No symbol"):
        return f"{address:#x}"
    name, _, rest = text.partition(" ")
    offset = rest.split()[1] if rest.startswith("+ ") else "0"
    return f"{name}+{int(offset):#x}"


def evaluate(expression):
    return gdb.parse_and_eval(expression)


def enum_name(value, prefix):
    """SITE_ARMED as "armed"."""
    return str(value).removeprefix(prefix).lower()


def each_site():
    """Every struct site * in the registry's table."""
    table = evaluate("'probes/core/registry.c'::table")
    if not table:
        return
    grave = evaluate("&'probes/core/registry.c'::grave")
    for i in range(int(table["len"])):
        site = table["entries"][i].cast(grave.type)
        if site and site != grave:
            yield site


def each_kprobe(site):
    probe = site["probes"]
    while probe:
        yield probe
        probe = probe["next"]


def each_in_list(head, type_name, member):
    """The elements of a struct list."""
    element = gdb.lookup_type(type_name)
    offset = next(f.bitpos // 8 for f in element.fields() if f.name == member)
    link = head["next"]
    while link != head.address:
        address = int(link) - offset
        yield gdb.Value(address).cast(element.pointer())
        link = link["next"]


class Command(gdb.Command):
    """A command whose help is its class's text; subclasses have run(argument)."""

    def __init__(self, name):
        self.__doc__ = type(self).__doc__
        super().__init__(name, gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        try:
            self.run(argument)
        except (gdb.MemoryError, StopIteration) as error:
            raise gdb.GdbError(f"not there yet, or not any more: {error}")


class Probes(Command):
    """Every probed address: symbol, state, way to run, hits and misses."""

    def run(self, _argument):
        count = 0
        for site in sorted(each_site(), key=lambda site: int(site["addr"])):
            state = site["state"].cast(gdb.lookup_type("enum site_state"))
            way = site["way"].cast(gdb.lookup_type("enum site_way"))
            kprobes = list(each_kprobe(site))
            address = int(site["addr"])
            print(
                f"{address:#x} {symbol_at(address):32} {enum_name(state, 'SITE_'):9} "
                f"{enum_name(way, 'WAY_'):8} probes {len(kprobes)} "
                f"hits {sum(int(p['hits']) for p in kprobes)} "
                f"missed {sum(int(p['nmissed']) for p in kprobes)}"
            )
            count += 1
        print(f"{count} probed addresses")


class Slot(Command):
    """slot ADDR: the site whose copy of an instruction lies around ADDR."""

    def run(self, argument):
        address = int(evaluate(argument))
        pointer = gdb.lookup_type("struct site").pointer().pointer()
        cell = address & ~(SLOT_LEN - 1)
        owner = gdb.Value(cell + SLOT_LEN - 8).cast(pointer).dereference()
        for site in each_site():
            if site == owner:
                where = symbol_at(int(site["addr"]))
                print(f"{address:#x} is byte {address - cell} of the slot of {where}")
                return
        print(f"{address:#x} is in no slot of a registered probe")


class Trapframe(Command):
    """trapframe [EXPR]: the registers in a struct pt_regs, by default `regs`."""

    ROWS = (
        ("ip", "sp", "flags"),
        ("ax", "bx", "cx", "dx"),
        ("si", "di", "bp", "aux"),
        ("r8", "r9", "r10", "r11"),
        ("r12", "r13", "r14", "r15"),
    )

    def run(self, argument):
        pointer = gdb.lookup_type("struct pt_regs").pointer()
        regs = evaluate(argument or "regs").cast(pointer)
        print(f"at {symbol_at(int(regs['ip']))}")
        for row in self.ROWS:
            print("  ".join(f"{name:5} {int(regs[name]):016x}" for name in row))
        print(f"vector {int(regs['vector'])}  error code {int(regs['error_code']):#x}")


class Cpus(Command):
    """What each CPU is doing: its thread and the depth of its interrupts."""

    def run(self, _argument):
        areas = evaluate("'kernel/cpu/percpu.c'::cpus")
        first, last = areas.type.range()
        for i in range(first, last + 1):
            cpu = areas[i]
            if not cpu:
                break
            thread = cpu["current"]
            name = thread["name"].string() if thread else "-"
            words = [
                f"CPU {int(cpu['id'])}:",
                "idle" if cpu["idle"] else f"thread {name}",
                f"preempt_count {int(cpu['preempt_count'])}",
                f"irq_depth {int(cpu['irq_depth'])}",
                f"nmi_depth {int(cpu['nmi_depth'])}",
            ]
            print("  ".join(words))


class Threads(Command):
    """All threads; for one that was preempted, where."""

    def run(self, _argument):
        head = evaluate("sched_all")
        for thread in each_in_list(head, "struct thread", "all_link"):
            state = enum_name(thread["state"], "THREAD_")
            line = f"{int(thread['tid']):4} {thread['name'].string():16} {state:8}"
            line += f" CPU {int(thread['cpu'])}"
            regs = thread["preempted_regs"]
            if regs and state == "ready":
                line += f"  preempted at {symbol_at(int(regs['ip']))}"
            print(line)


def patches():
    """What the engine wrote over: {address: original byte}."""
    armed = int(evaluate("(int)SITE_ARMED"))
    return {
        int(site["addr"]): int(site["bytes"][0])
        for site in each_site()
        if int(site["state"]) == armed
    }


if disassembler:

    class Unpatched(disassembler.DisassembleInfo):
        """Memory as the disassembler is to see it."""

        def __init__(self, info, bytes_at):
            super().__init__(info)
            self.bytes_at = bytes_at

        def read_memory(self, length, offset):
            start = (self.address + offset) % 2**64  # gdb 13 has it signed
            data = bytearray(super().read_memory(length, offset))
            for i in range(length):
                data[i] = self.bytes_at.get(start + i, data[i])
            return bytes(data)

    class OriginalText(disassembler.Disassembler):
        """Shows text without the breakpoints of armed probes."""

        def __init__(self):
            super().__init__("sonde-original")
            self.bytes_at = patches()

        def __call__(self, info):
            return disassembler.builtin_disassemble(Unpatched(info, self.bytes_at))


class Original(Command):
    """original WHERE: disassemble a function as if no probe were armed."""

    def run(self, argument):
        if not disassembler:
            raise gdb.GdbError("needs gdb 13")
        disassembler.register_disassembler(OriginalText())
        try:
            gdb.execute(f"disassemble {argument}")
        finally:
            disassembler.register_disassembler(None)


class ProbedBreak(Command):
    """kbreak WHERE: a breakpoint at an address that may carry an armed probe.

    When gdb finds an int3 there it believes that it belongs to the program, and steps over it
    without executing it. So it finds the original byte while it sets the breakpoint."""

    def run(self, argument):
        address = int(evaluate(f"(unsigned long)({argument})"))
        memory = gdb.selected_inferior()
        armed = bytes(memory.read_memory(address, 1))
        original = patches().get(address)
        if original is not None:
            memory.write_memory(address, bytes([original]))
        try:
            gdb.Breakpoint(f"*{address:#x}")
        finally:
            if original is not None:
                memory.write_memory(address, armed)


Probes("probes")
ProbedBreak("kbreak")
Slot("slot")
Original("original")
Trapframe("trapframe")
Cpus("cpus")
Threads("threads")
