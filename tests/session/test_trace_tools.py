#!/usr/bin/env python3
"""test_trace_tools.py - checks that programs of other projects read the same events from
our files as the guest's `trace` shows: trace-cmd, KernelShark's library, protoc, and
speedscope in Chromium. The last test checks that definitions made by perf record the right
values.
"""

import collections
import ctypes
import functools
import html
import http.server
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

sys.dont_write_bytecode = True
from recorded import CPUS, ROOT, Recorded, without_comments
import tap
from sonde.guest import BUILD, ELF
from probes.trace.host import write_dat, write_folded, write_html
from probes.trace.host import write_pftrace, write_speedscope
from session import LIMIT, ask, sonde

LINES = (
    "p:run/reads vfs_read count=%dx:u64",
    "r:run/back vfs_read ret=$retval:s64",
    "p:run/open vfs_open path=+0(%di):string",
)
SPEEDSCOPE = "speedscope@1.25.0"

Seen = collections.namedtuple("Seen", "name cpu thread us said")  # an event in a listing


class Run:
    """A recorded run, and the events that the guest's `trace` has shown of it."""

    def __init__(self):
        with Recorded() as recorded:
            recorded.begin(*LINES, buffer_kb=8)
            ask(recorded.guest, "run vfs")
            recorded.capture.taker.switch(False)
            self.listing = without_comments(recorded.files.read("trace"))
            self.recording = recorded.capture.finish()
        self.events = [seen for seen in map(event_of, self.listing) if seen]
        self.counts = collections.Counter(seen.name for seen in self.events)
        self.lost = collections.Counter()
        told = re.findall(r"CPU:(\d+) \[LOST (\d+) EVENTS\]", "\n".join(self.listing))
        for cpu, count in told:
            self.lost[int(cpu)] += int(count)

    def reads(self):
        """Return {thread: [microseconds]} of the calls of vfs_read of which the recording
        has the beginning and the end.
        """
        begun, found = {}, collections.defaultdict(list)
        for seen in self.events:
            if seen.name == "reads":
                begun[seen.thread] = seen.us
            elif seen.name == "back" and seen.thread in begun:
                found[seen.thread].append(seen.us - begun.pop(seen.thread))
        return found


EVENT = r" *(\S+-\d+) +\[(\d+)\]%s +(\d+)\.(\d{6}): (\w+): +\(.*?\) (.*)"


def event_of(line, flags=" .{5}"):
    match = re.fullmatch(EVENT % flags, line)
    if not match:
        return None
    thread, cpu, seconds, us, name, said = match.groups()
    return Seen(name, int(cpu), thread, int(seconds) * 1000000 + int(us), said)


@functools.cache
def the_run():
    run = Run()
    tap.check(
        run.counts["reads"] > 100 and sum(run.lost.values()) > 100,
        f"a run with {dict(run.counts)}, {sum(run.lost.values())} lost",
    )
    return run


def file_of(folder, name, writer):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        writer.write(the_run().recording, file)
    return path


def output_of(*words, **more):
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT, check=False, **more
    )
    if done.returncode:
        tap.note(f"{words}: {done.stderr}")
    return done.stdout


# trace-cmd


def reported(text):
    """Return the events of `trace-cmd report`, as Seen."""
    return [seen for seen in (event_of(line, "") for line in text.splitlines()) if seen]


def trace_cmd_agrees():
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, "t.dat", write_dat)
        text = output_of("trace-cmd", "report", path)
        tap.equal(
            sorted(reported(text)),
            sorted(the_run().events),
            "trace-cmd report: each event, its thread, CPU, time and arguments",
        )
        told = re.findall(r"^CPU:(\d+) \[(\d+) EVENTS DROPPED\]$", text, re.M)
        tap.equal(
            {int(cpu): int(count) for cpu, count in told},
            dict(the_run().lost),
            "and each loss",
        )


def the_events_of_questions_have_names():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.dat")
        asked = ("vfs_close { count }", "ret vfs_open { count }", "vfs_r* { count }")
        sonde("trace", "-o", path, *asked, "--", "run vfs")
        text = output_of("trace-cmd", "report", path)
    names = set(re.findall(r"^ .*?\d{6}: (\w+):", text, re.M))
    tap.equal(names, {"vfs_close", "vfs_open_returns", "q3"}, "their functions', if one")


# KernelShark


def dumped(path):
    """Yield each entry that KernelShark's library has loaded from a .dat, as a line. An entry
    for events that were lost has no text.
    """
    library = ctypes.CDLL("libkshark.so.2")
    library.kshark_load_entries.restype = ctypes.c_ssize_t
    library.kshark_dump_entry.restype = ctypes.c_char_p
    context, entries = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)()
    library.kshark_instance(ctypes.byref(context))
    stream = library.kshark_open(context, path.encode())
    count = library.kshark_load_entries(context, stream, ctypes.byref(entries))
    for i in range(count):
        yield (library.kshark_dump_entry(ctypes.c_void_p(entries[i])) or b"").decode()


ENTRY = re.compile(r"0; (\d+); (\S+); CPU (\d+); \S+; \w+/(\w+); \(.*?\) (.*); 0x\w+")


def kernelshark_agrees():
    with tempfile.TemporaryDirectory() as folder:
        lines = list(dumped(file_of(folder, "t.dat", write_dat)))
    found = []
    for time, thread, cpu, name, said in (
        m.groups() for m in map(ENTRY.match, lines) if m
    ):
        found.append(Seen(name, int(cpu), thread, (int(time) + 500) // 1000, said))
    tap.equal(sorted(found), sorted(the_run().events), "KernelShark has each event")
    tap.equal(lines.count(""), len(the_run().lost), "and an entry for each loss")


# protoc


def packets(path):
    """Yield each packet of a trace, as {path of fields: [values]}."""
    with open(path, "rb") as file:
        text = output_of(
            "protoc",
            f"--proto_path={os.path.dirname(__file__)}",
            "--decode=perfetto.protos.Trace",
            "perfetto.proto",
            stdin=file,
        )
    at, packet = [], None
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            if not at:
                packet = collections.defaultdict(list)
            at.append(line.split()[0])
        elif line == "}":
            at.pop()
            if not at:
                yield packet
        else:
            key, _, value = line.partition(": ")
            packet[".".join([*at[1:], key])].append(value)


BEGUN = (["TYPE_SLICE_BEGIN"], ["TYPE_INSTANT"])


def protoc_agrees():
    run = the_run()
    with tempfile.TemporaryDirectory() as folder:
        found = list(packets(file_of(folder, "t.pftrace", write_pftrace)))
    fields = {name for packet in found for path in packet for name in path.split(".")}
    unknown = [name for name in fields if name.isdigit()]
    tap.equal(
        (unknown, len(fields) > 15), ([], True), "protoc: Perfetto's schema has all"
    )
    names, lost, tracks = {}, {}, {}
    for packet in found:
        uuid = packet["track_descriptor.uuid"]
        if uuid:
            name = (
                packet["track_descriptor.name"]
                or packet["track_descriptor.thread.thread_name"]
                or packet["track_descriptor.process.process_name"]
            )
            tracks[uuid[0]] = name[0].strip('"')
    for packet in found:
        uuid, kind = packet["track_event.track_uuid"], packet["track_event.type"]
        track = tracks.get(uuid[0]) if uuid else None
        if kind == ["TYPE_COUNTER"]:
            lost[track] = int(packet["track_event.counter_value"][0])
        elif kind in BEGUN and not track.startswith("CPU"):
            key = packet["track_event.name"][0].strip('"'), track
            names.setdefault(key, []).append((int(packet["timestamp"][0]) + 500) // 1000)
    tap.equal(
        lost,
        {f"CPU {cpu}: events lost": run.lost[cpu] for cpu in range(CPUS)},
        "protoc: the counters end with what was lost",
    )
    for name in ("reads", "open"):
        want = collections.defaultdict(list)
        for seen in run.events:
            if seen.name == name:
                want[name, seen.thread].append(seen.us)
        got = {key: times for key, times in names.items() if key[0] == name}
        tap.equal(
            got, dict(want), f"an instant of each {name}, at its time, in its thread"
        )
    got = {key[1]: len(times) for key, times in names.items() if key[0] == "vfs_read"}
    want = collections.Counter(seen.thread for seen in run.events if seen.name == "back")
    tap.equal(got, dict(want), "a slice for each return")
    ends, begins = (
        sum(packet["track_event.type"] == [f"TYPE_SLICE_{kind}"] for packet in found)
        for kind in ("END", "BEGIN")
    )
    tap.equal(ends, begins, "each slice has an end")


# speedscope


def install_speedscope():
    """Install speedscope, a package of npm. Return the folder with its static files."""
    folder = os.path.join(BUILD, "npm")
    os.makedirs(folder, exist_ok=True)
    release = os.path.join(folder, "node_modules/speedscope/dist/release")
    if not os.path.isdir(release):
        output_of(
            "npm",
            "install",
            "--silent",
            "--no-fund",
            "--no-audit",
            "--prefix",
            folder,
            SPEEDSCOPE,
        )
    return release


class Server:
    """Serves the files of a folder over HTTP, and a profile. Use with `with`."""

    def __init__(self, folder, profile):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args, **more):
                super().__init__(*args, directory=folder, **more)

            def do_GET(self):
                if not self.path.startswith("/profile"):
                    super().do_GET()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(profile)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __exit__(self, *exc):
        self.server.shutdown()


def shown_by_speedscope(profile, ending="json"):
    """Return the texts on speedscope's page, in the view that lists all frames."""
    with Server(
        install_speedscope(), profile
    ) as url, tempfile.TemporaryDirectory() as home:
        page = output_of(
            "chromium",
            "--headless",
            "--no-sandbox",
            "--use-gl=swiftshader",
            "--enable-unsafe-swiftshader",
            "--window-size=1200,3000",
            f"--user-data-dir={home}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            f"{url}index.html#profileURL={url}profile.{ending}&view=sandwich",
        )
    texts = re.sub(r"<(style|script).*?</\1>|<[^>]+>", "\n", page, flags=re.S)
    return [html.unescape(line) for line in texts.split("\n") if line.strip()]


def counts_agree(shown, ending):
    """Are all events, and all losses, on speedscope's page?"""
    run = the_run()
    if not tap.check("Symbol Name" in shown, f"speedscope shows the .{ending}"):
        tap.note("\n".join(shown[-20:]))
        return
    rows = shown[shown.index("Symbol Name") + 1 :]
    counts = {rows[i + 2]: rows[i].split()[0] for i in range(0, len(rows) - 2, 3)}
    for name in LINES:
        name = re.search(r"/(\w+)", name)[1]
        tap.equal(counts.get(name), f"{run.counts[name]:,}", f"it counts each {name}")
    for cpu in range(CPUS):
        tap.equal(
            counts.get(f"(lost on CPU {cpu})", "0"),
            f"{run.lost[cpu]:,}",
            f"what CPU {cpu} lost",
        )


def speedscope_reads_folded_stacks():
    with tempfile.TemporaryDirectory() as folder:
        with open(file_of(folder, "t.folded", write_folded), "rb") as file:
            counts_agree(shown_by_speedscope(file.read(), "folded"), "folded")


def speedscope_agrees():
    run = the_run()
    with tempfile.TemporaryDirectory() as folder:
        with open(file_of(folder, "t.json", write_speedscope), "rb") as file:
            profile = file.read()
    counts_agree(shown_by_speedscope(profile), "json")
    times = run.reads()
    thread = max(times, key=lambda one: sum(times[one]))
    names = [one["name"] for one in json.loads(profile)["profiles"]]
    tap.check(set(times) <= set(names), "each thread has a profile")
    chosen = json.dumps(dict(json.loads(profile), activeProfileIndex=names.index(thread)))
    shown = shown_by_speedscope(chosen.encode())
    rows = shown[shown.index("Symbol Name") + 1 :]
    ms = re.match(r"([\d.]+)(µs|ms|s)\b", rows[0])
    us = float(ms[1]) * {"µs": 1, "ms": 1000, "s": 1000000}[ms[2]]
    want = sum(times[thread])
    tap.check(
        rows[2] == "vfs_read" and abs(us - want) <= 0.01 * want + len(times[thread]),
        f"the time of vfs_read in {thread}: {rows[0]}, and {want} µs",
    )


# the page


def first_pixel(folder, path, *words):
    """Let Chromium draw a page. Return red, green and blue of the first pixel."""
    shot = os.path.join(folder, "shot.png")
    output_of(
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--force-color-profile=srgb",
        f"--user-data-dir={folder}/home",
        f"--screenshot={shot}",
        *words,
        f"file://{path}",
    )
    with open(shot, "rb") as file:
        data = file.read()
    packed = b""
    at = 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return tuple(zlib.decompress(packed)[1:4])  # byte 0 is the filter of the first row


def the_page_is_light_and_dark():
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, "t.html", write_html)
        light = first_pixel(folder, path)
        dark = first_pixel(folder, path, "--blink-settings=preferredColorScheme=0")
    tap.check(min(light) > 200, f"the page is light: {light}")
    tap.check(max(dark) < 60, f"and dark where the system is: {dark}")


# perf


def perfs_definitions_record_the_right_values():
    asked = ("vfs_read count", "vfs_open path:string", "vfs_read%return ret=$retval")
    lines = []
    for one in asked:
        found = output_of("perf", "probe", "-q", "-k", ELF, "-D", one, cwd=ROOT)
        tap.equal(len(found.splitlines()), 1, f"perf probe -D '{one}': {found.strip()}")
        lines += found.splitlines()
    with Recorded() as recorded:
        recorded.begin(*lines, *LINES, buffer_kb=4096)
        ask(recorded.guest, "run vfs")
        recording = recorded.capture.finish()
    values = collections.defaultdict(list)
    for event in recording.all_events:
        value = [event.values[field.name] for field in event.format.arguments]
        values[event.name].append((event.pid, *value))
    pairs = ("vfs_read", "reads"), ("vfs_open", "open"), ("vfs_read__return", "back")
    for perfs, ours in pairs:
        if not tap.equal(
            sorted(values[perfs]),
            sorted(values[ours]),
            f"{len(values[perfs])} values of {perfs}",
        ):
            tap.note(values.keys())
    tap.equal(len(values["vfs_read"]), 720, "one for each call")


tap.run(
    trace_cmd_agrees,
    the_events_of_questions_have_names,
    kernelshark_agrees,
    protoc_agrees,
    speedscope_agrees,
    speedscope_reads_folded_stacks,
    the_page_is_light_and_dark,
    perfs_definitions_record_the_right_values,
)
