"""hist.py - turns the text of a file `hist` into a table, for terminal and HTML."""

import re
from collections import namedtuple

from .svg import duration

ROW = re.compile(r"^\{ (.*?)\} hitcount: +(\d+)(.*)$", re.M | re.S)
KEY = re.compile(r"(\w+):(?:\n((?: {9}.*\n)+)| *(.*?)) *(?:, (?=\w+:)|$)", re.S)
VALUE = re.compile(r"(\w+): +(-?\d+)")
TOTAL = re.compile(r"^    (Hits|Entries|Dropped): (\d+)$", re.M)
BAR = 40  # characters

# keys: {name: text}   values: {name: number}, hitcount first
Row = namedtuple("Row", "keys values")
Table = namedtuple("Table", "rows totals")


def parse(text):
    """Yield the histograms of the file."""
    for part in text.split("# event histogram\n")[1:]:
        rows = []
        for block in re.split(r"^(?=\{ )", part.partition("\nTotals:")[0], flags=re.M)[
            1:
        ]:
            match = ROW.match(block)
            if match:
                keys = {
                    name: " <- ".join(stack.split()) if stack else word
                    for name, stack, word in KEY.findall(match[1])
                }
                values = {"hitcount": int(match[2])}
                values |= {name: int(number) for name, number in VALUE.findall(match[3])}
                rows.append(Row(keys, values))
        yield Table(rows, {name: int(number) for name, number in TOTAL.findall(part)})


def with_signs(text, names):
    """Return the text with signed numbers in the fields of these names. The file itself
    shows all numbers as unsigned.
    """
    number = re.compile(rf"\b({'|'.join(names)}): +(\d{{19,}})\b")
    return (
        number.sub(lambda m: f"{m[1]}: {int(m[2]) - (int(m[2]) >> 63 << 64)}", text)
        if names
        else text
    )


def averages(table):
    """Make a table of averages from a table of sums, the largest average first."""
    rows = []
    for row in table.rows:
        hits = row.values["hitcount"]
        values = {
            name: number if name == "hitcount" else divided(number, hits)
            for name, number in row.values.items()
        }
        rows.append(Row(row.keys, values))
    rows.sort(key=lambda row: -list(row.values.values())[-1])
    return Table(rows, table.totals)


def divided(number, by):
    """Divide as C does, towards zero."""
    return (abs(number) // by) * (-1 if number < 0 else 1) if by else 0


ANSWER_ENDS = re.compile(r";|,(?=\s*(?:l?hist|sum|min|max|avg)\()")
LHIST = re.compile(r"\s*lhist\((.*),\s*(\w+)\s*,\s*(\w+)\s*,\s*(\w+)\s*\)")


def answers(title):
    """Return the answers that the question wants, as texts."""
    inner = re.search(r"\{(.*)\}\s*$", title)
    return ANSWER_ENDS.split(inner[1]) if inner else [""]


def in_rows(table, low, high, step):
    """Return the table of lhist(ARG,MIN,MAX,STEP) from one whose last key is a bucket."""
    rows = {}
    for row in table.rows:
        *others, name = row.keys
        number = int(re.match(r"~ (-?\d+)", row.keys[name])[1])
        at = min(max((number - low) // step, -1), (high - low) // step)
        keys = (*(row.keys[other] for other in others), at)
        if at < 0:
            text = f"< {low}"
        elif low + at * step >= high:
            text = f">= {high}"
        else:
            text = f"[{low + at * step}, {low + (at + 1) * step})"
        found = rows.setdefault(keys, Row({**row.keys, name: text}, {"hitcount": 0}))
        found.values["hitcount"] += row.values["hitcount"]
    ordered = sorted(rows.items(), key=lambda item: (item[0][:-1], item[0][-1]))
    return Table([row for _, row in ordered], table.totals)


def answered(table, answer):
    """Return the table as this answer of the question shows it."""
    linear = LHIST.match(answer)
    if linear:
        table = in_rows(table, *(int(word, 0) for word in linear.groups()[1:]))
    if re.match(r"\s*avg\(", answer):
        table = averages(table)
    if re.search(r"\bpercent\s*$", answer):
        hits = table.totals.get("Hits") or 1
        rows = [
            Row(
                {**row.keys, "%": f"{100 * row.values['hitcount'] / hits:.2f}"},
                row.values,
            )
            for row in table.rows
        ]
        table = Table(rows, table.totals)
    top = re.search(r"\btop (\d+)\b", answer)
    return Table(table.rows[: int(top[1])], table.totals) if top else table


def tables(title, text):
    """Yield the histograms of a question. The title is the text of the question."""
    found, wanted = list(parse(text))[::-1], answers(title)  # the newest is the first
    if len(found) == len(wanted):
        found = map(answered, found, wanted)
    yield from found


NAMES = {
    "common_cpu": "cpu",
    "hitcount": "hits",
    "common_pid": "pid",
    "__probe_ip": "func",
    "__probe_func": "func",
    "__probe_ret_ip": "caller",
}


def shown_key(name, text):
    """Return the text of a key: a symbol without its address; for a power of two the
    greatest value of its row.
    """
    power = re.fullmatch(r"~ 2\^(\d+)", text)
    if power:
        most = 1 << int(power[1])
        return f"<= {duration(most) if name == 'ns' else most}"
    return re.sub(r"^\[[0-9a-f]{16}\] ", "", text)


def cells(table):
    """Return (head, rows) of texts; in each row first the keys, then the values."""
    if not table.rows:
        return [], []
    first = table.rows[0]
    keys = [name for name in first.keys if name != "common_type"]
    head = [NAMES.get(name, name) for name in (*keys, *first.values)]
    rows = [
        [
            *(shown_key(name, row.keys.get(name, "")) for name in keys),
            *(str(value) for value in row.values.values()),
        ]
        for row in table.rows
    ]
    return head, rows


def lines(table):
    """Yield the lines of the table as text, with a bar for each count."""
    head, rows = cells(table)
    if not rows:
        yield "nothing was counted"
        return
    counts = [row.values["hitcount"] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    values = len(table.rows[0].values)
    for row, count in zip([head, *rows], [0, *counts]):
        texts = [
            text.rjust(width) if i >= len(row) - values else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths))
        ]
        bar = "█" * -(-BAR * count // max(counts))
        yield "  ".join([*texts, bar]).rstrip()
    if table.totals.get("Dropped"):
        yield f"{table.totals['Dropped']} more had no room"
