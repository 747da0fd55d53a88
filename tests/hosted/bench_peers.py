#!/usr/bin/env python3
"""bench_peers.py - one run of `make bench-native`: this engine in a process, and beside it
what Debian ships and can do the same at the same function: the in-process agent of
gdbserver (fast tracepoints, which are jumps, too), and uftrace (which patches entries).

    bench_peers.py NATIVE PEER     the two programs

Prints all figures, and then a table: the same action, in calls of this run.
"""

import os
import re
import subprocess
import sys
import tempfile

AGENT = "/usr/lib/libinproctrace.so"
FIGURE = re.compile(r"^sonde\.native\.(\w+)\.calls (-?[\d.]+) ratio", re.M)
FALSE = "$rdi == 99999999"
# action, figure of this engine, figure of the peer, how gdb is asked for it (None: uftrace)
ROWS = [
    ("count", "count", "gdbserver_count",
     ["tvariable $hits", "ftrace *bench_dead if ($hits = $hits + 1) == 0"]),
    ("a condition that is false", "if_false", "gdbserver_if_false",
     [f"ftrace *bench_dead if {FALSE}"]),
    ("a record with three registers", "event_3regs", "gdbserver_3regs",
     ["ftrace *bench_dead", "actions", "collect $rdi, $rsi, $rdx", "end"]),
    ("a record at entry and at return", "event_both", "uftrace_both", None),
]  # fmt: skip


def under_gdbserver(peer, name, ask):
    """The output of the peer's program, with a fast tracepoint that @ask makes."""
    start = [
        "set confirm off",
        "set pagination off",
        "set circular-trace-buffer on",
        f"target remote | gdbserver --wrapper env LD_PRELOAD={AGENT} -- - {peer} {name}",
        "break main",
        "continue",
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write("\n".join([*start, *ask, "tstart", "continue", ""]))
        script.flush()
        return run(["gdb", "-q", "-nx", "-batch", "-x", script.name, peer])


def under_uftrace(peer, name):
    with tempfile.TemporaryDirectory() as folder:
        return run(
            [
                "uftrace",
                "record",
                "-d",
                os.path.join(folder, "data"),
                "-P",
                "bench_dead",
                "--no-libcall",
                "--no-event",
                peer,
                name,
            ]
        )


def run(args):
    return subprocess.run(
        args,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
        encoding="utf-8",
        errors="replace",
    ).stdout


def main():
    native, peer = (os.path.abspath(path) for path in sys.argv[1:3])
    text = subprocess.run(
        [native], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    ).stdout
    print(text, end="", flush=True)
    figures = dict(FIGURE.findall(text))
    for _, _, name, ask in ROWS:
        text = under_gdbserver(peer, name, ask) if ask else under_uftrace(peer, name)
        lines = [line for line in text.splitlines() if line.startswith("sonde.native.")]
        print(
            "\n".join(lines) if lines else f"# {name} was not measured:\n{text}",
            flush=True,
        )
        figures.update(FIGURE.findall(text))
    print("# action, in calls: here, beside")
    for action, ours, theirs, _ in ROWS:
        print(
            f"#   {action}: {figures[ours]}, {figures.get(theirs, 'not measured')}"
            f" ({theirs.split('_', 1)[0]})"
        )
    return 0 if all(theirs in figures for _, _, theirs, _ in ROWS) else 1


if __name__ == "__main__":
    sys.exit(main())
