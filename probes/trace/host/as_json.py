"""as_json.py - gives the events and the tables of a recording as objects for --json."""

import re

from . import hist, pages, text


def event(recording, one):
    """An event: its fields, and the text that the guest's `trace` has behind the time."""
    values = {
        name: value if isinstance(value, (int, str, list)) else str(value)
        for name, value in one.values.items()
    }
    return {
        "event": one.name,
        "time": one.time,
        "cpu": one.cpu,
        "thread": one.pid,
        "name": recording.name_of(one.pid),
        "values": values,
        "text": text.said(recording, one),
    }


def lost(cpu, count):
    """Events that a CPU has lost at this place; null: their number is not known."""
    return {"lost": None if count == pages.SOME else count, "cpu": cpu}


def events(recording):
    for one in recording.events():
        if one.missed:
            yield lost(one.cpu, one.missed)
        yield event(recording, one)
    for cpu in range(len(recording.pages)):
        if recording.lost_behind(cpu):
            yield lost(cpu, recording.lost_behind(cpu))


def count_of(pattern, remark):
    """Add up the numbers that a remark has in front of these words."""
    return sum(map(int, re.findall(pattern, remark)))


def tables(recording, asked):
    """The tables of questions. In a row the keys are texts, and the values numbers.
    @asked: pairs of a question and its tables
    """
    for question, found in asked:
        remark = recording.remarks.get(question, "")
        for table, answer in zip(found, recording.answers[question]):
            head, rows = hist.cells(table)
            keys = len(head) - len(table.rows[0].values) if rows else 0
            yield {
                "table": question,
                "answer": answer,
                "columns": head,
                "rows": [[*row[:keys], *map(int, row[keys:])] for row in rows],
                "left_out": count_of(r"(\d+) functions", remark),
                "unmatched": count_of(r"(\d+) \w+ had no", remark),
                "dropped": table.totals.get("Dropped", 0),
            }
