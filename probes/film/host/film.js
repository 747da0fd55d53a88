'use strict';
// film.js - plays films: in the page of `./sonde film html`, and in that of `./sonde web`. What a
// film is, page.py says.

const part = id => document.getElementById(id);
let films = [], film = 0, at = 0, timer = null;

function show() {
  const one = films[film], frame = one.frames[at];
  part('said').textContent = at + '/' + (one.frames.length - 1) + '. ' + frame.said;
  frame.cells.forEach(([name, text, kind]) => {
    part('t-' + name).textContent = text;
    part('r-' + name).setAttribute('class', kind);
  });
  part('bar').value = at;
  document.querySelectorAll('#text li').forEach((li, i) => {
    li.className = i === at ? 'now' : '';
  });
  document.body.dataset.frame = at;
  document.body.dataset.last = at === one.frames.length - 1;
  document.dispatchEvent(new CustomEvent('frame', { detail: { film: one, frame } }));
}
function go(to) { at = Math.max(0, Math.min(films[film].frames.length - 1, to)); show(); }
function pause() { clearInterval(timer); timer = null; part('play').textContent = 'Play'; }
function tick() {
  if (at === films[film].frames.length - 1) { pause(); } else { go(at + 1); }
}
function play() {
  if (timer) { pause(); return; }
  if (at === films[film].frames.length - 1) { go(0); }
  part('play').textContent = 'Pause';
  timer = setInterval(tick, 1200 / Number(part('speed').value));
}
function choose(n) {
  pause(); film = n; at = 0;
  part('which').value = n;
  part('title').textContent = films[n].title;
  part('says').textContent = films[n].says;
  part('stage').innerHTML = films[n].stage;
  part('text').replaceChildren(...films[n].frames.map(frame => {
    const li = document.createElement('li');
    li.textContent = frame.said;
    return li;
  }));
  part('bar').max = films[n].frames.length - 1;
  show();
}
part('which').addEventListener('change', e => choose(Number(e.target.value)));
part('play').addEventListener('click', play);
part('next').addEventListener('click', () => { pause(); go(at + 1); });
part('back').addEventListener('click', () => { pause(); go(at - 1); });
part('speed').addEventListener('change', () => { if (timer) { pause(); play(); } });
part('bar').addEventListener('input', e => { pause(); go(Number(e.target.value)); });
document.addEventListener('keydown', e => {
  if (['SELECT', 'BUTTON', 'INPUT', 'TEXTAREA'].includes(e.target.tagName) ||
    !part('stage').getClientRects().length) { return; }
  const does = { ' ': play, ArrowRight: () => { pause(); go(at + 1); },
    ArrowLeft: () => { pause(); go(at - 1); }, Home: () => go(0), End: () => go(1e9) }[e.key];
  if (does) { e.preventDefault(); does(); }
});

function loadFilms(some) {
  films = some;
  part('which').replaceChildren(...films.map((one, i) => new Option(one.title, i)));
  choose(0);
}
