"""test_read_only.py - each command of ./sonde, in a built checkout on a file system that is
only read: it works, or it refuses in one sentence that names the file or folder.

ROWS has at least one line for each command that `./sonde --help` has.
"""

import os
import re
import subprocess
import tempfile

import tap
from kernel.console.web import web
from sonde.building import BUILT
from sonde.guest import ROOT
from session import LIMIT, sonde

INT3 = "docs/labs/host/int3/solution"
ELSEWHERE = "Read-only file system; with B=DIR, DIR has the build"
WAIT_FOR = "timeout --preserve-status --signal INT 10"  # in front of ./sonde web
SCRIPT = "import sonde; print(sonde.Guest().request('echo x'))"

# {command: [(words behind it, status, what its output or its sentence has)]}. F is a folder
# that can be written to.
ROWS = {
    "run": [("--boot pvh", 0, "sonde> poweroff")],
    "exec": [("'echo x'", 0, "^x$"),
             ("--log build/x.log 'echo x'", 2, "build/x.log: build cannot be written to")],
    "module": [("docs/samples/reads.c 'run reads'", 5, ELSEWHERE)],
    "trace": [("'vfs_read { count }' -- 'run vfs'", 0, "vfs_read +720"),
              ("-o F/t.dat -- 'run vfs'", 0, ""),
              ("-o t.dat -- 'run vfs'", 2, "t.dat: . cannot be written to")],
    "tracefs": [("F/empty -- cat /sys/kernel/tracing/tracing_on", 0, "^1$")],
    "gdb": [("-- -batch", 5, ELSEWHERE), ("--stub -- -batch", 5, ELSEWHERE)],
    "attach": [("", 5, ELSEWHERE)],
    "record": [("F/r 'echo x'", 0, "replay: ./sonde replay"),
               ("r 'echo x'", 2, "r: . cannot be written to")],
    "replay": [("F/r -- -batch", 0, "detached")],
    "check": [("docs/scripting.md", 0, "1 as shown")],
    "python": [(f'-c "{SCRIPT}"', 0, "^x$")],
    "pytest": [("--version", 0, "pytest")],
    "test": [("--list", 0, "unit/err"),
             ("unit/err", 5, "build cannot be written to; with B=DIR")],
    "film": [("text hit", 0, "int3"), ("record hit -o F/f", 0, ""), ("svg hit", 0, "svg"),
             ("html -o F/f.html", 0, ""), ("html", 5, ELSEWHERE)],
    "lab": [("3", 0, "Your files are in"), ("3 x", 2, "x: .* cannot be written to")],
    "grade": [(INT3, 2, "no lab"), (f"3 {INT3}", 5, ELSEWHERE),
              (f"3 {INT3} --tree", 5, ELSEWHERE)],
    "class": [("--guests 1", 0, "1 guests"), ("F/c.csv -o F/zips", 0, "1 students"),
              ("F/c.csv", 2, "handed-out: .* cannot be written to")],
    "web": [("--port 0", 0, "http://")],
}  # fmt: skip

# $1: the tree, which becomes a mount that cannot be written to; $2: a command
INSIDE = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" "$1" || exit 99
cd "$1" && ! touch build/x 2>/dev/null || exit 99
eval "$2"
"""

# What a run of tests tells its tests: ./sonde is to look itself whether all is built, and to
# list the tests as a user sees them.
OF_THE_RUN = (BUILT, "LONG", "TOOLS", "VERBOSE")
PROGRESS = r"sonde: (building|\d+ s: )"  # of a build


def commands():
    text = sonde("--help")[1].partition("exit status:")[0]
    return set(re.findall(r"^    (\w+)  ", text, re.M))


def each_command_has_a_row():
    tap.equal(commands() ^ set(ROWS), set(), "each command has a row, each row a command")


def run(command, folder):
    """Run a command in the tree. Return (status, its output, its errors)."""
    user = ["--map-root-user"] if os.getuid() else []
    environment = dict(os.environ, SONDE_LABS=os.path.join(folder, "labs"))
    for name in OF_THE_RUN:
        environment.pop(name, None)
    done = subprocess.run(
        ["unshare", "--mount", *user, "sh", "-c", INSIDE, "sh", ROOT, command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def can_mount(folder):
    return run("true", folder)[0] == 0


def test_of(name, folder):
    def test():
        for words, want, said in ROWS[name]:
            command = f"./sonde {name} {words.replace('F/', folder + '/')}"
            command = WAIT_FOR * (name == "web") + " " + command
            status, out, err = run(command, folder)
            # The sentence comes last; lines before it are of make, or of a panic.
            lines = [line for line in err.splitlines() if line.startswith("sonde: ")]
            sentences = [line for line in lines if not re.match(PROGRESS, line)]
            right = status == want and re.search(said, out + err, re.M)
            if want:
                right = right and len(sentences) == 1 and re.search(said, sentences[0])
            if not tap.check(right and "Traceback" not in err, f"{name} {words}: {want}"):
                tap.note(f"status {status}\n{out[-1000:]}\n{err[-1000:]}")

    test.__name__ = "of_" + name
    return test


def main():
    with tempfile.TemporaryDirectory() as folder:
        if not can_mount(folder):
            tap.skip("each command in a tree that is only read", "mounts are not allowed")
            tap.run(each_command_has_a_row)
            return
        words = [os.path.join(ROOT, "sonde"), "exec", "echo x"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        web.install()
        os.mkdir(os.path.join(folder, "empty"))
        with open(os.path.join(folder, "c.csv"), "w", encoding="ascii") as file:
            file.write("id\neve\n")
        names = [
            name for name in ROWS if name != "tracefs" or os.access("/dev/fuse", os.R_OK)
        ]
        tap.run(each_command_has_a_row, *[test_of(name, folder) for name in names])


main()
