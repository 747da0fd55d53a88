"""steps.py - sourced by gdb in tests: `steps COUNT`, single steps, each with its backtrace.

Up to COUNT instructions are executed, until the function of frame 0 has returned. At each one
its callers must be the outermost frames of the backtrace, as they were. At most five places
where they are not are printed.
"""

import gdb


def names(frame):
    found = []
    while frame:
        found.append(frame.name() or "?")
        frame = frame.older()
    return found


class Steps(gdb.Command):
    def __init__(self):
        super().__init__("steps", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        caller = gdb.newest_frame().older()
        tail, stack = names(caller), int(caller.read_register("rsp"))
        wrong, places, count = [], set(), 0
        while count < int(argument) and len(wrong) < 5:
            gdb.execute("stepi", to_string=True)
            count += 1
            frame = gdb.newest_frame()
            now = names(frame)
            places.add(now[0])
            if now[-len(tail) :] != tail:
                wrong.append(f"{frame.pc():#x} {now}")
            if now == tail and int(frame.read_register("rsp")) == stack:
                break
        print(f"\nsteps {count} wrong {len(wrong)} returned {int(now == tail)}")
        print("places", *sorted(places))
        for line in wrong:
            print("wrong", line)


Steps()
