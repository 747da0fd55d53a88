"""steps.py - gives gdb the command `steps COUNT`, which steps and looks at each
backtrace, and `lines COMMAND`, which shows the lines to which a command leads. Tests source
this file in gdb.

steps executes up to COUNT instructions, until the function of frame 0 has returned.
After each instruction, the outermost frames of the backtrace must be the callers that
this function had at the start. The command prints at most five places where they are not.
It also prints how many instructions lay in a specialized detour at an offset beyond the
length of its pattern.
"""

import gdb

from sonde_gdb import kernel, place, sites


def names(frame):
    found = []
    while frame:
        found.append(frame.name() or "?")
        frame = frame.older()
    return found


def is_behind_pattern(pc):
    cell = sites.cell_at(pc)
    if not cell or not sites.jump_of(cell.site).specialized:
        return False
    if not cell.holds(sites.detour(cell.site)):
        return False
    return place.pattern_of(cell).len <= cell.off < sites.jump_of(cell.site).copy_off


class Steps(gdb.Command):
    def __init__(self):
        super().__init__("steps", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        caller = gdb.newest_frame().older()
        tail, stack = names(caller), int(caller.read_register("rsp"))
        wrong, places, count, behind = [], set(), 0, 0
        while count < int(argument) and len(wrong) < 5:
            gdb.execute("stepi", to_string=True)
            count += 1
            frame = gdb.newest_frame()
            now = names(frame)
            pc = frame.pc() & kernel.MASK
            behind += sites.is_generated(pc) and is_behind_pattern(pc)
            places.add(now[0])
            if now[-len(tail) :] != tail:
                wrong.append(f"{frame.pc():#x} {now}")
            if now == tail and int(frame.read_register("rsp")) == stack:
                break
        print(f"\nsteps {count} wrong {len(wrong)} returned {int(now == tail)}")
        print(f"behind {behind}")
        print("places", *sorted(places))
        for line in wrong:
            print("wrong", line)


class Lines(gdb.Command):
    """Run COMMAND (next, step, until) eight times, and print the function and the line at
    which it ends each time."""

    def __init__(self):
        super().__init__("lines", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        places = []
        for _ in range(8):
            gdb.execute(argument, to_string=True)
            frame = gdb.newest_frame()
            places.append(f"{frame.name()}:{frame.find_sal().line}")
        print("\nlines", *places)


Steps()
Lines()
