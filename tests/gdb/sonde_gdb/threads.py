"""threads.py - the kernel's threads, and the registers of those that are off their CPU."""

import gdb

from sonde_gdb import kernel
from sonde_gdb.kernel import View, constant

# What switch_to() has pushed, from the saved stack pointer up: kernel/thread/switch.asm.
SWITCHED = ("eflags", "r15", "r14", "r13", "r12", "rbx", "rbp", "rip")
IMAGE = {"ax": "rax", "bx": "rbx", "cx": "rcx", "dx": "rdx", "si": "rsi", "di": "rdi",
         "bp": "rbp", "sp": "rsp", "ip": "rip", "flags": "eflags",
         **{f"r{n}": f"r{n}" for n in range(8, 16)}}  # fmt: skip


@kernel.until_it_runs
def each():
    """Every struct thread, in order of birth."""
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
    """The registers of a struct pt_regs."""
    return {name: getattr(regs, field) for field, name in IMAGE.items()}


def registers_of(thread):
    """Those that it will go on with; of a thread that is off its CPU."""
    words = [kernel.word(thread.sp + 8 * i) for i in range(len(SWITCHED))]
    return dict(zip(SWITCHED, words), rsp=thread.sp + 8 * len(SWITCHED))


def running_on(cpu):
    """The struct thread that a struct percpu runs, None early on."""
    return View("thread", cpu.current) if cpu.current else None


def of_cpu(number):
    """gdb's thread that is CPU @number; None."""
    for thread in gdb.selected_inferior().threads():
        if thread.num == number + 1:
            return thread
    return None
