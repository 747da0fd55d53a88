"""tap.py - checks facts and prints TAP, for tests in Python.

    tap.check(reply.errno == 0, "cat answers")
    tap.equal(reply.output, b"x\\n", "and says x")
    tap.finish()
"""

import sys

LONG = "--long" in sys.argv  # the long run: tests do more of everything
count = 0
failed = 0


def quiet_interrupts():
    """Let a Ctrl-C end this program without Python's report."""

    def tell(kind, error, trace):
        if kind is not KeyboardInterrupt:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = tell


def note(text):
    for line in str(text).splitlines():
        print("# " + line, flush=True)


def check(holds, what):
    """Report a fact. @what: the fact in words. Return whether it holds."""
    global count, failed
    count += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {count} - {what}", flush=True)
    return bool(holds)


def equal(got, want, what):
    if not check(got == want, what):
        note(f"got  {shortened(got)}")
        note(f"want {shortened(want)}")
    return got == want


def shortened(value):
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:300]} ... {text[-80:]}"


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def finish():
    """Print the plan and leave; a test that checked nothing has failed."""
    print(f"1..{count}", flush=True)
    sys.exit(1 if failed or not count else 0)


def run(*tests):
    """Run functions, each one a test; an exception is a failed fact. Then finish.

    Names on the command line choose among them; options are for the program itself.
    """
    quiet_interrupts()
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")]
    for test in tests:
        if chosen and test.__name__ not in chosen:
            continue
        try:
            test()
        except Exception as error:
            check(False, f"{test.__name__}: {type(error).__name__}: {error}")
            note_traceback()
            for line in getattr(error, "lines", ()):
                note("| " + line)
    finish()


def note_traceback():
    import traceback

    note(traceback.format_exc())
