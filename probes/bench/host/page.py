#!/usr/bin/python3
"""page.py - writes the table of `make bench` as a page with plots.

    probes/bench/host/page.py FOLDER FILE...      FILE...: as for compare.py

Writes FOLDER/index.html, and next to it one SVG for each plot: hits in cycles and in
instructions beside Linux and the floor, with a mark at each goal; what a probe among many
costs; and the instructions of each release (history.tsv). The plots are made by matplotlib,
which Debian has for its own Python.
"""

import html
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import compare
import icount
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

SCALE = re.compile(r"sonde\.scale\.(\w+)\.(\d+)\.ns_per_probe")
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>What probes cost</title>
<style>
body {{ font-family: sans-serif; max-width: 75em; margin: auto }}
table {{ border-collapse: collapse }}
td, th {{ border: 1px solid #ccc; padding: 0.1em 0.6em; text-align: right }}
td:first-child {{ text-align: left }}
.MISSED {{ background: #fdd }}
img {{ max-width: 100% }}
</style>
<h1>What probes cost</h1>
<p>{host}</p>
{plots}
{table}
"""


def plot_hits(axes, rows, unit):
    """Bars of each kind, one for each of sonde, Linux and the floor."""
    rows = rows[::-1]
    for i, (who, color) in enumerate(
        (("floor", "0.6"), ("linux", "C1"), ("sonde", "C0"))
    ):
        values = [getattr(row, who) or 0 for row in rows]
        places = [at + 0.27 * (i - 1) for at in range(len(rows))]
        axes.barh(places, values, height=0.27, color=color, label=who)
    goals = [(row.goal, at) for at, row in enumerate(rows) if row.goal]
    look = {"marker": "|", "s": 120, "color": "C3", "label": "goal", "zorder": 3}
    axes.scatter([g for g, _ in goals], [at + 0.27 for _, at in goals], **look)
    axes.set_yticks(range(len(rows)), [row.name.split(".")[1] for row in rows])
    axes.set_xlabel(f"{unit} a hit")
    axes.legend()


def hits_of(rows, run):
    """The row of each kind; a kind with a goal of its own has another one behind."""
    found = {}
    for row in rows:
        if row.run == run and re.search(r"^hit.*cycles$", row.name):
            found.setdefault(row.name, row)
    return list(found.values())


def scale_of(figures, run):
    """Points (probes, what each of them costs), by what is done with them."""
    lines = {}
    for (of, name), value in figures.items():
        match = SCALE.fullmatch(name)
        if match and of == run and int(match[2]) > 1:
            lines.setdefault(match[1], []).append((int(match[2]), value))
    return lines


def plot_scale(axes, lines, unit):
    for name, points in lines.items():
        axes.plot(*zip(*sorted(points)), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("probes")
    axes.set_ylabel(f"{unit} a probe")
    axes.legend()


def plot_history(axes):
    names, releases = icount.history()
    for i, name in enumerate(names):
        values = [float(r[i + 1]) if r[i + 1] != "-" else float("nan") for r in releases]
        axes.plot([r[0] for r in releases], values, marker="o", label=name)
    axes.set_ylabel("instructions a hit")
    axes.set_ylim(bottom=0)
    axes.legend()


def draw(folder, name, height, plot, *words):
    figure, axes = plt.subplots(figsize=(9, height), layout="constrained")
    plot(axes, *words)
    figure.savefig(os.path.join(folder, name))
    plt.close(figure)
    return f'<p><img src="{name}" alt="{name.removesuffix(".svg")}"></p>'


def draw_all(folder, figures, rows):
    plots = []
    for run, unit in (("smp", "cycles"), ("icount", "instructions")):
        hits = hits_of(rows, run)
        if hits:
            height = 1 + 0.4 * len(hits)
            plots.append(draw(folder, f"hits-{run}.svg", height, plot_hits, hits, unit))
    for run, unit in (("smp4", "ns"), ("icount", "instructions")):
        lines = scale_of(figures, run)
        if lines:
            plots.append(draw(folder, f"scale-{run}.svg", 5, plot_scale, lines, unit))
    plots.append(draw(folder, "history.svg", 5, plot_history))
    return plots


def table_of(rows):
    lines = ["".join(f"<th>{cell}</th>" for cell in compare.HEADER)]
    lines += [
        "".join(f'<td class="{c}">{c}</td>' for c in compare.cells_of(r)) for r in rows
    ]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def main(folder, *paths):
    figures, goals, host = compare.read(paths)
    rows = compare.rows_of(figures, goals)
    text = PAGE.format(
        host="<br>".join(html.escape(f"{name}: {value}") for name, value in host.items()),
        plots="\n".join(draw_all(folder, figures, rows)),
        table=table_of(rows),
    )
    path = os.path.join(folder, "index.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"# {path}")


main(*sys.argv[1:])
