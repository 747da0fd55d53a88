"""hist.py - the text of an event's file `hist`, as a table: for people, and for the page."""

import re
from collections import namedtuple

ROW = re.compile(r"^\{ (.*?)\} hitcount: +(\d+)(.*)$", re.M | re.S)
KEY = re.compile(r"(\w+):(?:\n((?: {9}.*\n)+)| *(.*?)) *(?:, (?=\w+:)|$)", re.S)
VALUE = re.compile(r"(\w+): +(\d+)")
TOTAL = re.compile(r"^    (Hits|Entries|Dropped): (\d+)$", re.M)
BAR = 40  # characters

# keys: {name: text}   values: {name: number}, hitcount first
Row = namedtuple("Row", "keys values")
Table = namedtuple("Table", "rows totals")


def parse(text):
    """The histograms of the file."""
    for part in text.split("# event histogram\n")[1:]:
        rows = []
        for block in re.split(r"^(?=\{ )", part.partition("\nTotals:")[0], flags=re.M)[1:]:
            match = ROW.match(block)
            if match:
                keys = {name: " <- ".join(stack.split()) if stack else word
                        for name, stack, word in KEY.findall(match[1])}
                values = {"hitcount": int(match[2])}
                values |= {name: int(number) for name, number in VALUE.findall(match[3])}
                rows.append(Row(keys, values))
        yield Table(rows, {name: int(number) for name, number in TOTAL.findall(part)})


def shown_name(name):
    return {"common_cpu": "cpu", "common_type": "event", "hitcount": "hits"}.get(name, name)


def cells(table):
    """(head, rows) of texts: the keys, then the values."""
    if not table.rows:
        return [], []
    first = table.rows[0]
    keys = [name for name in first.keys if name != "common_type"]
    head = [shown_name(name) for name in (*keys, *first.values)]
    rows = [[*(row.keys.get(name, "") for name in keys),
             *(str(value) for value in row.values.values())] for row in table.rows]
    return head, rows


def lines(table):
    """The table as text, with a bar for each count."""
    head, rows = cells(table)
    if not rows:
        yield "nothing was counted"
        return
    counts = [row.values["hitcount"] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    values = len(table.rows[0].values)
    for row, count in zip([head, *rows], [0, *counts]):
        texts = [text.rjust(width) if i >= len(row) - values else text.ljust(width)
                 for i, (text, width) in enumerate(zip(row, widths))]
        bar = "█" * -(-BAR * count // max(counts))
        yield "  ".join([*texts, bar]).rstrip()
    if table.totals.get("Dropped"):
        yield f"{table.totals['Dropped']} more had no room"
