"""page.py - writes films as one page for a browser; it needs no other file and no server.

A reader who cannot see the picture has each film as a list of sentences below it, and hears
the sentence of the frame that is shown (aria-live).
"""

import json

from . import picture
from .picture import quoted

STYLE = (
    """
:root { color-scheme: light dark; }
body { background: #fcfcfa; color: #1d2329; font: 16px/1.5 system-ui, sans-serif;
  max-width: 980px; margin: 0 auto; padding: 20px; }
button, select { font: inherit; padding: 4px 12px; }
button:focus-visible, select:focus-visible { outline: 3px solid #3f7fbf; }
#said { min-height: 3em; font-weight: 600; } .wide { overflow-x: auto; }
input[type=range] { width: 100%; } .now { font-weight: 700; }
"""
    + picture.STYLE
    + """
@media (prefers-color-scheme: dark) {
body { background: #14181c; color: #dfe4e8; }
"""
    + picture.DARK
    + "}\n"
)

SCRIPT = """
'use strict';
const films = JSON.parse(document.getElementById('data').textContent);
const by = id => document.getElementById(id);
let film = 0, at = 0, timer = null;
function show() {
  const one = films[film], frame = one.frames[at];
  by('said').textContent = at + '/' + (one.frames.length - 1) + '. ' + frame.said;
  frame.cells.forEach(([name, text, kind]) => {
    by('t-' + name).textContent = text;
    by('r-' + name).setAttribute('class', kind);
  });
  by('bar').value = at;
  document.querySelectorAll('#text li').forEach((li, i) => {
    li.className = i === at ? 'now' : '';
  });
  document.body.dataset.frame = at;
  document.body.dataset.last = at === one.frames.length - 1;
}
function go(to) { at = Math.max(0, Math.min(films[film].frames.length - 1, to)); show(); }
function pause() { clearInterval(timer); timer = null; by('play').textContent = 'Play'; }
function tick() {
  if (at === films[film].frames.length - 1) { pause(); } else { go(at + 1); }
}
function play() {
  if (timer) { pause(); return; }
  if (at === films[film].frames.length - 1) { go(0); }
  by('play').textContent = 'Pause';
  timer = setInterval(tick, 1200 / Number(by('speed').value));
}
function choose(n) {
  pause(); film = n; at = 0;
  by('which').value = n;
  by('title').textContent = films[n].title;
  by('says').textContent = films[n].says;
  by('stage').innerHTML = films[n].stage;
  by('text').replaceChildren(...films[n].frames.map(frame => {
    const li = document.createElement('li');
    li.textContent = frame.said;
    return li;
  }));
  by('bar').max = films[n].frames.length - 1;
  show();
}
by('which').addEventListener('change', e => choose(Number(e.target.value)));
by('play').addEventListener('click', play);
by('next').addEventListener('click', () => { pause(); go(at + 1); });
by('back').addEventListener('click', () => { pause(); go(at - 1); });
by('bar').addEventListener('input', e => { pause(); go(Number(e.target.value)); });
document.addEventListener('keydown', e => {
  if (['SELECT', 'BUTTON', 'INPUT'].includes(e.target.tagName)) { return; }
  const does = { ' ': play, ArrowRight: () => { pause(); go(at + 1); },
    ArrowLeft: () => { pause(); go(at - 1); }, Home: () => go(0), End: () => go(1e9) }[e.key];
  if (does) { e.preventDefault(); does(); }
});
choose(0);
if (location.hash === '#autoplay') { by('speed').value = 20; play(); }
"""


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
    return {"title": film.title, "says": film.says, "stage": stage, "frames": frames}


def write(some, file):
    data = json.dumps([data_of(film) for film in some]).replace("<", "\\u003c")
    options = "".join(
        f'<option value="{i}">{quoted(film.title)}</option>'
        for i, film in enumerate(some)
    )
    file.write(
        f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>What a probe does, slowly</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>
<h1>What a probe does, slowly</h1>
<p><label>Film: <select id="which">{options}</select></label></p>
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
<h2>The film as text</h2><ol id="text" start="0"></ol>
<script type="application/json" id="data">{data}</script><script>{SCRIPT}</script>
</body></html>
"""
    )
