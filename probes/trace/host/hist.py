"""hist.py - turns the text of a file `hist` into a table, for terminal and HTML."""

import re
from collections import namedtuple

from .svg import duration

ROW = re.compile(r"^\{ (.*?)\} hitcount: +(\d+)(.*)$", re.M | re.S)
KEY = re.compile(r"(\w+):(?:\n((?: {9}.*\n)+)| *(.*?)) *(?:, (?=\w+:)|$)", re.S)
VALUE = re.compile(r"(\w+): +(-?\d+)")
SPEC = re.compile(r"^# trigger info: hist:keys=([^:\n]*)", re.M)
TOTAL = re.compile(r"^    (Hits|Entries|Dropped): (\d+)$", re.M)
BAR = 40  # characters

# keys: {name: text}   values: {name: number}, hitcount first
Row = namedtuple("Row", "keys values")
Table = namedtuple("Table", "rows totals")


def parse(text):
    """Yield the histograms of the file."""
    for part in text.split("# event histogram\n")[1:]:
        rows, spec = [], SPEC.search(part)
        words = spec[1].split(",") if spec else ()
        in_hex = {word.removesuffix(".hex") for word in words if word.endswith(".hex")}
        for block in re.split(r"^(?=\{ )", part.partition("\nTotals:")[0], flags=re.M)[
            1:
        ]:
            match = ROW.match(block)
            if match:
                keys = {
                    name: " <- ".join(stack.split())
                    if stack
                    else "0x" * (name in in_hex) + word
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
    groups = {keys[:-1]: None for keys in rows}  # in the order of the file
    groups = {others: i for i, others in enumerate(groups)}
    ordered = sorted(rows.items(), key=lambda item: (groups[item[0][:-1]], item[0][-1]))
    return Table([row for _, row in ordered], table.totals)


SYMBOL = re.compile(r"\[[0-9a-f]{16}\] ([^+]*)")  # a key that is shown without an offset


def added(one, other):
    """Return the sum, which has 64 bits, as in the guest."""
    total = one + other
    return total if -(1 << 63) <= total < 1 << 64 else total & (1 << 64) - 1


MERGE = {"min": min, "max": max}


def by_symbol(table, action):
    """Return the table with one row for all addresses of a symbol."""
    rows = {}
    for row in table.rows:
        keys = {name: SYMBOL.sub(r"\1", text) for name, text in row.keys.items()}
        one = rows.setdefault(tuple(keys.values()), Row(row.keys, {}))
        for name, number in row.values.items():
            merge = added if name == "hitcount" else MERGE.get(action, added)
            old = one.values.get(name)
            one.values[name] = number if old is None else merge(old, number)
    if len(rows) == len(table.rows):
        return table
    ordered = sorted(rows.values(), key=lambda row: -list(row.values.values())[-1])
    return Table(ordered, table.totals)


SAMPLER_FRAMES = 2  # the function that takes samples, and its caller, begin each stack


def without_sampler(table):
    """Return the table with stacks that begin at the place that a sample has found."""
    rows = []
    for row in table.rows:
        stack = row.keys["stacktrace"].split(" <- ")[SAMPLER_FRAMES:]
        rows.append(Row({**row.keys, "stacktrace": " <- ".join(stack)}, row.values))
    return Table(rows, table.totals)


def with_percent(table):
    hits = table.totals.get("Hits") or 1
    rows = []
    for row in table.rows:
        share = f"{100 * row.values['hitcount'] / hits:.2f}"
        rows.append(Row({**row.keys, "%": share}, row.values))
    return Table(rows, table.totals)


def answered(table, answer, is_profile):
    """Return the table as this answer of a question shows it."""
    if answer.action == "lhist":
        table = in_rows(table, *answer.bounds)
    elif answer.action != "hist":
        table = by_symbol(table, answer.action)
    if answer.action == "stack" and is_profile:
        table = without_sampler(table)
    if answer.action == "avg":
        table = averages(table)
    if answer.in_percent:
        table = with_percent(table)
    return Table(table.rows[: answer.top], table.totals)


def tables(asked, text):
    """Return the tables of a question. @asked: question.Question

    The file has its histograms backwards: the newest is the first.
    """
    found, number = list(parse(text))[::-1], []
    for answer in asked.answers:
        if answer.counts() not in number:
            number.append(answer.counts())
    return [
        answered(found[number.index(answer.counts())], answer, asked.kind == "profile")
        for answer in asked.answers
    ]


NAMES = {
    "common_cpu": "cpu",
    "hitcount": "hits",
    "common_pid": "pid",
    "__probe_ip": "func",
    "sample": "func",
    "__probe_func": "func",
    "__probe_ret_ip": "caller",
}


def shown_key(name, text):
    """Return the text of a key: a symbol without its address; for a power of two the
    greatest value of its row. Bytes that are no text are dots, as on the console.
    """
    power = re.fullmatch(r"~ 2\^(\d+)", text)
    if power:
        most = 1 << int(power[1])
        return f"<= {duration(most) if name == 'ns' else most}"
    return re.sub(r"[^ -~]", ".", re.sub(r"^\[[0-9a-f]{16}\] ", "", text))


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
