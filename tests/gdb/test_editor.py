"""test_editor.py - does what VS Code does with the launch.json of docs/debugging.md, and
opens QEMU's stub of a running guest as that document says.
"""

import json
import os
import re
import subprocess
import tempfile
import threading

from under import ROOT
from session import LIMIT, ask, at_prompt

import tap


def block(language):
    """Return the document's block of this language."""
    with open(os.path.join(ROOT, "docs/debugging.md"), encoding="utf-8") as file:
        return re.search(rf"^```{language}\n(.*?)^```", file.read(), re.M | re.S)[1]


class Editor:
    """A gdb that speaks MI, as an editor starts it."""

    def __init__(self, setup, target):
        self.process = subprocess.Popen(
            [setup["miDebuggerPath"], "-nx", "--interpreter=mi"],
            cwd=setup["cwd"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.do(f"-file-exec-and-symbols {setup['program']}")
        for command in setup["setupCommands"]:
            self.do(f'-interpreter-exec console "{command["text"]}"')
        self.do(f"-target-select remote {target}")

    def do(self, command, end=r"\^(?:done|running|connected|error)"):
        """Send a command. Return the line with its result, or the line that matches @end."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.until(end)

    def until(self, end):
        for line in self.process.stdout:
            if re.match(end, line):
                return line
        raise EOFError("gdb has ended")


def opened(guest_socket, stub):
    """Run the document's program, which opens QEMU's stub, with other names of sockets."""
    text = block("python").replace("build/qmp", guest_socket)
    text = text.replace("tcp:127.0.0.1:1234", f"unix:{stub},server=on,wait=off")
    done = subprocess.run(["python3", "-"], input=text.encode(), cwd=ROOT, check=False)
    tap.equal(done.returncode, 0, "a guest that was not started for gdb opens the stub")


def an_editor_stops_and_steps():
    text = block("json").replace("${workspaceFolder}", ROOT)
    (setup,) = json.loads(text)["configurations"]
    with tempfile.TemporaryDirectory() as folder:
        control, stub = (os.path.join(folder, name) for name in ("qmp", "gdb"))
        with at_prompt(qmp=control) as guest:
            opened(control, stub)
            ask(guest, "probe add vfs_read+5")
            editor = Editor(setup, stub)
            said = editor.do("-break-insert -f vfs_read")
            tap.check('func="vfs_read"' in said, "a breakpoint")
            editor.do("-exec-continue --all")
            console = threading.Thread(
                target=ask, args=(guest, "cat /proc/version"), daemon=True
            )
            console.start()
            said = editor.until(r"\*stopped")
            tap.check('reason="breakpoint-hit"' in said, "stops")
            lines = [int(re.search(r'line="(\d+)"', said)[1])]
            for _ in range(3):
                editor.do("-exec-next")
                said = editor.until(r"\*stopped")
                tap.check('reason="end-stepping-range"' in said, "a step")
                lines.append(int(re.search(r'line="(\d+)"', said)[1]))
            tap.check(lines == sorted(set(lines)), f"goes from line to line: {lines}")
            said = editor.do("-stack-list-variables --simple-values")
            tap.check(
                'name="count",arg="1",type="size_t",value="4096"' in said, "variables"
            )
            said = editor.do("-stack-list-frames")
            tap.check('func="thread_entry"' in said, "the whole stack")
            said = editor.do('-interpreter-exec console "probes"', r'~".*vfs_read\+0x5')
            tap.check("jump" in said, "and the commands of sonde")
            editor.do("-break-delete")
            editor.do("-exec-continue --all")
            console.join(LIMIT)
            tap.check(not console.is_alive(), "then the guest goes on")
            editor.process.kill()
            editor.process.wait()


tap.run(an_editor_stops_and_steps)
