"""picture.py - draws frames as SVG: memory and CPUs are columns, filmed bytes are rows.

The page and the README's picture are drawn here. In the page the cells have names, by
which a script exchanges their texts and classes. In a picture the frames stand below each
other.
"""

import html

CELL, ROW, LEFT, HEAD = 128, 30, 64, 30
STYLE = """
svg { font: 14px ui-monospace, monospace; }
svg text { fill: #1d2329; } .cell { fill: #f1f3f4; stroke: #c9ced3; }
.may { fill: #ffd9a0; } .lit { stroke: #b03060; stroke-width: 3; } .one { fill: #f1f3f4; }
.away { fill: #d6e4f5; } .soft { fill: #5a636d; } .paper { fill: #fcfcfa; }
"""
DARK = """
svg text { fill: #dfe4e8; } .cell { fill: #1b2126; stroke: #48525b; } .one { fill: #1b2126; }
.may { fill: #7a4f10; } .lit { stroke: #ff7aa8; } .away { fill: #24405f; }
.soft { fill: #a0aab4; } .paper { fill: #14181c; }
"""


def quoted(text):
    return html.escape(str(text), quote=True)


def cells_of(film, frame):
    """(name, x, y, text, classes) of each cell that may change."""
    for i in range(len(film.labels)):
        y = HEAD + i * ROW
        lit = " lit" if ("byte", i) in frame.lit else ""
        yield f"m{i}", LEFT, y, frame.memory[i], "cell" + lit
        for cpu, one in enumerate(frame.fetched):
            kind = "cell may" if len(one[i]) > 1 else "cell one"
            yield f"c{cpu}b{i}", LEFT + (cpu + 1) * CELL, y, " | ".join(
                one[i]
            ), kind + lit
    y = HEAD + len(film.labels) * ROW
    for cpu, where in enumerate(frame.stands):
        kind = "cell one" if where == "in the program" else "cell away"
        lit = " lit" if ("cpu", cpu) in frame.lit else ""
        yield f"s{cpu}", LEFT + (cpu + 1) * CELL, y, where, kind + lit


def size_of(film):
    return LEFT + (film.cpus + 1) * CELL + 2, HEAD + (len(film.labels) + 1) * ROW + 2


def shorter(text):
    return text.replace("in a copy for ", "copy of ").replace("in a trap at ", "trap at ")


def table(film, frame, names=True):
    """The cells of one frame, without the svg around them."""
    for i, name in enumerate(["memory"] + [f"CPU {cpu}" for cpu in range(film.cpus)]):
        x = LEFT + i * CELL + CELL // 2
        yield f'<text x="{x}" y="20" text-anchor="middle">{name}</text>'
    for i, label in enumerate(film.labels):
        yield (
            f'<text class="soft" x="{LEFT - 8}" y="{HEAD + i * ROW + 20}" '
            f'text-anchor="end">{quoted(label)}</text>'
        )
    for name, x, y, text, kind in cells_of(film, frame):
        rect, word = (f' id="r-{name}"', f' id="t-{name}"') if names else ("", "")
        yield (
            f'<rect{rect} class="{kind}" x="{x + 1}" y="{y + 1}" width="{CELL - 4}" '
            f'height="{ROW - 4}" rx="4"/>'
        )
        yield (
            f'<text{word} x="{x + CELL // 2 - 1}" y="{y + 19}" '
            f'text-anchor="middle">{quoted(shorter(text))}</text>'
        )


def strip(film, numbers):
    """A picture of some frames, one below the other, each with what happens in it."""
    frames = film.frames()
    width, height = size_of(film)
    step = height + 34
    width = max(width, 620)
    whole = step * len(numbers) + 40
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" '
        f'width="{width}" height="{whole}" role="img" aria-labelledby="title text">'
    )
    yield f'<title id="title">{quoted(film.title)}</title>'
    yield '<desc id="text">' + quoted(
        " ".join(frames[n].said for n in numbers)
    ) + "</desc>"
    yield f"<style>{STYLE}@media (prefers-color-scheme: dark) {{{DARK}}}</style>"
    yield f'<rect class="paper" width="{width}" height="{whole}"/>'
    yield f'<text x="10" y="24" font-weight="bold">{quoted(film.title)}</text>'
    for i, number in enumerate(numbers):
        yield f'<g transform="translate(0 {40 + i * step})">'
        yield f'<text x="10" y="14">{quoted(frames[number].said)}</text>'
        yield '<g transform="translate(0 18)">'
        yield from table(film, frames[number], names=False)
        yield "</g></g>"
    yield "</svg>"
