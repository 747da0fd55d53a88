"""write_html.py - writes a page for a browser: tables, histograms, CPUs over time, a
flame graph.

The page needs no script, no font and no other file. It is dark if the reader's system is.
"""

import collections

from . import hist, pages, slices, svg, write_folded
from .svg import quoted

BINS = 240
HISTOGRAMS_MAX, BARS_MAX = 12, 40
STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #1d2329; --soft: #6a737d;
  --line: #d9dde1; --bar: #3f7fbf; --lost: #cf3f3f; --even: #f1f3f4;
  --f0: #f2c879; --f1: #efb08a; --f2: #e8c0b0; --f3: #d9d08a; --f4: #eab676; --f5: #f0d9a0; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #dfe4e8;
  --soft: #8f99a3; --line: #333b43; --bar: #5fa3e6; --lost: #ef6a6a; --even: #1b2126;
  --f0: #7d5f22; --f1: #7d4a2c; --f2: #6d4a3e; --f3: #65602a; --f4: #7a5626;
  --f5: #6f6136; } }
body { background: var(--paper); color: var(--ink); margin: 0 auto; padding: 24px 20px 60px;
  max-width: 980px; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 36px 0 10px; }
h3 { font-size: 14px; margin: 22px 0 6px; font-weight: 600; }
p { margin: 4px 0; } .soft { color: var(--soft); } .bad { color: var(--lost); }
code, pre, table { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; background: var(--even); padding: 10px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } th { font-weight: 600; text-align: right; }
th, td { padding: 2px 14px 2px 0; border-bottom: 1px solid var(--line); }
td { text-align: right; } th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 11px ui-monospace, monospace; }
svg .in { pointer-events: none; } .axis { stroke: var(--line); }
.bar { fill: var(--bar); } .lost { fill: var(--lost); }
.f0 { fill: var(--f0); } .f1 { fill: var(--f1); } .f2 { fill: var(--f2); }
.f3 { fill: var(--f3); } .f4 { fill: var(--f4); } .f5 { fill: var(--f5); }
"""


def table(head, rows):
    cells = "".join(f"<th>{quoted(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{quoted(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><tr>{cells}</tr>{body}</table></div>'


def counts_table(recording):
    """Return a table of events by name and CPU, with the number of lost events."""
    cpus = range(len(recording.pages))
    counts = collections.Counter(
        ((recording.label(e), e.name), e.cpu) for e in recording.all_events
    )
    names = sorted(
        {name for name, _ in counts},
        key=lambda name: (-sum(counts[name, cpu] for cpu in cpus), name),
    )
    labels = collections.Counter(label for label, _ in names)
    rows = [
        (
            label if labels[label] < 2 else f"{label} ({event})",
            sum(counts[(label, event), cpu] for cpu in cpus),
            *(counts[(label, event), cpu] for cpu in cpus),
        )
        for label, event in names
    ]
    lost = [recording.lost_before(cpu) + recording.lost_behind(cpu) for cpu in cpus]
    rows.append(("(lost)", sum(lost), *lost))
    return table(("event", "all", *(f"CPU {cpu}" for cpu in cpus)), rows)


def times_table(found):
    """Return a table of durations by function, and {function: its durations}."""
    times = collections.defaultdict(list)
    for one in found:
        if not one.is_instant:
            times[one.name].append(one.end - one.begin)
    rows = [
        (name, len(ns), sum(ns), min(ns), sum(ns) // len(ns), max(ns))
        for name, ns in times.items()
    ]
    rows.sort(key=lambda row: -row[2])
    shown = [row[:2] + tuple(svg.duration(ns) for ns in row[2:]) for row in rows]
    return (
        table(("function", "returns", "in all", "least", "average", "most"), shown),
        times,
    )


def log2_rows(values, shown):
    """Return (range, how many values) for each power of two, in rising order."""
    counts = collections.Counter(max(value, 0).bit_length() for value in values)
    rows = []
    for bits in range(min(counts), max(counts) + 1):
        low = 1 << bits - 1 if bits else 0
        rows.append(
            (
                f"{shown(low)} … {shown((1 << bits) - 1)}" if bits > 1 else shown(low),
                counts[bits],
            )
        )
    return rows


def histograms(recording, times):
    for name, ns in times.items():
        yield f"{name}: time", log2_rows(ns, svg.duration)
    values = collections.defaultdict(list)
    for event in recording.all_events:
        for field in event.format.arguments:
            value = event.values[field.name]
            if field.name != "ns" and isinstance(value, int) and 0 <= value < 1 << 40:
                values[recording.label(event), field.name].append(value)
    for (event, argument), found in values.items():
        if event not in ("print", slices.STACK):
            yield f"{event}: {argument}", log2_rows(found, str)


def counted(one):
    """Yield a histogram of the guest: as bars if it is short, else as a table."""
    head, rows = hist.cells(one)
    values = len(one.rows[0].values) if one.rows else 0
    is_simple = len(head) == 2 and values == 1 and len(rows) <= BARS_MAX
    if is_simple and max(len(row[0]) for row in rows) < 30:
        counts = [row.values["hitcount"] for row in one.rows]
        yield svg.bars([(row[0], n) for row, n in zip(rows, counts)], head[0])
    elif rows:
        yield table(head, rows)
    if one.totals.get("Dropped"):
        yield f'<p class="bad">{one.totals["Dropped"]} more had no room</p>'


def cpus_over_time(recording, start, end):
    rows = []
    for cpu in range(len(recording.pages)):
        rows.append((f"CPU {cpu}", [0] * BINS, [0] * BINS))
    for event in recording.all_events:
        place = min((event.time - start) * BINS // max(end - start, 1), BINS - 1)
        rows[event.cpu][1][place] += 1
        if event.missed:
            rows[event.cpu][2][place] += 1 if event.missed == pages.SOME else event.missed
    for cpu, row in enumerate(rows):
        row[2][-1] += recording.lost_behind(cpu)
    return svg.lanes(rows, start, end, "events of each CPU over time")


def body(recording):
    events = recording.all_events
    found = slices.of(recording).found
    yield "<h1>A recording of sonde</h1>"
    if recording.lines:
        yield "<pre>" + quoted("\n".join(recording.lines)) + "</pre>"
    lost = recording.lost_in_all()
    lasted = svg.duration(events[-1].time - events[0].time) if events else "no time"
    yield f"<p>{len(events)} events, {lost} lost, in {lasted}</p>"
    yield f'<p class="soft">{quoted(recording.version)}</p>'
    yield "".join(f'<p class="bad">{quoted(note)}</p>' for note in recording.notes)
    yield "<h2>Events</h2>" + counts_table(recording)
    shown, times = times_table(found)
    if times:
        yield "<h2>Functions</h2>" + shown
    for title, tables in recording.tables:
        yield f"<h2>{quoted(title)}</h2>"
        for one in tables:
            yield from counted(one)
    if events:
        yield "<h2>CPUs over time</h2>"
        yield cpus_over_time(recording, events[0].time, events[-1].time)
    pictures = list(histograms(recording, times))[:HISTOGRAMS_MAX]
    if pictures:
        yield "<h2>Histograms</h2>"
    for title, rows in pictures:
        yield f"<h3>{quoted(title)}</h3>" + svg.bars(rows, title)
    stacks = write_folded.stacks(recording)
    if stacks:
        yield "<h2>Flame graph</h2>"
        yield '<p class="soft">The width says how often. Each frame has its count.</p>'
        yield svg.Flame(stacks).draw("flame graph")


def write(recording, file):
    title = quoted("sonde: " + ", ".join(recording.lines))
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    )
    file.write((head + "\n".join(body(recording)) + "</html>\n").encode())
