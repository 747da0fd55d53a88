"""threads.py - reads the kernel's threads, and the registers that they go on with."""

import gdb

from sonde_gdb import cfi, kernel
from sonde_gdb.kernel import View, constant

# The registers that switch_to() has pushed, from the saved stack pointer upwards
# (kernel/thread/switch.asm).
SWITCHED = ("eflags", "r15", "r14", "r13", "r12", "rbx", "rbp", "rip")
# By field of struct pt_regs.
IMAGE = {name if name[1].isdigit() else name[1:]: name for name in cfi.NAMES}
IMAGE["flags"] = "eflags"


@kernel.until_it_runs
def each():
    """Return every struct thread, in the order in which the threads were created."""
    layout = kernel.layout("thread")
    offset = layout.fields["all_link"].bit // 8
    head = kernel.address("threads")
    link, found = kernel.word(head), []
    while link not in (head, 0) and len(found) < 100000:
        found.append(View("thread", link - offset))
        link = kernel.word(link)
    return found


def name_of(thread):
    return thread.name.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def is_running(thread):
    return thread.state == constant("THREAD_RUNNING")


def image_of(regs):
    """Return the registers in a struct pt_regs."""
    return {name: getattr(regs, field) for field, name in IMAGE.items()}


def registers_of(thread):
    """Return the registers with which a thread that is off its CPU will go on."""
    words = [kernel.word(thread.sp + 8 * i) for i in range(len(SWITCHED))]
    return dict(zip(SWITCHED, words), rsp=thread.sp + 8 * len(SWITCHED))


def running_on(cpu):
    """Return the struct thread that a CPU runs; None: early in the boot it has none."""
    return View("thread", cpu.current) if cpu.current else None


def of_cpu(number):
    """Return the thread by which gdb knows CPU @number; None: there is none."""
    for thread in gdb.selected_inferior().threads():
        if thread.num == number + 1:
            return thread
    return None
