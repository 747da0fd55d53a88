"""page.py - writes films as one page for a browser; it needs no other file and no server.

A reader who cannot see the picture has each film as a list of sentences below it, and hears
the sentence of the frame that is shown (aria-live).
"""

import json
import os

from . import picture
from .picture import quoted

STYLE = """
:root { color-scheme: light dark; }
body { background: #fcfcfa; color: #1d2329; font: 16px/1.5 system-ui, sans-serif;
  max-width: 980px; margin: 0 auto; padding: 20px; }
button, select { font: inherit; padding: 4px 12px; } select { max-width: 100%; }
button:focus-visible, select:focus-visible { outline: 3px solid #3f7fbf; }
@media (prefers-color-scheme: dark) { body { background: #14181c; color: #dfe4e8; } }
"""
PLAYER_STYLE = (
    """
#said { min-height: 3em; font-weight: 600; } .wide { overflow-x: auto; }
.wide svg { max-width: 100%; min-width: 340px; height: auto; }
#bar { width: 100%; } .now { font-weight: 700; }
"""
    + picture.STYLE
    + "@media (prefers-color-scheme: dark) {"
    + picture.DARK
    + "}\n"
)
# The player, for this page and for that of `./sonde web`. film.js works it.
PLAYER = f"""<style>{PLAYER_STYLE}</style>
<p><label>Film: <select id="which"></select></label></p>
<h2 id="title"></h2><p id="says"></p>
<div class="wide" id="stage"></div>
<p id="said" role="status" aria-live="polite"></p>
<p><label>Frame <input id="bar" type="range" min="0" value="0"></label></p>
<p><button id="back">Back</button> <button id="play">Play</button>
<button id="next">Next</button>
<label>Speed <select id="speed"><option value="0.5">slow</option>
<option value="1" selected>usual</option><option value="3">fast</option>
<option value="20">very fast</option></select></label></p>
<p>Space plays and pauses, the arrow keys step, Home and End lead to the ends. A cell of a CPU
shows each value that this CPU may still execute there; more than one is marked.</p>
<details><summary>The film as text</summary><ol id="text" start="0"></ol></details>"""

with open(os.path.join(os.path.dirname(__file__), "film.js"), encoding="utf-8") as file:
    SCRIPT = file.read()


def data_of(film):
    frames = []
    for frame in film.frames():
        cells = [
            (name, picture.shorter(text), kind)
            for name, _, _, text, kind in picture.cells_of(film, frame)
        ]
        frames.append({"said": frame.said, "cells": cells})
    width, height = picture.size_of(film)
    stage = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{quoted(film.title)}">'
        + "".join(picture.table(film, film.frames()[0]))
        + "</svg>"
    )
    return {
        "title": film.title,
        "says": film.says,
        "at": film.head["at"],
        "stage": stage,
        "frames": frames,
    }


def write(some, file):
    data = json.dumps([data_of(film) for film in some]).replace("<", "\\u003c")
    file.write(
        f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>What a probe does, slowly</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>
<h1>What a probe does, slowly</h1>
{PLAYER}
<script type="application/json" id="data">{data}</script><script>{SCRIPT}
loadFilms(JSON.parse(part('data').textContent));
if (location.hash === '#autoplay') {{ part('speed').value = 20; play(); }}
</script>
</body></html>
"""
    )
