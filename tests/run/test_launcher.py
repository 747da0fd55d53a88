"""test_launcher.py - ./sonde's commands against a fake guest: output, status, messages."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import time

import guest
import tap
from guest import ROOT
from test_machine import with_fake_qemu

OPTIONS = "--smp 3 --timeout 10"


def load_launcher():
    """./sonde as a module, with nothing to build."""
    loader = importlib.machinery.SourceFileLoader("launcher", os.path.join(ROOT, "sonde"))
    spec = importlib.util.spec_from_loader("launcher", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.build = lambda *targets, **more: None
    module.PROGRAM = [sys.executable, os.path.abspath(__file__), "--launch"]
    return module


def run_launcher(*arguments, stdin=b""):
    """Run ./sonde's main() in a process of its own: (status, stdout, stderr)."""
    program = [sys.executable, os.path.abspath(__file__), "--launch", *arguments]
    done = subprocess.run(program, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def output_and_nothing_else():
    status, out, err = run_launcher("exec", "--smp", "3", "say a", "bare b", "say c")
    tap.equal((status, out, err), (0, b"a\nbc\n", ""), "output of three commands")
    status, out, err = run_launcher("exec", "say a", "say b", "--smp", "3")
    tap.equal((status, out, err), (0, b"a\nb\n", ""), "options may come last")


def verbose_tells_the_time_to_the_prompt():
    status, out, err = run_launcher("exec", "-v", "say a")
    tap.equal((status, out), (0, b"a\n"), "-v leaves the output alone")
    words = err.split()
    tap.check(
        words[:3] == ["sonde:", "prompt", "after"] and words[3].isdigit(), "and says it"
    )


def commands_come_from_a_file():
    script = b"# a comment\n\nsay a\n  say b\n"
    status, out, _ = run_launcher("exec", "-f", "-", stdin=script)
    tap.equal((status, out), (0, b"a\nb\n"), "-f - reads standard input")
    with tempfile.NamedTemporaryFile() as file:
        file.write(script)
        file.flush()
        status, out, _ = run_launcher("exec", "-f", file.name)
    tap.equal((status, out), (0, b"a\nb\n"), "-f FILE reads a file")
    status, _, err = run_launcher("exec", "-f", "/does/not/exist")
    tap.check(status == 2 and "/does/not/exist" in err, "a file that is not there")
    status, _, err = run_launcher("exec")
    tap.check(status == 2 and "no command" in err, "no command at all")


def the_first_failure_ends_it():
    status, out, err = run_launcher("exec", "say a", "fail 2 ENOENT", "say b")
    tap.equal((status, out), (1, b"a\nno such thing\n"), "nothing runs after it")
    tap.check("'fail 2 ENOENT'" in err and "2 ENOENT" in err, "command and errno named")


def a_panic_is_told():
    status, _, err = run_launcher("exec", "panic")
    tap.equal(status, 3, "a panic has its own status")
    tap.check("panic: asked for" in err, "with the last lines of the log")
    tap.check("panicked, in 'panic'" in err, "and the command")


def a_panic_that_cannot_end_is_told():
    start = time.monotonic()
    status, _, err = run_launcher("exec", "stuck-panic")
    tap.check(status == 3 and "panicked" in err, "a panic that hangs is a panic")
    tap.check(time.monotonic() - start < 60, "and does not wait for the time limit")


def a_hang_is_told():
    status, _, err = run_launcher("exec", "--timeout", "1", "hang")
    tap.check(status == 124 and "within 1 s, in 'hang'" in err, "a hung command")
    os.environ["FAKE"] = "silent"
    status, _, err = run_launcher("exec", "--timeout", "1", "say a")
    tap.check(status == 124 and "before its prompt" in err, "no prompt")
    tap.check("C0: fake" in err, "with the last lines of the log")
    os.environ["FAKE"] = "broken"
    status, _, err = run_launcher("exec", "say a")
    del os.environ["FAKE"]
    tap.check(status == 4 and "fake: broken" in err, "QEMU's own words are shown")


def resets_are_told():
    status, _, err = run_launcher("exec", "triple")
    tap.check(status == 4 and "triple fault, in" in err, "triple fault")
    status, _, err = run_launcher("exec", "reset")
    tap.check(status == 4 and "reset itself" in err, "a reset nobody asked for")
    status, _, err = run_launcher("exec", "off", "say a")
    tap.check(status == 4 and "switched itself off" in err, "off before the last command")
    status, _, _ = run_launcher("exec", "say a", "off")
    tap.equal(status, 0, "off as the last command is what was asked for")


def wrong_usage_is_refused():
    for words in ([], ["fly"], ["exec", "--smp", "0", "say a"], ["run", "--boot", "tape"]):
        status, out, err = run_launcher(*words)
        what = " ".join(["./sonde"] + words)
        tap.check(status == 2 and err and not out, f"'{what}' is refused")


def piped_input_comes_after_the_prompt():
    os.environ["FAKE"] = "console"
    status, out, err = run_launcher("run", stdin=b"hello\nworld")
    tap.equal((status, err), (0, ""), "the end of input is a poweroff")
    tap.check(b"<hello><world><poweroff>" in out, "all lines arrived, and in order")
    os.environ["FAKE"] = "console panic"
    status, out, err = run_launcher("run", stdin=b"hello\n")
    tap.check(status == 3 and "panicked" in err, "a panic on the way is told")
    tap.check(b"panic: asked for" in out and "asked for" not in err, "its report once")
    os.environ["FAKE"] = "console hang"
    status, out, err = run_launcher("run", "--timeout", "1", stdin=b"hello\n")
    tap.check(status == 124 and "end of its input" in err, "so is a guest that hangs")
    del os.environ["FAKE"]


def a_log_is_written():
    with tempfile.NamedTemporaryFile() as file:
        run_launcher("exec", "--log", file.name, "say a")
        tap.check(b"C0: fake" in file.read(), "--log FILE holds the console")


def first_child(pid):
    """The first process that @pid starts; waits for it."""
    for _ in range(600):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        if children:
            return int(children[0])
        time.sleep(0.1)
    raise TimeoutError("no guest was started")


def is_gone(pid):
    """Has @pid ended, within half a minute? A zombie has no command line."""
    for _ in range(300):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if not file.read():
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def nothing_is_left_behind():
    with contextlib.redirect_stderr(io.StringIO()):
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--launch", "exec", "hang"]
        )
    child = first_child(process.pid)
    process.kill()
    process.wait()
    tap.check(is_gone(child), "a killed launcher takes its guest along")


def words_of_qemu():
    setup = guest.Setup(smp=3, boot="iso", append="a=1,2 b")
    words = guest.qemu_words(setup, "x", "y", "c", "z", "w")
    tap.check(
        "name=opt/sonde/append,string=a=1,,2 b" in words, "commas are doubled for fw_cfg"
    )
    tap.check("-no-reboot" in words, "a reset ends QEMU")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--launch"]:
        launcher = load_launcher()
        sys.argv = ["./sonde"] + sys.argv[2:]
        sys.exit(launcher.main())
    with_fake_qemu(
        lambda: tap.run(
            output_and_nothing_else,
            verbose_tells_the_time_to_the_prompt,
            commands_come_from_a_file,
            the_first_failure_ends_it,
            a_panic_is_told,
            a_panic_that_cannot_end_is_told,
            a_hang_is_told,
            resets_are_told,
            wrong_usage_is_refused,
            piped_input_comes_after_the_prompt,
            a_log_is_written,
            nothing_is_left_behind,
            words_of_qemu,
        )
    )
