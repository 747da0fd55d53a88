"""svg.py - draws the pictures of the HTML page: bars, lanes, a flame graph. Colours are
given by classes only.
"""

import html
import zlib

WIDTH = 960
CHARACTER = 6.6  # width of one, of the small font
FLAME_ROW = 18


def quoted(text):
    return html.escape(str(text), quote=True)


def picture(height, parts, label):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{quoted(label)}">'
        f'{"".join(parts)}</svg>'
    )


def rect(x, y, width, height, kind, title=""):
    inside = f"<title>{quoted(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.2f}" y="{y:g}" width="{max(width, 0.1):.2f}" height="{height:g}" '
        f'class="{kind}">{inside}</rect>'
    )


def words(x, y, text, kind="", anchor="start"):
    return (
        f'<text x="{x:.2f}" y="{y:g}" class="{kind}" text-anchor="{anchor}">'
        f"{quoted(text)}</text>"
    )


def bars(rows, label):
    """Draw a bar for each row. rows: (name, count)."""
    left, row = 210, 20
    most = max(count for _, count in rows)
    parts = []
    for i, (name, count) in enumerate(rows):
        y = i * row
        width = (WIDTH - left - 90) * count / most if most else 0
        parts.append(words(left - 8, y + 14, name, "small", "end"))
        if count:
            parts.append(rect(left, y + 3, max(width, 1), row - 6, "bar"))
        parts.append(words(left + width + 6, y + 14, count or "", "small"))
    return picture(len(rows) * row, parts, label)


def lanes(rows, start, end, label):
    """Draw CPUs over time. rows: (name, events in each bin, lost events in each bin)."""
    left, row, axis = 70, 46, 22
    bins = len(rows[0][1])
    step = (WIDTH - left) / bins
    most = max([1] + [count for _, counts, _ in rows for count in counts])
    parts = []
    for i, (name, counts, lost) in enumerate(rows):
        base = (i + 1) * row - 4
        parts.append(words(left - 8, base - 10, name, "small", "end"))
        parts.append(
            f'<line x1="{left}" x2="{WIDTH}" y1="{base}" y2="{base}" class="axis"/>'
        )
        for j, count in enumerate(counts):
            x = left + j * step
            if count:
                height = max((row - 10) * count / most, 1.5)
                parts.append(
                    rect(
                        x,
                        round(base - height, 2),
                        step,
                        round(height, 2),
                        "bar",
                        f"{count} events",
                    )
                )
            if lost[j]:
                parts.append(
                    rect(
                        x,
                        base - row + 6,
                        max(step, 2),
                        row - 6,
                        "lost",
                        f"{lost[j]} events lost",
                    )
                )
    y = len(rows) * row + 14
    for i in range(5):
        x = left + (WIDTH - left) * i / 4
        anchor = "start" if not i else "end" if i == 4 else "middle"
        parts.append(words(x, y, duration((end - start) * i // 4), "small", anchor))
    return picture(len(rows) * row + axis, parts, label)


def duration(ns):
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


class Flame:
    """A flame graph. stacks: {(frame, ...): count}, the outermost frame first."""

    def __init__(self, stacks):
        self.total = sum(stacks.values())
        self.root = {}
        self.depth = 0
        for frames, count in stacks.items():
            level = self.root
            for frame in frames:
                node = level.setdefault(frame, [0, {}])
                node[0] += count
                level = node[1]
            self.depth = max(self.depth, len(frames))

    def draw(self, label):
        parts = []
        self._level(self.root, 0, 0, parts)
        return picture(self.depth * FLAME_ROW, parts, label)

    def _level(self, nodes, x, depth, parts):
        y = (self.depth - depth - 1) * FLAME_ROW
        for name, (count, inner) in sorted(nodes.items()):
            width = WIDTH * count / self.total
            kind = f"flame f{zlib.crc32(name.encode()) % 6}"
            share = 100 * count / self.total
            parts.append(
                rect(
                    x,
                    y,
                    max(width - 0.6, 0.1),
                    FLAME_ROW - 1,
                    kind,
                    f"{name}: {count} ({share:.1f} %)",
                )
            )
            room = int((width - 8) / CHARACTER)
            if room >= 3:
                shown = name if len(name) <= room else name[: room - 1] + "…"
                parts.append(words(x + 4, y + 13, shown, "small in"))
            self._level(inner, x, depth + 1, parts)
            x += width
