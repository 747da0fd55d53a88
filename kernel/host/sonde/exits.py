"""exits.py - the exit statuses of ./sonde, and the table of them that --help prints.

tests/session/test_exits.py reads the table from --help, and has a fact for each row.
"""

DONE, FAILED, USAGE, PANICKED, ENDED, HOST, BUG, TIMEOUT = 0, 1, 2, 3, 4, 5, 6, 124

# (status, of which commands, when)
ROWS = (
    (DONE, "run", "the guest was switched off, or Ctrl-] x was typed on the terminal"),
    (DONE, "run", "the tests of an --image with tests passed"),
    (DONE, "exec", "every command succeeded"),
    (DONE, "module", "the modules were loaded, and every command succeeded"),
    (DONE, "trace", "every command succeeded, or none was given and Ctrl-C came"),
    (DONE, "record", "every command succeeded; the run is recorded, up to its end"),
    (DONE, "attach", "the guest ended, or Ctrl-] x was typed"),
    (DONE, "test", "every test passed"),
    (DONE, "check", "everything is as shown"),
    (DONE, "grade", "full score; with --case: the case passed"),
    (FAILED, "run", "no terminal, but a pipe or a file: a command that was read failed"),
    (FAILED, "run", "a test of an --image with tests failed"),
    (FAILED, "exec", "a command failed; those behind it were not run"),
    (FAILED, "trace", "a command failed, and the files are written; or a line was refused"),
    (FAILED, "record", "a command failed; the run is recorded"),
    (FAILED, "module", "a module was refused, or a command failed"),
    (FAILED, "module", "there is no guest at --socket"),
    (FAILED, "attach", "there is no guest to attach to"),
    (FAILED, "test", "a test failed"),
    (FAILED, "check", "something differs from what is shown"),
    (FAILED, "grade", "points are missing; with --case: the case failed"),
    (USAGE, "check", "the files have no command to run"),
    (USAGE, "all but pytest", "a wrong option, name or file; nothing was built or started"),
    (PANICKED, "run, exec, trace", "the kernel panicked"),
    (PANICKED, "module, record", "the kernel panicked"),
    (PANICKED, "run, exec", "QEMU has stopped the machine"),
    (PANICKED, "tracefs", "the kernel panicked while the command ran"),
    (ENDED, "run, exec", "a CPU of the guest went down by a triple fault"),
    (ENDED, "exec, module", "the guest was switched off or reset before its last command"),
    (ENDED, "trace", "the guest was switched off or reset, and nothing was fetched"),
    (ENDED, "run, exec", "QEMU ended, or was ended by a signal"),
    (ENDED, "tracefs", "QEMU or the guest ended before the command could run"),
    (ENDED, "record", "the guest was reset; the run is recorded until then"),
    (ENDED, "gdb", "QEMU ended before gdb could be started"),
    (HOST, "run, exec, trace", "the output cannot be written"),
    (HOST, "all but attach, lab", "the build failed, or a tool is missing"),
    (HOST, "attach", "it is running already"),
    (HOST, "replay", "the file is no recording, or one of another build or QEMU"),
    (BUG, "all", "a bug of ./sonde, to be reported as CONTRIBUTING.md says"),
    (TIMEOUT, "run, exec, trace", "the time limit was reached (--timeout)"),
    (TIMEOUT, "module, record", "the time limit was reached (--timeout)"),
    ("128+N", "all", "signal N: 130 Ctrl-C, 141 the output has no reader, 143 SIGTERM"),
    ("else", "gdb, replay", "what gdb exited with"),
    ("else", "tracefs", "what the command exited with"),
    ("else", "python, pytest", "what Python or pytest exited with"),
)  # fmt: skip


def table():
    rows = [
        f"  {status!s:>5}  {commands:<14}  {text}\n" for status, commands, text in ROWS
    ]
    return "exit status:\n" + "".join(rows)
