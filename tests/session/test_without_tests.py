#!/usr/bin/env python3
"""test_without_tests.py - tests that users need no file of tests/, and no repository: in a
copy without both, make and the commands of ./sonde work.

lint/apart finds the names of files; here the commands run. The copy has the objects that
are built here, so that nothing is compiled again.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request

import tap
from session import LIMIT
from sonde.guest import BUILD, ROOT

# What the build of the copy begins with. Other folders of build/ belong to tests.
BUILT = ("boot", "docs", "drivers", "host", "kernel", "libc", "libinsn", "link", "probes",
         "web")  # fmt: skip
OURS = ("B", "EXTRA_OBJS", "LONG", "MAKEFLAGS", "PYTHONPATH", "SONDE_BUILT", "TOOLS")
ADDRESS = re.compile(rb"http://[\w.:]+/")


def copy_tree(copy):
    """Copy what git knows, but tests/; and what is built."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0")[:-1]:
        here, there = os.path.join(ROOT, name), os.path.join(copy, name)
        if not name.startswith("tests/") and os.path.exists(here):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copy2(here, there)
    os.mkdir(os.path.join(copy, "build"))
    for name in os.listdir(BUILD):
        here, there = os.path.join(BUILD, name), os.path.join(copy, "build", name)
        if name in BUILT:
            shutil.copytree(here, there, symlinks=True)
        elif os.path.isfile(here):
            shutil.copy2(here, there)


class Copy:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {k: v for k, v in os.environ.items() if k not in OURS}
        self.environment.setdefault("GRADE_SCALE", "10")  # other tests run beside it

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words, stdin=""):
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=2 * LIMIT,
            check=False,
        )

    def works(self, said, *words, stdin=""):
        """Report whether a command succeeds, and whether it prints what fits @said."""
        done = self.run(*words, stdin=stdin)
        if not tap.check(
            done.returncode == 0 and re.search(said, done.stdout), shown(words)
        ):
            said = done.stdout[-2000:] + done.stderr[-2000:]
            tap.note(f"status {done.returncode}\n{said}")


def shown(words):
    return " ".join(f"'{word}'" if " " in word else word for word in words)


def make_works(copy):
    done = copy.run("make")
    tap.equal((done.returncode, done.stderr), (0, ""), "make")
    tap.check("CC" not in done.stdout, "which compiles no file again")
    copy.works("sonde> ", "make", "run", stdin="poweroff\n")
    done = copy.run("make", "help")
    tap.equal((done.returncode, done.stderr), (0, ""), "make help")


def commands_work(copy):
    sonde = "./sonde"
    copy.works("(?m)^ +exec ", sonde, "--help")
    copy.works(
        r"jump +720 ", sonde, "exec", "probe add vfs_read", "run vfs", "probe list"
    )
    copy.works(
        "", sonde, "trace", "-o", "t.json", "vfs_read { hist(count) }", "--", "run vfs"
    )
    with open(copy.path("t.json"), encoding="utf-8") as file:
        tap.check('"endValue": 720' in file.read(), "which writes what it recorded")
    copy.works("reads: ", sonde, "module", "docs/samples/reads.c", "run reads")
    script = "import sonde\nwith sonde.Guest() as guest: print(guest.request('echo x'))"
    copy.works("(?m)^x$", sonde, "python", "-c", script)
    copy.works(
        "(?m)^bt, up and finish lead through probes",
        sonde,
        "gdb",
        "--",
        "-batch",
        "-ex",
        "help sonde",
    )
    copy.works("as shown", sonde, "check", "docs/scripting.md")
    done = copy.run(sonde, "test")
    tap.equal(
        (done.returncode, done.stderr),
        (2, "sonde: this tree has no tests\n"),
        "./sonde test refuses",
    )


def labs_work(copy):
    for lab in ("int3", "poke", "handler"):
        folder = f"docs/labs/host/{lab}/solution"
        copy.works("(?m)^Score: 20/20$", "./sonde", "grade", lab, folder)


def films_work(copy):
    copy.works("breakpoint", "./sonde", "film", "text", "hit")
    copy.works("", "./sonde", "film", "record", "unload", "-o", "film")


def web_works(copy):
    words = ["./sonde", "web", "--port", "0"]
    server = subprocess.Popen(
        words,
        cwd=copy.folder,
        env=copy.environment,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    try:
        address = next(filter(None, map(ADDRESS.search, server.stderr)), None)
        if tap.check(address, "./sonde web says its address"):
            with urllib.request.urlopen(address[0].decode(), timeout=LIMIT) as page:
                tap.check(b"<title>" in page.read(), "and serves its page")
    finally:
        server.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(30)
        server.kill()


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
        copy_tree(folder)
        copy = Copy(folder)

        def on_copy(test):
            def run():
                test(copy)

            run.__name__ = test.__name__
            return run

        tests = (make_works, commands_work, labs_work, films_work, web_works)
        tap.run(*map(on_copy, tests))


main()
