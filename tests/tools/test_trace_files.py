#!/usr/bin/env python3
"""test_trace_files.py - tests of probes/trace/host with small recordings."""

import contextlib
import io
import json
import os
import re
import signal
import struct
import sys
import types

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, scratch.ROOT)
sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/host"))
from probes.trace.host import formats, hist, pages, protobuf
from probes.trace.host import slices, text, write_dat
from probes.trace.host import write_folded, write_html
from probes.trace.host import write_pftrace, write_speedscope
from probes.trace.host.question import Question
from probes.trace.host.capture import ROOT, Capture
from probes.trace.host.memory import FRAME, GAP, runs
from probes.trace.host.recording import Recording
from probes.trace.host.session import Live, Session
from probes.trace.host.take import ENTRY as LISTED
from probes.trace.host.take import Taker, TraceError
from sonde.machine import Reply, unescape

COMMON = """name: {name}
ID: {number}
format:
@field:unsigned short common_type;@offset:0;@size:2;@signed:0;
@field:unsigned char common_flags;@offset:2;@size:1;@signed:0;
@field:unsigned char common_preempt_count;@offset:3;@size:1;@signed:0;
@field:int common_pid;@offset:4;@size:4;@signed:1;

"""
ENTRY = (
    COMMON.format(name="in", number=300)
    + """\
@field:unsigned long __probe_ip;@offset:8;@size:8;@signed:0;
@field:u64 count;@offset:16;@size:8;@signed:0;

print fmt: "(%lx) count=%Lu", REC->__probe_ip, REC->count
"""
)
PLACES = """\
@field:unsigned long __probe_func;@offset:8;@size:8;@signed:0;
@field:unsigned long __probe_ret_ip;@offset:16;@size:8;@signed:0;
"""
RETURN = (
    COMMON.format(name="out", number=301)
    + PLACES
    + """\
@field:s32 ret;@offset:24;@size:4;@signed:1;

print fmt: "(%lx <- %lx) ret=%d", REC->__probe_func, REC->__probe_ret_ip, REC->ret
"""
)
MANY = (
    COMMON.format(name="many", number=302)
    + """\
@field:unsigned long __probe_ip;@offset:8;@size:8;@signed:0;
@field:__data_loc char[] path;@offset:16;@size:4;@signed:1;
@field:u8 set[3];@offset:20;@size:3;@signed:0;
@field:__data_loc char[2] both;@offset:23;@size:8;@signed:1;
@field:char c;@offset:31;@size:1;@signed:0;
@field:s16 less;@offset:32;@size:2;@signed:1;
@field:x32 hex;@offset:34;@size:4;@signed:0;

print fmt: "(%lx) path=\\"%s\\" set={0x%x,0x%x,0x%x} both={\\"%s\\",\\"%s\\"} c='%c' less=%d \
hex=0x%x", REC->__probe_ip, __get_str(path), REC->set[0], REC->set[1], REC->set[2], \
__get_str(both[0]), __get_str(both[1]), REC->c, REC->less, REC->hex
"""
)
FUNCTION = 0x1000


class Names:
    """Stands for the kernel's symbols: there is one function."""

    objects = {}

    @staticmethod
    def at(address):
        return f"read+{address - FUNCTION:#x}/0x40"

    @staticmethod
    def name_at(address):
        return "read" if address == FUNCTION else f"{address:#x}"

    @staticmethod
    def kallsyms():
        return f"{FUNCTION:016x} T read\n"


def record(number, pid, *more):
    return struct.pack("<HBBi", number, 0, 0, pid) + b"".join(more)


def entry(pid, count=1):
    return record(300, pid, struct.pack("<QQ", FUNCTION, count))


def returned(pid, value=0):
    return record(301, pid, struct.pack("<QQi", FUNCTION, 0x2000, value))


def page(time, *steps, missed=0):
    """steps: (time since the previous record, bytes of the record)"""
    data = b""
    for delta, content in steps:
        if delta >> 27:
            data += struct.pack("<II", (delta & (1 << 27) - 1) << 5 | 30, delta >> 27)
            delta = 0
        content += bytes(-len(content) % 4)
        words = len(content) // 4
        if words > 28:
            data += struct.pack("<II", delta << 5, len(content) + 4) + content
        else:
            data += struct.pack("<I", delta << 5 | words) + content
    commit = len(data)
    if missed:
        commit |= pages.MISSED
        if missed != pages.SOME:
            commit |= pages.MISSED_COUNT
            data += struct.pack("<Q", missed)
    return (struct.pack("<QQ", time, commit) + data).ljust(pages.PAGE, b"\0")


def recording(*pages_of_cpus, lost=None):
    return Recording(
        formats=[
            (group, text_.replace("@", "\t"))
            for group, text_ in (("kprobes", ENTRY), ("kprobes", RETURN), ("other", MANY))
        ],
        symbols=Names,
        cmdlines='7 shell\n8 a "b" <c>\n',
        lines=["p read"],
        pages=[list(one) for one in pages_of_cpus],
        lost=lost or [0] * len(pages_of_cpus),
        stats=["entries: 0\n"] * len(pages_of_cpus),
        version="sonde",
    )


CALLS = (
    COMMON.format(name="q1", number=303)
    + PLACES
    + """\
@field:s32 depth;@offset:24;@size:4;@signed:1;
@field:u64 ns;@offset:28;@size:8;@signed:0;

print fmt: "(%lx <- %lx) depth=%d ns=%Lu", REC->__probe_func, REC->__probe_ret_ip, \
REC->depth, REC->ns
"""
)


def calls(*returns):
    """A recording of `graph`. returns: (time, pid, depth, ns)"""
    steps, last = [], 0
    for time, pid, depth, ns in returns:
        more = struct.pack("<QQiQ", FUNCTION + 16 * depth, 0x2000, depth, ns)
        steps.append((time - last, record(303, pid, more)))
        last = time
    one = recording([page(0, *steps)])
    one.formats.append(("trace", CALLS.replace("@", "\t")))
    one.graphs["trace/q1"] = "graph read"
    return one


def written(writer, one):
    file = io.BytesIO()
    writer.write(one, file)
    return file.getvalue()


class Pages(scratch.Scratch):
    def test_times_and_lengths(self):
        found = list(
            pages.records(
                3,
                page(
                    1000, (5, b"abcd"), (1 << 40, b"efgh"), (7, b"x" * 300), (0, b"last")
                ),
            )
        )
        self.assertEqual(
            [r.time for r in found],
            [1005, 1005 + (1 << 40), 1012 + (1 << 40), 1012 + (1 << 40)],
        )
        self.assertEqual([len(r.data) for r in found], [4, 4, 300, 4])
        self.assertEqual({r.cpu for r in found}, {3})

    def test_a_loss_is_before_the_first_record(self):
        found = list(pages.records(0, page(0, (1, b"aaaa"), (1, b"bbbb"), missed=17)))
        self.assertEqual([r.missed for r in found], [17, 0])
        found = list(pages.records(0, page(0, (1, b"aaaa"), missed=pages.SOME)))
        self.assertEqual([r.missed for r in found], [pages.SOME])

    def test_a_full_page_gets_room_for_the_number(self):
        size = (pages.PAGE - pages.HEAD) // 4 - 8
        full = page(50, *[(1, bytes([i]) * size) for i in range(4)], missed=pages.SOME)
        split = pages.tell_missed(full, 17)
        found = [r for one in split for r in pages.records(0, one)]
        self.assertEqual(
            [(r.time, r.data[0], r.missed) for r in found],
            [(51, 0, 17), (52, 1, 0), (53, 2, 0), (54, 3, 0)],
        )
        alone = page(0, (1, bytes(size)), missed=pages.SOME)
        self.assertEqual(pages.tell_missed(alone, 17), [alone])

    def test_padding_ends_a_page(self):
        one = bytearray(page(0, (1, b"aaaa"), (1, b"bbbb")))
        struct.pack_into("<I", one, 16 + 8, 29)
        self.assertEqual(len(list(pages.records(0, bytes(one)))), 1)

    def test_what_is_no_page_is_refused(self):
        torn = bytearray(page(0, (1, b"aaaa")))
        struct.pack_into("<I", torn, 16, 1 << 5 | 20)
        for bad in (torn, struct.pack("<QQ", 0, 5000).ljust(pages.PAGE, b"\1")):
            with self.assertRaises(pages.PageError):
                list(pages.records(0, bytes(bad)))

    def test_frames_that_are_near_are_read_together(self):
        near = [FRAME, 2 * FRAME, 2 * FRAME + GAP]
        self.assertEqual(
            list(runs(near + [near[-1] + GAP + FRAME])), [near, [near[-1] + GAP + FRAME]]
        )
        self.assertEqual(list(runs([])), [])


class Formats(scratch.Scratch):
    def many(self, path=0x0004_0028):
        return record(
            302,
            7,
            struct.pack(
                "<QI3BIIBhI",
                FUNCTION,
                path,
                1,
                2,
                255,
                0x0002_002C,
                0,
                ord("q"),
                -2,
                0xBEEF,
            ),
            bytes(2),
            b"abc\0",
            b"d\0",
        )

    def shown(self, data):
        one = recording([page(0, (1, data))])
        return text.said(one, one.all_events[0])

    def test_every_kind_of_argument(self):
        self.assertEqual(
            self.shown(self.many()),
            'many: (read+0x0/0x40) path="abc" set={0x1,0x2,0xff} '
            "both={\"d\",(fault)} c='q' less=-2 hex=0xbeef",
        )

    def test_a_string_outside_of_its_record_is_a_fault(self):
        self.assertIn("path=(fault)", self.shown(self.many(path=0x0100_0028)))

    def test_an_event_that_is_not_known(self):
        self.assertEqual(self.shown(record(999, 7)), "Unknown type 999")

    def test_a_file_that_is_no_format_is_refused(self):
        with self.assertRaises(formats.FormatError):
            formats.Format("x", "name: y\n")


class Slices(scratch.Scratch):
    def found(self, *steps):
        return slices.Threads(recording([page(0, *steps)])).found

    def test_a_return_ends_the_last_entry_of_its_thread(self):
        found = self.found(
            (10, entry(7)),
            (10, entry(8)),
            (10, entry(7)),
            (10, returned(7)),
            (10, returned(8)),
            (10, returned(7)),
        )
        self.assertEqual(
            [(s.pid, s.begin, s.end) for s in found if not s.is_instant],
            [(7, 10, 60), (8, 20, 50), (7, 30, 40)],
        )

    def test_a_return_without_an_entry_is_an_instant(self):
        self.assertEqual([s.is_instant for s in self.found((10, returned(7)))], [True])

    def test_inner_ones_end_first(self):
        one = slices.Slice("a", 7, 0, 10, 30, None)
        two = slices.Slice("b", 7, 0, 20, 40, None)
        self.assertEqual([end for _, end in slices.nested([one, two])], [30, 30])

    def test_which_thread_runs(self):
        one = recording([page(0, (1, entry(7)), (2, entry(7)), (3, entry(8)))], [])
        self.assertEqual(slices.running(one), [[[7, 1, 3], [8, 6, 6]], []])


class Writers(scratch.Scratch):
    def setUp(self):
        super().setUp()
        self.one = recording(
            [page(0, (10, entry(7)), (90, returned(7)), missed=5)],
            [page(0, (20, entry(8)), (30, entry(8)))],
            lost=[5, 3],
        )

    def test_lines_by_time_with_losses_in_their_place(self):
        lines = list(text.lines(self.one))
        self.assertEqual(
            [line for line in lines if "LOST" in line],
            ["CPU:0 [LOST 5 EVENTS]", "CPU:1 [LOST 3 EVENTS]"],
        )
        self.assertEqual([lines.index(line) for line in lines if "LOST" in line], [0, 5])
        self.assertIn(
            "shell-7       [000] .....     0.000000: in: (read+0x0/0x40) count=1",
            lines[1],
        )

    def test_dat_has_the_pages_as_they_are(self):
        data = written(write_dat, self.one)
        self.assertTrue(data.startswith(b"\x17\x08\x44tracing6\0\0\x08"))
        at = data.index(b"flyrecord\0") + 10
        places = struct.unpack_from("<QQQQ", data, at)
        for cpu in range(2):
            start, size = places[2 * cpu : 2 * cpu + 2]
            self.assertEqual(start % pages.PAGE, 0)
            self.assertEqual(data[start : start + size], self.one.pages[cpu][0])

    def test_varints(self):
        self.assertEqual(protobuf.number(1, 300), bytes.fromhex("08ac02"))
        self.assertEqual(protobuf.number(1, -1), bytes.fromhex("08" + "ff" * 9 + "01"))
        self.assertEqual(protobuf.content(2, "ab"), b"\x12\x02ab")

    def test_pftrace_has_the_slices(self):
        data = written(write_pftrace, self.one)
        name = protobuf.content(23, "read")
        self.assertEqual(data.count(name), 1)
        self.assertEqual(data.count(protobuf.content(23, "in")), 3)

    def test_a_graph_is_a_tree(self):
        """The return of the outer call was interrupted between its time and its record."""
        one = calls(
            (50, 8, 0, 5), (60, 7, 2, 9), (65, 7, 1, 60), (70, 7, 1, 3), (90, 7, 0, 80)
        )
        self.assertEqual(
            list(slices.tree_lines(one))[2:],
            [
                'a "b" <c>-8',
                "           5    0  read",
                "shell-7",
                "          80    0  read",
                "          60    0    0x1010",
                "           9    0      0x1020",
                "           3    0    0x1010",
            ],
        )
        self.assertEqual(
            [(s.begin, s.end, s.depth) for s in slices.of(one).by_thread()[7]],
            [(10, 90, 0), (10, 65, 1), (51, 60, 2), (67, 70, 1)],
        )
        self.assertEqual(list(text.lines(one)), [])
        data = written(write_pftrace, one)
        self.assertEqual(data.count(protobuf.content(23, "0x1010")), 2)

    def test_folded_counts(self):
        self.assertEqual(
            written(write_folded, self.one).decode(),
            '(lost on CPU 0) 5\n(lost on CPU 1) 3\na "b" <c>;in 2\n'
            "shell;in 1\nshell;out 1\n",
        )

    def test_speedscope_has_counts_and_times(self):
        data = json.loads(written(write_speedscope, self.one))
        counts, times = data["profiles"]
        self.assertEqual(sum(counts["weights"]), 12)
        self.assertEqual(
            [(e["type"], e["at"]) for e in times["events"]], [("O", 0), ("C", 90)]
        )

    def test_html_is_quoted_and_needs_nothing_else(self):
        data = written(write_html, self.one).decode()
        self.assertIn("a &quot;b&quot; &lt;c&gt;", data)
        self.assertEqual(re.findall(r"(?:src|href|url)\s*[=(]|<script|@import", data), [])
        self.assertIn("<td>(lost)</td><td>8</td><td>5</td><td>3</td>", data)

    def test_nothing_recorded_is_no_error(self):
        nothing = recording([], [])
        for writer in (
            write_dat,
            write_pftrace,
            write_folded,
            write_speedscope,
            write_html,
        ):
            written(writer, nothing)
        self.assertEqual(list(text.lines(nothing)), [])


HIST = """\
# event histogram
#
# trigger info: hist:keys=common_cpu,count.log2:vals=hitcount:sort=count.log2 [active]
#

{ common_cpu:          0, count: ~ 2^4  } hitcount:         39
{ common_cpu:          1, count: ~ 2^5  } hitcount:        224

Totals:
    Hits: 265
    Entries: 2
    Dropped: 2


# event histogram
#
# trigger info: hist:keys=stacktrace,comm:vals=hitcount,count:sort=hitcount [active]
#

{ stacktrace:
         vfs_read+0x0/0x58
         get+0x88/0xdb
, comm: work/1, 2        } hitcount:         64  count:       4096

Totals:
    Hits: 64
    Entries: 1
    Dropped: 0
"""


class Histograms(scratch.Scratch):
    def test_rows_keys_and_totals(self):
        first, second = hist.parse(HIST)
        self.assertEqual(first.rows[1].keys, {"common_cpu": "1", "count": "~ 2^5"})
        self.assertEqual(first.totals, {"Hits": 265, "Entries": 2, "Dropped": 2})
        self.assertEqual(
            second.rows[0].keys,
            {"stacktrace": "vfs_read+0x0/0x58 <- get+0x88/0xdb", "comm": "work/1, 2"},
        )
        self.assertEqual(second.rows[0].values, {"hitcount": 64, "count": 4096})

    def test_as_text(self):
        first, second = (list(hist.lines(table)) for table in hist.parse(HIST))
        self.assertEqual(
            first,
            [
                "cpu  count  hits",
                "0    <= 16    39  " + 7 * "█",
                "1    <= 32   224  " + 40 * "█",
                "2 more had no room",
            ],
        )
        self.assertEqual(second[0].split(), ["stacktrace", "comm", "hits", "count"])

    def test_signs_and_averages(self):
        """The file has the answers of a question backwards: the newest is the first."""
        text = HIST.replace("4096", "18446744073709551488")

        def first(action, signed):
            parts = ["place f", f"action {action}", "arg count", "action hist"]
            said = hist.with_signs(text, signed)
            return hist.tables(Question(parts), said)[0].rows[0].values

        self.assertEqual(first("avg", ["count"]), {"hitcount": 64, "count": -2})
        self.assertEqual(hist.divided(-3, 2), -1)
        self.assertEqual(first("sum", ["comm"])["count"], 18446744073709551488)

    def test_a_symbol_has_one_row(self):
        head = "# event histogram\n{ "
        rows = (
            (0x20, "one", 2, 5),
            (0x30, "two", 9, 7),
            (0x24, "one", 8, 6),
        )
        text = head + "{ ".join(
            f"f: [{at:016x}] {name:45}, n: 1 }} hitcount: {hits:10}  v: {value:10}\n"
            for at, name, hits, value in rows
        )

        def values(action):
            table = hist.tables(Question(["place f", f"action {action}"]), text)[0]
            return [(*row.keys.values(), *row.values.values())[2:] for row in table.rows]

        self.assertEqual(values("sum"), [(10, 11), (9, 7)])
        self.assertEqual(hist.added((1 << 64) - 1, 3), 2)
        self.assertEqual(hist.added(-3, 2), -1)
        self.assertEqual(values("max"), [(9, 7), (10, 6)])
        self.assertEqual(values("min"), [(9, 7), (10, 5)])

    def test_rows_of_lhist_keep_the_order_of_other_keys(self):
        text = "# event histogram\n" + "".join(
            f"{{ who: {who}, n: ~ {at}-{at + 7} }} hitcount: 1\n"
            for who, at in (("b", 8), ("a", 8), ("b", 0))
        )
        parts = ["place f", "action lhist", "arg n", "bounds 0,16,8", "by who"]
        table = hist.tables(Question(parts), text)[0]
        self.assertEqual(
            [tuple(row.keys.values()) for row in table.rows],
            [("b", "[0, 8)"), ("b", "[8, 16)"), ("a", "[8, 16)")],
        )

    def test_keys_are_for_people(self):
        self.assertEqual(
            hist.shown_key("__probe_ip", "[ffffffff8024c4b0] vfs_read"), "vfs_read"
        )
        self.assertEqual(hist.shown_key("ns", "~ 2^20"), "<= 1.049 ms")
        self.assertEqual(hist.shown_key("comm", "[x] ~ 2^2"), "[x] ~ 2^2")

    def test_in_the_page(self):
        one = recording([])
        one.tables = [("a question", list(hist.parse(HIST)))]
        data = written(write_html, one).decode()
        self.assertIn("<td>&lt;= 32</td><td>224</td>", data)
        self.assertIn("2 more had no room", data)


class Living(scratch.Scratch):
    def test_events_of_all_cpus_come_by_time(self):
        one = recording([], [])
        live = Live(one, is_json=False)
        one.pages[0].append(page(0, (30, entry(7, 3)), (30, entry(7, 6))))
        one.pages[1].append(page(0, (10, entry(8, 1)), (10, entry(8, 2)), missed=4))
        first = self.shown(live, 50)
        one.pages[1].append(page(0, (55, entry(8, 5))))
        self.assertEqual(first, ["LOST 4", "count=1", "count=2", "count=3"])
        self.assertEqual(self.shown(live, 60), ["count=5"])
        self.assertEqual(self.shown(live), ["count=6"])

    def shown(self, live, *until):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            live.show(*until)
        return re.findall(r"count=\d+|LOST \d+", out.getvalue())


class Sessions(scratch.Scratch):
    def session(self, *paths):
        options = types.SimpleNamespace(
            live=False, watch=False, json=False, output=[self.path(p) for p in paths]
        )
        return Session(None, options, None, str)

    def test_a_signal_does_not_interrupt_a_request(self):
        session, kept = self.session(), []

        def take():
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
            kept.append("page")

        with session.heeding():
            session.record(types.SimpleNamespace(take=take))
        self.assertEqual(kept, ["page"])

    def test_files_are_written_whatever_fails(self):
        """The first file has no folder, and the output has no reader."""
        session = self.session("none/a.csv", "b.csv")
        session.show_all = self.raise_broken_pipe
        with self.assertRaisesRegex(OSError, "none/a.csv"):
            session.write(recording([]))
        self.assertEqual(os.listdir(self.dir), ["b.csv"])

    def raise_broken_pipe(self, *_):
        raise BrokenPipeError

    def test_a_batch_that_was_not_read_is_not_confirmed(self):
        said = Reply(b"batch 8 pages 1 list 0x10 now 0\n", 0, "OK")
        machine = types.SimpleNamespace(request=lambda *_, **__: said)

        def frames(_):
            raise OSError

        memory = types.SimpleNamespace(
            physical=lambda *_: LISTED.pack(0, 0), frames=frames
        )
        taker = Taker(machine, memory)
        taker.number = 7
        with self.assertRaises(OSError):
            taker.take()
        self.assertEqual(taker.number, 7)


class Console:
    """Stands for a guest: it answers `trace -n` with @said, knows the name `count` at the
    place of `trace -p`, and keeps what is written.
    """

    PARTS = b"place read\nif count > 5\naction hist\narg count\nat 0x10 count\n"

    def __init__(self, *said):
        self.said = "".join(f"echo '{text}' >> {ROOT}{name}\n" for name, text in said)
        self.asked, self.written = [], []

    def request(self, command, _limit, may_fail=False):
        match = re.fullmatch(r"echo -ne '(.*)' >> (\S+)", command)
        if match:
            text = unescape(match[1].encode()).decode()
            self.written.append((match[2].removeprefix(ROOT), text))
            return Reply(b"", 0, "OK")
        self.asked.append(command)
        if command.startswith("trace -p"):
            return Reply(self.PARTS, 0, "OK")
        return (
            Reply(self.said.encode(), 0, "OK")
            if self.said
            else Reply(b"no", 22, "EINVAL")
        )


class Questions(scratch.Scratch):
    def capture(self, line, *said, records_all=True):
        console = Console(*said)
        one = Capture(console, None, Names, 1, [line])
        one.records_all = records_all
        one.define(line)
        return one, console

    def test_a_question_is_written_as_the_console_would(self):
        said = (
            ("kprobe_events", "p:trace/q1 read count=count:u64"),
            ("events/trace/q1/trigger", "hist:keys=count.log2 if count > 5"),
        )
        paused = said[1][0], "hist:keys=count.log2:pause if count > 5"
        one, console = self.capture("read if count > 5 { hist(count) }", *said)
        self.assertEqual(
            console.asked,
            [
                "trace -p 'read if count > 5 { hist(count) }'",
                "trace -n 'read if count > 5 { hist(count) }'",
            ],
        )
        self.assertEqual(console.written, [said[0], paused])
        self.assertEqual(one.counted, {"trace/q1": "count > 5"})
        one.enable("trace/q1")
        self.assertEqual(
            console.written[2:],
            [("events/trace/q1/filter", "count > 5"), ("events/trace/q1/enable", "1")],
        )

    def test_a_return_gets_its_time(self):
        _, console = self.capture(
            "ret read { count }", ("kprobe_events", "r:trace/q1 read")
        )
        self.assertEqual(
            console.written, [("kprobe_events", "r:trace/q1 read ns=$ns:u64")]
        )
        timed = ("kprobe_events", "r:trace/q1 read ns=$ns:u64")
        self.assertEqual(self.capture("time read", timed)[1].written, [timed])

    def test_stacks_are_recorded_too(self):
        trigger = "events/trace/q1/trigger"
        stack = trigger, "hist:keys=cpu,stacktrace if x"
        paused = trigger, "hist:keys=cpu,stacktrace:pause if x"
        for records_all, written in (
            (True, [paused, (trigger, "stacktrace if x")]),
            (False, [paused]),
        ):
            _, console = self.capture(
                "read { stack by cpu }", stack, records_all=records_all
            )
            self.assertEqual(console.written, written)

    def test_short_forms_and_quotes(self):
        told = ("kprobe_events", "p:trace/q1 read")
        for line, words in (
            ("count vfs_*", "'count' 'vfs_*'"),
            ("read { count }", "'read { count }'"),
            ("a if b == 'c' {}", "\"a if b == 'c' {}\""),
        ):
            asked = self.capture(line, told)[1].asked
            self.assertEqual(asked[-1], "trace -n " + words)

    def test_a_definition_is_no_question(self):
        _, console = self.capture("p:k/e read")
        self.assertEqual(console.asked, [])
        self.assertEqual(console.written, [("kprobe_events", "p:k/e read")])

    def test_what_the_guest_refuses_is_told(self):
        with self.assertRaisesRegex(TraceError, "no"):
            self.capture("nonsense {")


if __name__ == "__main__":
    scratch.main()
