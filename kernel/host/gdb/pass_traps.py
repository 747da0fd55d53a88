"""pass_traps.py - lets a hosted test have its traps when it runs under gdb.

    gdb -x kernel/host/gdb/pass_traps.py --args build/hosted/gcc/test_execute
    (gdb) through run           run, or continue, to what is no trap of the program's own

gdb takes every SIGTRAP for its own. With `handle SIGTRAP pass` it would hand on those of its
own breakpoints, too, and the program would die of them. So gdb stops at each, and `through`
goes on with the signal wherever it is not gdb's. While the program has SIGTRAP blocked no
breakpoint of gdb's works: Linux ends the program before gdb hears of it.
"""

import signal

import gdb

BLOCKED = (
    "A breakpoint of gdb's was reached while SIGTRAP was blocked, as it is in a "
    "handler of SIGTRAP. With SA_NODEFER in its sa_flags the program gets there.\n"
)


class Through(gdb.Command):
    """through run|continue - goes on through the traps that are the program's own."""

    def __init__(self):
        super().__init__("through", gdb.COMMAND_RUNNING)
        self.own_trap = False
        gdb.events.stop.connect(self.note)
        gdb.events.exited.connect(self.note)

    def note(self, event):
        self.own_trap = type(event) is gdb.StopEvent  # no breakpoint, no other signal

    def invoke(self, argument, from_tty):
        try:
            gdb.execute(argument or "continue", to_string=True)
            while self.own_trap:
                gdb.execute("signal SIGTRAP", to_string=True)
        except gdb.error as error:
            raise gdb.GdbError(str(error)) from None
        if gdb.convenience_variable("_exitsignal") == signal.SIGTRAP:
            gdb.write(BLOCKED)


gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("handle SIGTRAP stop print nopass", to_string=True)
gdb.execute(
    "handle SIGUSR1 SIGUSR2 SIGPROF SIGFPE SIGSEGV nostop noprint pass", to_string=True
)
gdb.execute("set environment UNDER_GDB 1")  # so that breakpoints can be set in its text
Through()
