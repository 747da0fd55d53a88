#!/usr/bin/env python3
"""test_web.py - tests ./sonde web in headless Chromium: typing, a paste, a lost
connection, a browser that goes away, pages of other sites, and a lab from the page
load to the full score.

    tests/session/test_web.py [--shots=FOLDER]      also keep pictures of the page
"""

import base64
import contextlib
import glob
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

sys.dont_write_bytecode = True
import tap
from browser import Browser
from fake import heed_interrupts
from kernel.console.web import guests, web
from sonde.building import HostError
from sonde.guest import BUILD, ROOT, die_with_parent

LIMIT = 120
CONTROLS = ("button", "checkbox", "combobox", "link", "region", "slider", "textbox")
SCHEMES = ("light", "dark")
GRACE = 4
PROMPT = "window.shown && shown().endsWith('sonde>')"
TASK = "document.getElementById('task')"
RESULT = "document.getElementById('result').textContent"
FILE = "ask('file', {id: session.id, kind: '%s'}).then(told => told.base64)"
SONDE = os.path.join(ROOT, "sonde")
AXE = os.path.join(BUILD, "axe", "node_modules", "axe-core", "axe.min.js")
AXE_VERSION = "4.14.1"
SIZES = ((390, 844), (1280, 800))
VIEW = re.compile(r"\]\(<?#(function|question)=")
VIEW_OF = re.compile(r"\]\(<?#(?:function|question)=(?:ret )?(\w+)")
SOLUTIONS = os.path.join(ROOT, "docs", "labs", "host")
ASM_KINDS = ["cm-comment", "cm-def", "cm-keyword", "cm-number"]
WORKING = ("memcpy", "serial_read", "shell_printf", "wake_all")  # what requests call
SHOTS = next((word[8:] for word in sys.argv if word.startswith("--shots=")), None)


class Server:
    """`./sonde web` on a port of its own. Use with `with`."""

    def __init__(self, *options):
        self.home = tempfile.mkdtemp(prefix="sonde-web-test-")
        self.process = subprocess.Popen(
            [SONDE, "web", "--port", "0", "--grace", str(GRACE), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(heed_interrupts),
            env=dict(os.environ, SONDE_LABS=self.home),
        )
        for line in self.process.stderr:
            found = re.search(r"(http://([^/]+):(\d+)/\S*) ", line)
            if found:
                self.url, self.port = found[1], int(found[3])
                self.host = found[2].strip("[]")
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise AssertionError("the server has not started")

    def ask(self, method, path, body=None, **headers):
        """Send one request. Return the status and the text of the reply."""
        line = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        line.request(method, path, body=body, headers=headers)
        reply = line.getresponse()
        return reply.status, reply.read().decode(errors="replace")

    def guests(self):
        """Return the QEMU processes that this server has started."""
        done = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if "qemu" in line]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)
        shutil.rmtree(self.home, ignore_errors=True)


def at_prompt(browser, server, query=""):
    page = browser.open(server.url + query)
    if not page.wait(PROMPT, LIMIT):
        raise AssertionError(
            "no prompt: " + str(page.evaluate("document.body.innerText"))
        )
    return page


def command(page, text, want):
    page.type(text + "\r")
    return page.wait(f"shown().includes({json.dumps(want)})", LIMIT)


def run_line(page, text):
    """Type a line, and wait until the guest has run it: a prompt follows its echo."""
    page.type(text + "\r")
    after = json.dumps(f"sonde> {text}\nsonde>")
    assert page.wait(f"shown().endsWith({after})", LIMIT), page.evaluate("shown()")[-300:]


def keep(page, name):
    for scheme in SCHEMES if SHOTS else ():
        page.scheme(scheme)
        page.shot(os.path.join(SHOTS, f"{name}-{scheme}.png"))


def a_console(browser, server):
    begun = time.monotonic()
    page = at_prompt(browser, server)
    tap.note(f"page to prompt: {time.monotonic() - begun:.1f} s, goal 2")
    tap.equal(
        page.evaluate("getComputedStyle(document.getElementById('editor')).display"),
        "none",
        "without a lab there is no editor",
    )
    tap.check(
        command(page, "probe add vfs_read", "p1 at vfs_read+0x0"), "a probe is typed"
    )
    tap.check(command(page, "run vfs", "calls 720"), "a workload runs")
    page.type("probe list\r")
    tap.check(page.wait("/p1 .* 720 /.test(shown())", LIMIT), "and its hits are seen")
    keep(page, "console")
    return page


def a_long_paste(browser, server):
    page = at_prompt(browser, server)
    text = "echo " + "0123456789" * 1000 + " > /tmp/long"
    page.evaluate(f"terminal.paste({json.dumps(text)})")
    page.type("\r")
    tap.check(
        command(page, "cat /tmp/long | wc", "10001"), "10 kB are pasted, none is lost"
    )
    if not page.wait("shown().includes('10001')", 1):
        tap.note(page.evaluate("shown()")[-600:])


def a_connection_that_is_lost(browser, server):
    page = at_prompt(browser, server)
    run_line(page, "echo kept > /tmp/b")
    page.type("echo half")
    page.wait("shown().endsWith('sonde> echo half')", LIMIT)
    page.evaluate(
        "window.lost = socket, socket.close(3001), terminal.paste(' and not sent')"
    )
    again = "socket !== lost && document.body.dataset.state === 'connected'"
    tap.check(page.wait(again, LIMIT), "the page connects again by itself")
    lost = "/connection is lost.*Connected again.*sonde> echo half$/s.test(shown())"
    tap.check(
        page.wait(lost, LIMIT),
        "it says what is lost, and shows the line that the guest has",
    )
    tap.check(
        command(page, " and whole", "\nhalf and whole\n"), "which nothing has ended"
    )
    tap.check(command(page, "cat /tmp/b", "\nkept"), "to the same guest")
    page.call("Page.close")


def keys_before_the_console(browser, server):
    page = browser.open(server.url)
    has_focus = "terminal.textarea && document.activeElement === terminal.textarea"
    page.wait(f"window.shown && {has_focus}", LIMIT)
    early = page.evaluate("terminal.paste('echo ear'), document.body.dataset.state")
    page.type("ly\r")
    tap.note(f"typed while the page was {early}")
    tap.check(page.wait("shown().includes('\\nearly')", LIMIT), "wait for it")
    page.call("Page.close")


def a_guest_that_ends(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#function=vfs_read'")
    page.wait("seen && by('fn-rows').rows.length", LIMIT)
    page.evaluate("type('poweroff\\r')")
    over = "!document.getElementById('again').hidden"
    tap.check(page.wait(over, LIMIT), "the page says so")
    told = page.wait("by('fn-said').textContent.includes('ended')", 10)
    if not tap.check(told, "in the view"):
        tap.note(page.evaluate("by('fn-said').textContent"))
    page.press("#again")
    tap.check(page.wait(PROMPT, LIMIT), "and starts another one")
    page.wait("seen && !busy", LIMIT)
    page.press("#fn-at-0")
    tap.check(page.wait("seen.rows[0].probes.length", LIMIT), "in which the view goes on")
    page.call("Page.close")


def a_guest_that_panics(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#function=vfs_read&all=1'")
    page.wait("seen && !busy && seen.rows[0].probes.length", LIMIT)
    page.evaluate("by('fn-threads').open = true, type('panic while it is counted\\r')")
    over = "!by('again').hidden && by('fn-said').textContent.includes('ended')"
    tap.check(page.wait(over, LIMIT), "the page says that its guest has ended")
    told = page.evaluate("shown()")
    if not tap.check("end of panic" in told, "and why"):
        tap.note(told[-1000:])
    for button in ("#fn-at-0", "#fn-fold-0", "#fn-all", "#fn-record"):
        page.evaluate("say('')")
        page.press(button)
        told = page.wait("by('fn-said').textContent.includes('has ended') && !busy", 20)
        if not tap.check(told, f"a click on {button} is told the same"):
            tap.note(page.evaluate("by('fn-said').textContent"))
    tap.check(page.evaluate("by('fn-rows').rows.length > 10"), "the last counts stay")
    page.press("#again")
    page.wait(PROMPT, LIMIT)
    tap.check(
        page.wait("seen && !busy && seen.rows[0].probes.length", LIMIT),
        "another guest counts what the address says",
    )
    page.call("Page.close")


def a_user_who_goes_on(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#function=vfs_read'")
    page.wait("seen && !busy && by('fn-rows').rows.length", LIMIT)
    page.evaluate("by('fn-all').click(), location.hash = '#question='; 0")
    page.wait("!busy && seen.rows[0].probes.length", LIMIT)
    tap.equal(
        page.evaluate("location.hash"), "#question=", "probes come: the address stays"
    )
    page.evaluate("history.back()")
    page.wait("!by('function').hidden", LIMIT)
    # A console that is older than the lines which the terminal keeps.
    page.evaluate("terminal.write('\\r\\n'.repeat(10100)), type('\\r')")
    page.wait(PROMPT, LIMIT)
    page.evaluate("by('fn-again').checked = true, by('fn-start').click()")
    often = "shown().split('calls 720').length > 3"
    if not tap.check(page.wait(often, LIMIT), "a workload runs again and again"):
        tap.note(page.evaluate("shown()")[-300:])
    page.evaluate("by('fn-again').checked = false; 0")
    run = {"id": page.evaluate("session.id"), "place": "vfs_open", "run": "none"}
    status, _ = server.ask("POST", "/record?" + urllib.parse.urlencode(run), "{}")
    left = page.evaluate("inGuest('probe list')")
    tap.equal((status, "vfs_open" in left), (404, False), "a film that fails leaves none")
    page.call("Page.close")


def lab_after_lab(browser, _server):
    with Server("--guests", "1") as server:
        page = at_prompt(browser, server, "?lab=3")
        for lab, title in (("4", "decode"), ("2", "handler")):
            page.evaluate(f"by('labs').value = '{lab}'")
            # The page answers before it goes to the address of the lab.
            page.evaluate(
                "void setTimeout(() => by('labs').dispatchEvent(new Event('change')))"
            )
            there = (
                f"location.search === '?lab={lab}' && document.readyState === 'complete'"
            )
            page.wait(f"{there} && lab && lab.lab === '{title}'", LIMIT)
            tap.check(
                page.wait(PROMPT, LIMIT), f"{title} gets the guest of the lab before"
            )
        tap.equal(page.evaluate("shown().split('sonde>').length - 1"), 1, "one prompt")
        tap.equal(
            page.evaluate("[...by('modules').options].map(one => one.value)[0]"),
            "readers.c",
            "what the other modules need is loaded first",
        )
        other = browser.open(server.url + "?lab=5")
        refused = (
            "document.body && /^there are 1 guests/.test(document.body.dataset.state)"
        )
        tap.check(other.wait(refused, LIMIT), "another page has no guest")
        tap.equal(
            other.evaluate(
                "[by('task').textContent.length > 500, by('labs').options.length,"
                " by('files').options.length > 0, editor.getValue().length > 0]"
            ),
            [True, 11, True, True],
            "but the task, all labs, and the editor",
        )
        other.press("#grade")
        tap.check(other.wait(RESULT + ".includes('Score:')", LIMIT), "and its points")


def links_of_nonsense(browser, server):
    page = at_prompt(browser, server)
    said = "by('fn-said').textContent.includes({})"
    for name, answer in (
        ("no_such", "no symbol has this name"),
        ("vfs_read > /tmp/x", "is no name of a function"),
        ("", "type the name of a function"),
        ("../../etc/passwd", "../../etc/passwd"),
    ):
        page.evaluate(
            f"location.hash = '#function=' + encodeURIComponent({json.dumps(name)})"
        )
        told = page.wait(said.format(json.dumps(answer)), 20)
        told = told and page.evaluate("by('fn-title').textContent === ''")
        tap.check(told, f"#function={name}: {answer}")
    page.evaluate(
        "location.hash = '#function=vfs_read&probes=x,-1,0x1,1e99,0x5&fold=y,0x2&run=none'"
    )
    page.wait("seen && !busy", LIMIT)
    told = "seen.rows.filter(own).map(row => row.offset).join()"
    tap.equal(page.evaluate(told), "5", "of its probes, those that are instructions")
    tap.equal(page.evaluate("by('fn-run').value"), "vfs", "the usual workload")
    page.evaluate("location.hash = '#question=' + encodeURIComponent('} {&%')")
    tap.check(page.wait("by('q-said').textContent.length > 10", LIMIT), "a question")
    page.evaluate("location.hash = '#film=none'")
    tap.check(page.wait("!by('film').hidden && filmed", LIMIT), "a film: the first one")
    page.evaluate("location.hash = '#%zz'")
    tap.check(
        page.wait(TASK + ".textContent.includes('cannot be read')", LIMIT), "a document"
    )
    page.call("Page.close")


def key(page, name, code):
    """Press a key that writes nothing."""
    for kind in ("rawKeyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=name,
            code=name,
            windowsVirtualKeyCode=code,
        )


def nameless(page):
    """The controls that a screen reader could not name."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in CONTROLS
        and not node["ignored"]
        and not node.get("name", {}).get("value")
    ]


def resize(page, width, height):
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=width < 800,
    )


def axe():
    """The text of axe-core, which finds what readers with a disability can't use."""
    if not os.path.exists(AXE):
        words = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--no-save"]
        words += ["--prefix", os.path.join(BUILD, "axe"), f"axe-core@{AXE_VERSION}"]
        subprocess.run(words, check=True)
    with open(AXE, encoding="utf-8") as file:
        return file.read()


def violations(page):
    """What axe-core finds in the page as it is: [rule: element]."""
    # The keys of the editor's text scroll it.
    found = "one.nodes.map(node => `${one.id}: ${node.target} ${node.failureSummary}`)"
    # A rule that could not run has an error.
    rules = "told.violations.concat(told.incomplete.filter(one => one.error))"
    told = page.evaluate(
        f"axe.run(document).then(told => {rules}.flatMap(one => {found}))"
    )
    return [one for one in told if ": .CodeMirror-scroll" not in one]


def console_hits(page, name):
    """Address -> hits of the probes of the set @name, as the console lists them."""
    text = page.evaluate(f"inGuest('probe list {name}')")
    return {line.split()[1]: int(line.split()[4]) for line in text.splitlines()[1:]}


FIRST_COUNT = "document.querySelector('#fn-row-0 .count').textContent"


def click_in_console(page, word):
    """Click on the last @word that the terminal shows. It must lie in one line."""
    places = page.evaluate(
        "[...document.querySelectorAll('.xterm-rows > div')].flatMap((row, y) => {"
        f" const x = row.textContent.indexOf({json.dumps(word)});"
        " const r = document.querySelector('.xterm-screen').getBoundingClientRect();"
        " return x < 0 ? [] : [[r.left + (x + 2) * r.width / terminal.cols,"
        " r.top + (y + .5) * r.height / terminal.rows]]; })"
    )
    page.mouse("Moved", *places[-1])
    page.wait("document.querySelector('.xterm-cursor-pointer')", LIMIT)
    page.drag(places[-1])


def a_function_alive(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#function=vfs_read&all=1'")
    page.wait("seen && !busy && seen.rows[0].probes.length", LIMIT)
    page.press("#fn-start")
    tap.check(page.wait(f"{FIRST_COUNT} === '720'", LIMIT), "its hits are seen, live")
    offered = page.evaluate("[...by('fn-names').options].map(one => one.value)")
    found = [name for name in ("vfs_read", "memcpy", "vfs_mutex") if name in offered]
    tap.equal(found, ["vfs_read", "memcpy"], "the search offers functions, and no data")
    shown = page.evaluate(
        "Object.fromEntries(seen.rows.map((row, i) => [row.address, counts[i][0]]))"
    )
    tap.equal(shown, console_hits(page, "p1"), "they are those of the console")
    read = "[0, 1, 2].map(i => by(`fn-row-${i}`).querySelectorAll('.o-j.read').length)"
    tap.equal(page.evaluate(read), [0, 0, 3], "a jump reads the bytes of jumps behind it")
    page.evaluate("by('fn-threads').open = true")
    tap.check(page.wait("by('fn-ps').rows.length > 4", LIMIT), "threads")
    listed = "[...by('fn-ps').rows].map(row => [0, 1].map(i => row.cells[i].textContent))"
    ps = [line.split()[:2] for line in page.evaluate("inGuest('ps')").splitlines()[1:]]
    tap.equal(page.evaluate(listed), ps, "as `ps` has them")
    page.evaluate("by('fn-threads').open = false")
    page.evaluate("location.hash = '#function=vfs_write'")
    page.wait("seen.function === 'vfs_write' && !busy", LIMIT)
    click_in_console(page, "vfs_read")
    there = page.wait("seen.function === 'vfs_read' && !busy", LIMIT)
    tap.check(there, "a click on a name in the console leads to it")
    tap.check(
        page.evaluate("by('fn-source').textContent.includes('memcpy(buf')"), "its source"
    )
    page.evaluate("by('fn-none').click()")
    tap.check(page.wait("!seen.rows.some(row => row.probes.length)", LIMIT), "none left")

    page.evaluate("by('fn-at-0').focus()")
    key(page, "ArrowDown", 40)
    tap.equal(page.evaluate("document.activeElement.id"), "fn-at-1", "an arrow goes on")
    pressed = "by('fn-at-1').getAttribute('aria-pressed') === '{}' && !busy"
    page.type("\r")
    tap.check(page.wait(pressed.format("true"), LIMIT), "Enter sets a probe")
    tap.check(
        page.wait("by('fn-row-1').querySelector('.o-j')", LIMIT), "its jump is coloured"
    )
    key(page, "ArrowRight", 39)
    step = "by('fn-path-1').querySelector('li')"
    page.wait(step, LIMIT)
    tap.check(
        page.evaluate(step + ".textContent").split()[1] == "jmp", "the jump is unfolded"
    )
    parts = page.evaluate(
        "[...by('fn-path-1').querySelectorAll('h2')].map(h => h.textContent)"
    )
    tap.equal(parts, ["jump", "pad", "detour"], "with its pad and its detour")
    key(page, "ArrowDown", 40)
    tap.check(
        page.evaluate(f"document.activeElement === {step}"), "the arrow follows the CPU"
    )
    key(page, "ArrowLeft", 37)
    page.evaluate("by('fn-optimize').click()")
    tap.check(
        page.wait("by('fn-row-1').querySelector('.o-i') && !busy", LIMIT), "int3 again"
    )
    link = page.evaluate("location.href")
    tap.equal(
        page.evaluate("[...by('fn-engine').options].map(one => one.value)"),
        ["int3", "stop-machine", "word"],
        "engines",
    )
    for line, shown, what in (
        (
            "echo word > /proc/sys/debug/text-poke",
            "by('fn-engine').value === 'word'",
            "the page shows the console's engine",
        ),
        (
            "echo 1 > /proc/sys/debug/kprobes-optimization",
            "by('fn-optimize').checked && by('fn-row-1').querySelector('.o-j')",
            "its optimizer",
        ),
        (
            "probe add vfs_read+0x5 other",
            "seen.rows[1].probes.length === 2",
            "its probes",
        ),
        ("probe del other", "seen.rows[1].probes.length === 1", "and that they go"),
    ):
        page.evaluate(f"type({json.dumps(line)} + '\\r')")
        if not tap.check(page.wait(shown + " && !busy", LIMIT), what):
            tap.note(page.evaluate("shown()")[-300:])
    page.evaluate("by('fn-at-1').focus()")
    page.type("\r")
    tap.check(page.wait(pressed.format("false"), LIMIT), "Enter removes the probe")

    tap.check("probes=0x5" in link and "run=vfs" in link, f"the address: {link}")
    other = browser.open("about:blank")
    other.call("Page.navigate", url=link)
    set_again = "document.readyState === 'complete' && seen && seen.rows[1].probes.length"
    tap.check(other.wait(set_again + " && !busy", LIMIT), "a link sets its probe")
    other.evaluate("by('fn-start').click()")
    hits = "document.querySelector('#fn-row-1 .count').textContent === '720'"
    tap.check(other.wait(hits, LIMIT), "and runs its workload")
    other.evaluate("location.hash = '#function=exc_int3'")
    other.wait("seen && seen.function === 'exc_int3'", LIMIT)
    other.press("#fn-at-0")
    why = other.evaluate("inGuest('probe explain exc_int3')")
    why = re.search("verdict +no probe: (.*)", why)[1]
    told = "by('fn-said').textContent === 'exc_int3+0x0: ' + {0} && by('fn-row-0')"
    told += ".className === 'refused' && by('fn-row-0').textContent.includes({0})"
    tap.check(
        other.wait(told.format(json.dumps(why)), LIMIT),
        f"what cannot be probed says why, as `probe explain`: {why}",
    )
    other.evaluate("location.hash = '#function=vfs_read'")
    other.wait("seen.function === 'vfs_read' && !busy", LIMIT)
    other.press("#fn-file")
    other.wait("seen && seen.file && !busy && seen.rows[0].probes.length", LIMIT)
    other.evaluate("by('fn-start').click()")
    hits = "Object.values(counts).some(row => row[0] === 720)"
    if not tap.check(other.wait(hits, LIMIT), "the functions of a file"):
        tap.note(other.evaluate("JSON.stringify([counts, by('fn-said').textContent])"))
        tap.note(other.evaluate("shown()")[-500:])
    for one in (page, other):
        one.call("Page.close")


def clicks_are_no_hits(browser, server):
    page = at_prompt(browser, server)

    def show(name):
        page.evaluate(f"location.hash = '#function={name}'")
        page.wait(f"seen && seen.function === '{name}' && !busy", LIMIT)

    def click(what, there):
        page.press(what)
        if not tap.check(page.wait(f"{there} && !busy", LIMIT), f"{what} is clicked"):
            tap.note(page.evaluate("by('fn-said').textContent"))

    def listed():
        lines = page.evaluate("inGuest('probe list')").splitlines()[1:]
        return {line.split()[6]: int(line.split()[4]) for line in lines}

    for name in WORKING:
        show(name)
        click("#fn-at-0", "own(seen.rows[0])")
    before = listed()
    show("vfs_write")
    click("#fn-at-0", "own(seen.rows[0])")
    click("#fn-fold-0", "unfolded.size")
    click("#fn-threads summary", "by('fn-ps').rows.length")
    click("#fn-optimize", "by('fn-said').textContent.endsWith('is 0')")
    click("#fn-optimize", "by('fn-said').textContent.endsWith('is 1')")
    click("#fn-at-0", "!own(seen.rows[0])")
    show(WORKING[0])
    tap.equal(listed(), before, "no click has moved a count")
    hidden = "Number(/(\\d+) hidden/.exec(by('fn-row-0').textContent)[1])"
    tap.check(page.evaluate(hidden) > 0, "its work is a miss, hidden")
    page.evaluate("by('fn-run').value = 'vfs', by('fn-start').click()")
    page.wait("shown().endsWith('vfs_read\\nsonde>')", LIMIT)
    after = listed()
    tap.check(after["memcpy+0x0"] > before["memcpy+0x0"], "that of a workload is counted")
    told = f"counts[0][0] === {after['memcpy+0x0']}"
    tap.check(page.wait(told, LIMIT), "and shown as the console has it")
    page.call("Page.close")


def a_function_of_a_module(browser, server):
    page = at_prompt(browser, server, "?lab=handler")
    page.press("#load")
    page.wait(RESULT + ".includes('loaded')", LIMIT)
    page.evaluate("by('fn-name').focus()")
    page.wait("known && isFunction.has('readers:copier')", LIMIT)
    page.evaluate("location.hash = '#function=readers:copier'")
    page.wait("seen && by('fn-rows').rows.length", LIMIT)
    tap.check(
        page.evaluate("by('fn-source').textContent.includes(' copier(')"),
        "the source of a function of a module",
    )
    calls = "[...by('fn-rows').querySelectorAll('a')].map(node => node.textContent)"
    tap.check("readers:read_bytes" in page.evaluate(calls), "and what it calls")
    page.press("#fn-all")
    tap.check(
        page.wait("seen.rows[0].probes.length === 1 && !busy", LIMIT), "it is counted"
    )
    page.evaluate("type('module del readers\\r')")
    gone = "!seen && by('fn-said').textContent.includes('readers')"
    tap.check(page.wait(gone, LIMIT), "the page says that it has gone")
    tap.note(page.evaluate("by('fn-said').textContent"))
    page.call("Page.close")


def questions_with_pictures(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#question='")
    page.wait("known && fitting.length", LIMIT)
    page.type("vfs_rea")
    tap.equal(page.evaluate("fitting[0]"), "vfs_read", "the name of a function")
    key(page, "Tab", 9)
    page.type(" { hist(c")
    tap.check(page.wait("fitting.join() === 'count'", LIMIT), "its parameter")
    key(page, "Tab", 9)
    page.type(") }\r")
    tap.check(page.wait("answer.querySelector('svg .bar')", LIMIT), "a histogram")
    told = "standing && answer.querySelector('table').textContent.includes('vfs_read{}')"
    tap.check(page.wait(told.format(720), LIMIT), "of all calls")
    page.type("\r")
    page.wait("standing === 2", LIMIT)
    tap.check(page.wait(told.format(720), LIMIT), "asked again, it begins again")
    page.evaluate("inGuest('cat /proc/version')")
    page.evaluate("type('run vfs\\r')")
    tap.check(
        page.wait(told.format(1440), LIMIT), "it stands: the answer grows by itself"
    )

    def kept(kind):
        return base64.b64decode(page.evaluate(FILE % kind))

    rows = kept(".csv").decode().splitlines()
    told = sum(int(row.rpartition(",")[2]) for row in rows[1:])
    tap.equal(told, 1440, "as a table, in which nothing is that the page itself has read")
    tap.check(kept(".dat").startswith(b"\x17\x08Dtracing"), "for trace-cmd")
    tap.check(b"vfs_read" in kept(".pftrace"), "for Perfetto")
    tap.check(b"<svg" in kept(".html"), "as a page")
    tap.check(page.evaluate("asSvg().startsWith('<svg')"), "as a picture")
    saved = tempfile.mkdtemp(dir=server.home)
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=saved)
    kinds = page.evaluate("[...by('q-files').children].map(one => one.textContent)")
    for kind in (".csv", ".svg", ".dat", ".pftrace"):
        page.evaluate(f"by('q-files').children[{kinds.index(kind)}].click()")
        path, end = os.path.join(saved, "answer" + kind), time.monotonic() + LIMIT
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.1)
        tap.check(os.path.exists(path), f"a click saves answer{kind}")
    link = page.evaluate("location.href").replace("hist%28count%29", "stack")
    page.evaluate("answer.querySelector('td a').click()")
    shown = page.wait("seen && seen.function === 'vfs_read'", LIMIT)
    tap.check(shown, "a name in an answer leads to its function")
    page.call("Page.close")
    page = browser.open("about:blank")
    page.call("Page.navigate", url=link)
    flame = "document.readyState === 'complete' && answer.querySelector('.flame')"
    tap.check(page.wait(flame, LIMIT), "a link asks its question: a flame graph")
    titles = "[...answer.querySelectorAll('.flame')].map(node => node.textContent)"
    tap.check(any("file_get" in one for one in page.evaluate(titles)), "with its callers")
    stacks = kept(".folded").decode().splitlines()
    told = [row.rpartition(";")[2].split()[0] for row in stacks if ";" in row]
    tap.equal(set(told), {"vfs_read"}, "its stacks")
    tap.check(json.loads(kept(".json"))["profiles"], "for speedscope")
    page.evaluate("by('q-text').value = 'vfs_read { cont by func }', askQuestion()")
    tap.check(
        page.wait("by('q-said').textContent.includes('\\n      ')", LIMIT),
        "a mistake has a caret",
    )
    keep(page, "question")
    page.evaluate("by('q-text').value = 'vfs_read { count }', askQuestion()")
    page.wait("standing", LIMIT)
    events = "/sys/kernel/tracing/events/trace/q1"
    trigger = page.evaluate(f"inGuest('cat {events}/trigger')").split(" [")[0]
    for line in (
        f"echo '!{trigger}' >> {events}/trigger",
        f"echo 0 > {events}/enable",
        "echo -:trace/q1 >> /sys/kernel/tracing/kprobe_events",
    ):
        page.evaluate(f"inGuest({json.dumps(line)})")
    page.evaluate("by('q-text').value = 'vfs_open { count }', askQuestion()")
    again = page.wait("standing && by('q-said').textContent === ''", LIMIT)
    tap.check(again, "a question that the console has removed is no hindrance")
    page.evaluate("location.hash = '#docs/tour.md'")
    page.wait(TASK + ".dataset.name === 'docs/tour.md'", LIMIT)
    left = page.evaluate("inGuest('cat /sys/kernel/tracing/kprobe_events')")
    tap.equal(left, "", "of a question that does not stand any more, no event is left")
    page.call("Page.close")


# Intervals that only pass when a test lets them: [milliseconds, function].
CLOCK = """window.clocks = new Map(); window.clockOf = setInterval;
window.setInterval = (fn, ms) => { const timer = clockOf(() => {}, 1e9);
  clocks.set(timer, [ms, fn]); return timer; };
window.clockEnds = clearInterval;
window.clearInterval = timer => { clocks.delete(timer); clockEnds(timer); }; 0"""
# Does the picture show what the frame says, cell by cell?
SHOWN = """films[film].frames[at].cells.every(([name, text, kind]) =>
  part('t-' + name).textContent === text && part('r-' + name).getAttribute('class') === kind)
  && part('said').textContent.startsWith(at + '/') && Number(part('bar').value) === at"""


def drive_a_film(page):
    def at(want, what):
        told = page.evaluate(
            f"[at, {SHOWN}, document.querySelectorAll('#text .now').length]"
        )
        tap.equal(told, [want, True, 1], what)

    page.evaluate("choose(1)")
    for speed, ms in (("0.5", 2400), ("1", 1200), ("3", 400), ("20", 60)):
        page.evaluate(f"by('speed').value = '{speed}', go(0), play()")
        tap.equal(page.evaluate("clocks.get(timer)[0]"), ms, f"speed {speed}: a frame")
        page.evaluate("clocks.get(timer)[1](), clocks.get(timer)[1]()")
        at(2, "two of them")
        page.evaluate("play()")
        tap.equal(page.evaluate("[timer, clocks.size]"), [None, 0], "Pause holds it")
    page.evaluate("play(), by('speed').value = '0.5'")
    page.evaluate("by('speed').dispatchEvent(new Event('change'))")
    tap.equal(page.evaluate("clocks.get(timer)[0]"), 2400, "slower while it plays")
    page.press("#next")
    at(3, "a step on")
    tap.equal(page.evaluate("timer"), None, "for which it holds")
    page.press("#back")
    at(2, "a step back")
    page.evaluate("document.activeElement.blur()")
    last = page.evaluate("films[film].frames.length - 1")
    for name, code, want in (
        ("End", 35, last),
        ("ArrowRight", 39, last),
        ("ArrowLeft", 37, last - 1),
        ("Home", 36, 0),
        ("ArrowLeft", 37, 0),
    ):
        key(page, name, code)
        at(want, f"{name} leads to frame {want}")
    back = f"""films.flatMap((one, n) => {{ choose(n);
      return one.frames.map((_, k) => one.frames.length - 1 - k).filter(k => {{
        by('bar').value = k; by('bar').dispatchEvent(new Event('input'));
        return at !== k || !({SHOWN}); }}).map(k => `${{n}}: ${{k}}`); }})"""
    tap.equal(
        page.evaluate(back), [], "scrubbed to any frame, each film shows that frame"
    )
    page.evaluate("go(1e9), play()")
    at(0, "Play at its end begins again")
    page.evaluate("pause()")


def films_in_the_page(browser, server):
    page = at_prompt(browser, server)
    page.evaluate("location.hash = '#film=poke'")
    page.wait("filmed && films.length === 10 && !by('film').hidden", LIMIT)
    page.evaluate("by('speed').value = 20, by('play').click()")
    last = "document.body.dataset.last === 'true' && timer === null"
    tap.check(page.wait(last, LIMIT), "a film plays to its end")
    page.evaluate(CLOCK)
    drive_a_film(page)
    page.evaluate("location.hash = '#function=vfs_read&run=vfs'")
    page.wait("seen && !busy && by('fn-rows').rows.length", LIMIT)
    resize(page, *SIZES[1])
    page.press("#fn-record")
    page.wait("by('fn-said').textContent.startsWith('a film of vfs_read+0x0')", LIMIT)
    page.press("#play")
    page.evaluate("pause(), go(1)")
    byte = "by('fn-row-0').querySelector('.filmed').textContent"
    tap.equal(page.evaluate(byte), "cc", "the bytes of a listing move with its film")
    for size in reversed(SIZES):
        resize(page, *size)
        if size == SIZES[0]:
            page.evaluate("by('fn-film').scrollIntoView()")
        places = page.evaluate(
            "[by('stage'), by('play'), by('fn-row-0'), by('terminal')].map(node =>"
            " node.getBoundingClientRect()).flatMap(r => [r.top, r.bottom])"
        )
        seen = 0 <= places[0] and max(places[1], places[3]) < places[4]
        # On a narrow screen the terminal stands below all of the function.
        ends = size[1] if size == SIZES[0] else places[6]
        tap.check(seen and places[5] < ends, f"both are seen at {size[0]} px: {places}")
    page.evaluate("by('fn-engine').value = 'stop-machine'")
    page.evaluate("by('fn-engine').dispatchEvent(new Event('change'))")
    page.wait("by('fn-said').textContent.endsWith('is stop-machine') && !busy", LIMIT)
    page.press("#fn-record")
    page.wait("by('fn-said').textContent.startsWith('a film of') && !busy", LIMIT)
    said = page.evaluate("films[0].frames.map(one => one.said)")
    tap.check(
        "CPU 0 stores cc at vfs_read+0x0." in said and "halted" not in " ".join(said),
        "another engine has other phases: no CPU is halted while all are stopped",
    )
    page.evaluate("location.hash = '#docs/tour.md'")
    page.wait("document.querySelector('.run-here') && known", LIMIT)
    page.evaluate("[...document.querySelectorAll('.run-here')][1].click()")
    tap.check(
        page.wait("shown().includes('calls 720 of vfs_read')", LIMIT),
        "an example of the tour runs by a click",
    )
    tap.check(
        page.wait(TASK + ".querySelector(\"a[href='#function=vfs_read']\")", LIMIT),
        "the name of a function leads to it",
    )
    page.call("Page.close")


def the_page_fits(browser, server):
    for width, height in SIZES:
        page = browser.open(server.url)
        resize(page, width, height)
        page.wait(PROMPT, LIMIT)
        page.evaluate("location.hash = '#function=vfs_read&probes=0x0,0xf&all=1&run=vfs'")
        page.wait("seen && !busy && seen.rows[0].probes.length === 2", LIMIT)
        page.evaluate("by('fn-again').checked = true, by('fn-start').click()")
        page.evaluate("by('fn-threads').open = true")
        threads = "by('fn-ps').textContent.includes('work/')"
        tap.check(page.wait(threads, LIMIT), "the workload's threads are seen")
        page.evaluate("by('fn-threads').open = false")
        glows = "document.querySelector('.glows') && (clearInterval(refreshing), true)"
        tap.check(page.wait(glows, LIMIT), "counts that grow glow")
        tap.equal(
            page.evaluate("document.documentElement.scrollWidth"), width, f"{width} px"
        )
        tap.equal(nameless(page), [], "all controls have names")
        right = "[...document.querySelectorAll('.fn-tools *')].map(one =>"
        right += " one.getBoundingClientRect().right)"
        tap.check(max(page.evaluate(right)) < width, "no control and no colour is cut")
        if SHOTS:  # the pictures of docs/web.md
            page.shot(os.path.join(SHOTS, f"web-{width}.webp"))
        page.call("Page.close")


VIEWS = (
    # place in the address, what is waited for, what is done then
    ("", PROMPT, ""),
    (
        "#function=vfs_read&probes=0x0,0x5&fold=0x5&run=vfs",
        "seen && !busy && unfolded.size",
        "by('fn-threads').open = true",
    ),
    ("#function=exc_int3", "seen && !busy", "flip(0)"),
    (
        "#question=vfs_read { hist(count) }&run=vfs",
        "answer.querySelector('svg .bar')",
        "offer()",
    ),
    ("#question=vfs_read { cont }", "by('q-said').textContent.includes('^')", ""),
    ("#film=hit", "filmed && !by('film').hidden", "go(3)"),
    ("#docs/trace.md", "by('task').dataset.name === 'docs/trace.md'", ""),
)


def everybody_can_use_it(browser, server):
    page = at_prompt(browser, server, "?lab=3")
    page.evaluate(axe() + "; 0")
    for place, there, do in VIEWS:
        page.evaluate(f"location.hash = {json.dumps(place)}; 0")
        tap.check(page.wait(there, LIMIT), place or "the task")
        page.evaluate(do + "; 0")
        for (width, height), scheme in itertools.product(SIZES, SCHEMES):
            resize(page, width, height)
            page.scheme(scheme)
            what = f"{place or 'the task'}, {width} px, {scheme}"
            tap.equal(violations(page), [], f"{what}: axe-core finds nothing")
    page.call("Page.close")


def a_film_plays_to_its_end(browser, server):
    path = os.path.join(server.home, "film.html")
    subprocess.run([SONDE, "film", "html", "-o", path], check=True)
    page = browser.open(f"file://{path}#autoplay")
    last = "document.body && document.body.dataset.last === 'true'"
    tap.check(page.wait(last, LIMIT), "it plays to its end")
    page.evaluate("choose(2)")
    page.type(" ")
    tap.check(page.wait("document.body.dataset.frame > 1", LIMIT), "the space bar plays")
    page.evaluate("pause(), go(1)")
    shown = page.evaluate("document.getElementById('t-c1b0').textContent")
    tap.equal(shown, "b8 | cc", "what CPU 1 may still execute behind the first store")
    keep(page, "film")
    resize(page, *SIZES[0])
    tap.equal(page.evaluate("document.documentElement.scrollWidth"), 390, "390 px")
    film = page.evaluate("document.querySelector('svg').clientWidth")
    tap.check(film < 390, f"all of the film is seen, {film} px")


def a_browser_that_goes_away(server):
    with Browser() as browser:
        at_prompt(browser, server)
        at_prompt(browser, server)
        before = len(server.guests())
    tap.check(before >= 2, f"{before} guests")
    end = time.monotonic() + GRACE + 30
    while server.guests() and time.monotonic() < end:
        time.sleep(0.2)
    tap.equal(server.guests(), [], "their guests end, a little later")


def a_lab(browser, server):
    page = at_prompt(browser, server, "?lab=1")
    tap.equal(
        page.evaluate(TASK + ".querySelector('h1').textContent"),
        "A bomb",
        "the task is shown",
    )
    folder = os.path.join(server.home, "bomb")
    page.press("#grade")
    page.wait(RESULT + ".includes('Score:')", LIMIT)
    tap.check("Score: 0/20" in page.evaluate(RESULT), "nothing found yet, no points")
    page.press("#load")
    page.wait(RESULT + ".includes('loaded')", LIMIT)
    tap.check(
        command(page, "run bomb", "inlined"), "the bomb asks, in the guest of the page"
    )
    # The lab's own solution finds the keys, and the test types them into the editor.
    copy = tempfile.mkdtemp(dir=server.home)
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    subprocess.run(
        [sys.executable, os.path.join(SOLUTIONS, "bomb/solution/solve.py"), copy],
        check=True,
        env=dict(os.environ, SONDE_ROOT=ROOT),
    )
    with open(os.path.join(copy, "keys"), encoding="ascii") as file:
        keys = file.read()
    page.evaluate("editor.setValue(''), editor.focus()")
    page.call("Input.insertText", text=keys)
    page.press("#grade")
    page.wait(RESULT + ".includes('Score: 20/20')", LIMIT)
    result = page.evaluate(RESULT)
    if not tap.check(
        "Score: 20/20" in result, "with its keys in the editor: the full score"
    ):
        tap.note(result)
    with open(os.path.join(folder, "keys"), encoding="ascii") as file:
        tap.equal(file.read(), keys, "they are in the student's folder")
    keep(page, "lab")


def a_task_is_a_document(browser, server):
    page = at_prompt(browser, server, "?lab=3")
    count = "document.querySelectorAll('#task {}').length"
    tap.equal(
        [page.evaluate(count.format(kind)) for kind in ("table", "details", "tr")],
        [1, 3, 7],
        "a table and three hints",
    )
    title = TASK + ".querySelector('h1, h2').textContent"
    keep(page, "task")

    def follow(selector, shown, what):
        page.press(selector)
        tap.check(page.wait(f"{title} === {json.dumps(shown)}", LIMIT), what)

    page.press("#task a[href^='#function=vfs_read']")
    tap.check(
        page.wait("by('fn-rows').rows.length > 10", LIMIT),
        "a view that shows its subject",
    )
    texts = glob.glob(os.path.join(ROOT, "docs/labs/*/README.md"))
    without = [path for path in texts if not VIEW.search(open(path).read())]
    tap.equal((len(texts), without), (10, []), "each lab links one")
    named = {word for path in texts for word in VIEW_OF.findall(open(path).read())}
    unknown = page.evaluate(f"{sorted(named)}.filter(name => !isFunction.has(name))")
    tap.equal((unknown, len(named) >= 3), ([], True), "each of a function of the kernel")
    page.evaluate("history.back()")
    page.wait("!location.hash.includes('function=')", LIMIT)  # back() returns before
    follow("#task a[href='#probes/core/step.c']", "probes/core/step.c", "a file to read")
    tap.check(
        "step.c - " in page.evaluate(TASK + ".querySelector('pre').textContent"),
        "its text",
    )
    keep(page, "source")
    page.evaluate("history.back()")
    tap.check(
        page.wait(f"{title} === 'A breakpoint in a running process'", LIMIT),
        "the browser's way back",
    )
    page.evaluate("location.hash = '#docs/labs/README.md#points'")
    tap.check(page.wait(f"{title} === 'Labs'", LIMIT), "another document")
    page.evaluate("showPlace()")
    tap.equal(page.evaluate(title), "Labs", "which stays, at another of its headings")
    follow("#task a[href='#docs/web.md']", "In a browser", "a link in that")
    follow("#home", "A breakpoint in a running process", "and back to the task")
    page.evaluate("location.hash = '#docs/labs/host/int3/solution/int3.c'")
    refused = TASK + ".textContent.includes('cannot be read here')"
    tap.check(page.wait(refused, LIMIT), "no solution is shown")
    evil = '# x\n\n<img src=x onerror="window.evil = 1"><script>window.evil = 1</script>'
    page.evaluate(f"showDocument({TASK}, 'x.md', {json.dumps(evil)})")
    tap.check(not page.wait("window.evil", 1), "a document runs no script")


def the_files_of_a_lab(browser, server):
    page = at_prompt(browser, server, "?lab=10")
    names = page.evaluate(
        "[...document.getElementById('files').options].map(o => o.value)"
    )
    tap.equal(
        names, ["tests.c", "tracer.c", "rig.h", "tracer.h", "world.h"], "with headers"
    )
    page.evaluate("open('rig.h')")
    tap.check("rig_hit_begins" in page.evaluate("editor.getValue()"), "a header")
    tap.equal(page.evaluate("editor.getOption('readOnly')"), True, "is only read")
    tap.equal(nameless(page), [], "all controls have names")
    for name in names[:2]:
        page.evaluate(f"open('{name}'), editor.setValue('/* {name} */\\n')")
    tap.equal(page.evaluate("editor.getOption('readOnly')"), False, "a file is written")
    page.evaluate("open('rig.h')")
    page.press("#save")
    page.wait(RESULT + ".startsWith('saved')", LIMIT)
    for name in names[:2]:
        with open(os.path.join(server.home, "bugs", name), encoding="ascii") as file:
            tap.equal(file.read(), f"/* {name} */\n", f"{name} is saved")


def a_case_that_fails(browser, server):
    page = at_prompt(browser, server, "?lab=3")
    # Two lines may come at once: what was added says more than what is there now.
    page.evaluate(
        "window.told = [], new MutationObserver(list => list.forEach(change =>"
        " change.addedNodes.forEach(node => told.push(node.textContent))))"
        ".observe(by('result'), { childList: true }) || 0"
    )
    page.press("#grade")
    page.wait(RESULT + ".includes('Score:')", LIMIT)
    ran = "told.map(text => /^running (\\w+)/.exec(text)).filter(Boolean).map(m => m[1])"
    graded = (
        "[...by('result').textContent.matchAll(/^(?:not )?ok (\\w+)/gm)].map(m => m[1])"
    )
    tap.equal(
        page.evaluate(ran), page.evaluate(graded), "each line is shown while it runs"
    )
    page.press("#result button")
    told = f"/# seed \\d+, case 0: hit/.test({RESULT})"
    tap.check(page.wait(told, LIMIT), "a button shows the case")
    tap.check("Score:" in page.evaluate(RESULT), "beside the points")


def a_lab_fits(browser, server):
    page = at_prompt(browser, server, "?lab=handler")
    resize(page, *SIZES[0])
    page.press("#grade")
    page.wait(RESULT + ".includes('Score:')", LIMIT)
    parts = "['task', 'files', 'editor', 'grade', 'result', 'terminal']"
    places = page.evaluate(
        f"{parts}.map(id => by(id).getBoundingClientRect()).map(r => [r.top, r.bottom])"
    )
    gaps = [below[0] - above[1] for above, below in zip(places, places[1:])]
    tap.check(all(0 <= gap < 24 for gap in gaps), f"{parts}: gaps of {gaps} px")
    wide = """Promise.all(Array.from(by('labs').options, one => ask('lab', { lab: one.value })
      .then(told => { showDocument(by('task'), told.name, told.task);
        const nodes = [document.documentElement, ...document.querySelectorAll('#task table')];
        return nodes.some(node => node.getBoundingClientRect().right > innerWidth ||
          document.documentElement.scrollWidth > innerWidth) ? told.name : ''; })))
      .then(names => names.filter(Boolean))"""
    tap.equal(page.evaluate(wide), [], "no lab is wider than 390 px")

    resize(page, *SIZES[1])
    tap.check(page.wait("terminal.cols >= 80", LIMIT), "80 columns of the console")
    for part, sides in (("left", (-100, 0)), ("terminal", (0, -100))):
        size = f"[by('{part}').offsetWidth, by('{part}').offsetHeight]"
        corner = (
            f"(r => [r.right - 4, r.bottom - 4])(by('{part}').getBoundingClientRect())"
        )
        (x, y), before = page.evaluate(corner), page.evaluate(size)
        page.drag((x, y), (x + sides[0], y + sides[1]))
        moved = [now - was for now, was in zip(page.evaluate(size), before)]
        off = max(abs(got - want) for got, want in zip(moved, sides))
        tap.check(off < 2, f"the corner of {part} is drawn: {moved}")
    page.evaluate("open('readers.c')")
    fits = "(all => all.width <= all.clientWidth)(editor.getScrollInfo())"
    tap.check(page.evaluate(fits), "no line of a file is cut")
    tap.check(
        page.evaluate(
            "document.querySelector('link[rel=icon]').href.startsWith('data:')"
        ),
        "an icon",
    )
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').map(one =>"
        " [new URL(one.name).host, one.responseStatus])"
    )
    here = f"127.0.0.1:{server.port}"
    others = [one for one in loaded if one != [here, 200]]
    tap.equal(
        (others, len(loaded) > 10), ([], True), "nothing is of another host, or missing"
    )
    page.call("Page.close")


def a_lab_without_a_console(browser, server):
    page = at_prompt(browser, server, "?lab=return")
    typed = "echo " + "0123456789" * 6
    page.type(typed)
    page.wait(f"shown().endsWith('{typed}')", LIMIT)
    resize(page, *SIZES[0])
    page.wait("terminal.cols < 60", LIMIT)
    tap.check(page.wait(f"shown().endsWith('{typed}')", LIMIT), "a typed line is not cut")
    resize(page, *SIZES[1])
    end = f"terminal.buffer.active.cursorX === {len('sonde> ' + typed)}"
    tap.check(page.wait(end, LIMIT), "in one row again, it has the cursor behind it")
    height = page.evaluate("by('terminal').clientHeight")
    tap.check(height < SIZES[1][1] / 8, f"its console has {height} px")
    bottom = "(box => box.getBoundingClientRect().bottom)"
    cut = f"{bottom}(document.querySelector('.xterm-screen')) - {bottom}(by('terminal'))"
    tap.check(page.wait(f"{cut} <= 0", LIMIT), "no line of it is cut")
    page.evaluate("open('trampoline.asm')")
    kinds = page.evaluate(
        "[...document.querySelectorAll('#editor [class^=cm-]')].map(n => n.className)"
    )
    tap.equal(sorted(set(kinds)), ASM_KINDS, "NASM's language has colours")
    page.call("Page.close")


def a_file_that_two_change(server):
    def ask(what, query, body=None):
        status, text = server.ask("POST", f"/{what}?{query}", json.dumps(body or {}))
        return status, json.loads(text)

    name, text = next(iter(ask("lab", "lab=4")[1]["files"].items()))
    save = f"lab=4&name={name}"
    path = os.path.join(server.home, "decode", name)
    os.chmod(path, 0o640)
    os.chown(path, -1 if os.getuid() else 1, -1)
    before = os.stat(path)
    tap.equal(ask("save", save, {"was": text, "text": "first"})[0], 200, "saved")
    status, reply = ask("save", save, {"was": text, "text": "second"})
    tap.check(status == 409 and "elsewhere" in reply["error"], "the second is told")
    tap.equal(
        ask("save", save, {"was": None, "text": "second"})[0], 200, "and may insist"
    )
    for bad in ({"text": "half of \ud83d"}, {}):
        status, reply = ask("save", save, bad)
        tap.check(status == 400 and "save" in reply["error"], f"{bad}: {reply}")
    with open(path, encoding="utf-8") as file:
        tap.equal(file.read(), "second", "what is not saved changes nothing")
    now = os.stat(path)
    same = (now.st_mode, now.st_uid) == (before.st_mode, before.st_uid)
    tap.check(same, "the file's owner and mode stay")
    with open(path, "wb") as file:
        file.write(b"one\r\ntwo\r\n")
    ask("save", save, {"was": "one\ntwo\n", "text": "one\nnew\n"})
    with open(path, "rb") as file:
        tap.equal(file.read(), b"one\r\nnew\r\n", "its line ends stay")
    with open(path, "wb") as file:
        file.write(b"\xe9")
    for asked in (ask("lab", "lab=4"), ask("save", save, {"was": None, "text": "x"})):
        told = asked[1].get("error", "")
        tap.check(asked[0] == 400 and "UTF-8" in told, f"not UTF-8: {told}")
    with open(path, "rb") as file:
        tap.equal(file.read(), b"\xe9", "a file that is not UTF-8 stays")
    for bad in ("../x", "/etc/passwd", "none.c", ""):
        tap.equal(
            ask("save", f"lab=4&name={bad}", {"text": "x"})[0],
            404,
            f"no file {bad!r}",
        )


def a_lab_begins_beside_others():
    with Server("--grace", "60") as server, ThreadPoolExecutor(5) as pool:
        asked = ["lab?lab=1", "lab?lab=1", "start", "lab?lab=1", "start"]
        told = list(pool.map(lambda what: server.ask("POST", "/" + what, "{}")[0], asked))
        alive = len(server.guests())
        tap.equal((told, alive), ([200] * 5, 2), "their guests live on")


def pages_of_others(server):
    here = f"127.0.0.1:{server.port}"
    tap.equal(
        server.ask("GET", "/", Host="evil.example")[0], 403, "another name of the host"
    )
    tap.equal(
        server.ask("POST", "/start", Origin="http://evil.example")[0],
        403,
        "a page of another site",
    )
    tap.equal(
        server.ask("POST", "/start", Origin=f"http://{here}", Host="evil.example")[0],
        403,
        "and that with its own name",
    )
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    tap.equal(server.ask("GET", "/ws?id=none", **upgrade)[0], 404, "a guest that is none")
    evil = dict(upgrade, Origin="http://evil.example")
    tap.equal(
        server.ask("GET", "/ws?id=none", **evil)[0], 403, "a console for another site"
    )
    tap.equal(server.ask("GET", "/../../etc/passwd")[0], 404, "no other files")
    tap.equal(server.ask("POST", "/lab?lab=99")[0], 404, "no such lab")
    for name in (
        "../../etc/passwd",
        "docs/../docs/labs/host/int3/solution/int3.c",
        "build",
        "docs/labs/host/bomb/grader.py",
        "/etc/passwd",
        ".git/config",
        "",
    ):
        tap.equal(
            server.ask("POST", f"/read?name={name}")[0], 404, f"no text of {name!r}"
        )
    for name in ("docs/tour.md", "probes/region/", "docs/labs/host/poke/poke.pml"):
        tap.equal(server.ask("POST", f"/read?name={name}")[0], 200, f"but that of {name}")
    long = {"Content-Length": "2000000"}
    tap.equal(server.ask("POST", "/save", **long)[0], 413, "a body of 2 MB")
    for what, path, more in (
        ("a body that is no object", "/save", {"body": "[]"}),
        ("a body without a bottom", "/save", {"body": "[" * 100000}),
        ("an address that is none", "http://[", {"Host": here}),
        ("a page of such an address", "/start", {"Origin": "http://["}),
        ("a name that no file has", "/read?name=docs/%00", {}),
        ("a length that is no number", "/save", {"Content-Length": "\xb2"}),
    ):
        status, said = server.ask("POST", path, **more)
        tap.check(status == 400 and json.loads(said)["error"], f"{what}: {said}")
    if os.path.exists("/proc/net/if_inet6"):
        with Server("--bind", "::1") as six:
            tap.equal(six.ask("GET", "/")[0], 200, "an address of IPv6")


def a_page_of_a_guest_that_has_ended():
    """It cannot connect again, so it does not keep the guest from being dropped."""
    with tempfile.TemporaryDirectory() as folder:
        session = guests.Session.__new__(guests.Session)
        session.lock, session.page_line, session.seen = threading.Lock(), None, 0
        session.console = os.path.join(folder, "console")
        session.guest = mock.Mock()
        try:
            session.connect()
            tap.check(False, "it is told")
        except OSError:
            tap.check(True, "it is told")
        tap.check(session.is_left(1), "the guest has no page")


def a_host_without_a_network():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "npm"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(file.name, 0o755)
        path = {"PATH": folder + ":" + os.environ["PATH"]}
        missing = mock.patch.dict(web.STATIC, {"x.js": folder + "/x.js"})
        with missing, mock.patch.dict(os.environ, path):
            try:
                told = web.install()
            except HostError as error:
                told = str(error)
    tap.check("takes a network" in str(told), f"npm fails: {told}")


def with_a_token():
    done = subprocess.run(
        [SONDE, "web", "--bind", "0.0.0.0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    tap.check(done.returncode == 2 and "--token" in done.stderr, "others need a token")
    with Server("--token", "\xf6ffne dich", "--guests", "1") as server:
        tap.equal(server.ask("GET", "/")[0], 403, "no token")
        tap.equal(server.ask("GET", "/?token=wrong")[0], 403, "a wrong one")
        tap.equal(server.ask("POST", "/start")[0], 403, "no token for a guest")
        status, _ = server.ask("GET", "/?token=%C3%B6ffne%20dich", Host="lab.example:80")
        tap.equal(status, 200, "with it, from anywhere")
        tap.equal(server.ask("POST", "/start?token=%C3%B6ffne%20dich")[0], 200, "a guest")
        tap.equal(
            server.ask("POST", "/start?token=%C3%B6ffne%20dich")[0], 503, "and no other"
        )


def main():
    with contextlib.ExitStack() as stack:
        opened = {}

        def server():
            if "server" not in opened:
                opened["server"] = stack.enter_context(Server())
            return opened["server"]

        def on(test, needs_browser):
            def run():
                if not needs_browser:
                    test(server())
                    return
                with Browser() as browser:
                    test(browser, server())

            run.__name__ = test.__name__
            return run

        apart = (a_browser_that_goes_away, a_file_that_two_change, pages_of_others)
        browsing = (
            a_console,
            a_long_paste,
            a_connection_that_is_lost,
            keys_before_the_console,
            a_guest_that_ends,
            a_guest_that_panics,
            a_user_who_goes_on,
            lab_after_lab,
            links_of_nonsense,
            a_lab,
            a_task_is_a_document,
            the_files_of_a_lab,
            a_case_that_fails,
            a_lab_fits,
            a_lab_without_a_console,
            a_film_plays_to_its_end,
            a_function_alive,
            a_function_of_a_module,
            questions_with_pictures,
            films_in_the_page,
            the_page_fits,
            everybody_can_use_it,
            clicks_are_no_hits,
        )
        tap.run(
            *[on(test, True) for test in browsing],
            *[on(test, False) for test in apart],
            a_lab_begins_beside_others,
            a_page_of_a_guest_that_has_ended,
            a_host_without_a_network,
            with_a_token,
        )


main()
