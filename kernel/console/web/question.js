'use strict';
// question.js - a question of the tracer, which stands while workloads run on the console: with
// completion, a caret at a mistake, and an answer in pictures, which can be saved. See answer.py.
//
// What is shown is in the address: #question=vfs_read { hist(count) }&run=vfs

const FILES = ['.csv', '.svg', '.html', '.json', '.folded', '.pftrace', '.dat'];
const ACTIONS = ['count', 'print *', 'hist(', 'sum(', 'min(', 'max(', 'avg(', 'stack'];
const KEYS = ['by func', 'by cpu', 'by caller', 'by comm', 'by pid', 'top 10'];
const AHEAD = ['ret ', 'mark '];
const WORDS_MAX = 12;
const LOOK_MS = 1000;
const parameters = {}; // place: [name], as the guest told; undefined: not asked yet
const answer = by('q-answer').attachShadow({ mode: 'open' });
let fitting = []; // the words that are offered
let selected = -1; // which one Enter and Tab take
let asked = 0; // how many questions were asked
let standing = 0; // the number of the one that stands; 0: there is none

async function showQuestion() {
  const state = fromAddress(), text = state.get('question');
  if (!session) { return; }
  if (text === null) { await withdraw(); return; }
  await learn();
  if (known.workloads.includes(state.get('run'))) { by('q-run').value = state.get('run'); }
  if (text) {
    by('q-text').value = text;
    await askQuestion();
  } else {
    by('q-text').focus();
    offer();
  }
}

async function withdraw() {
  by('q-again').checked = false;
  if (!standing) { return; }
  standing = 0;
  await ask('question', { id: session.id }).catch(() => {}); // the guest may have ended
}

// Let the question stand, and run the workload on the console.
async function askQuestion() {
  const text = by('q-text').value.trim(), run = by('q-run').value;
  if (!text) { return; }
  history.replaceState(null, '', `#${new URLSearchParams({ question: text, run })}`);
  standing = 0;
  by('q-ask').disabled = true;
  by('q-said').textContent = by('q-said').textContent || 'asking';
  try {
    await ask('question', { id: session.id, text });
    by('q-said').textContent = '';
    standing = ++asked;
    look(standing, 1);
    runLoad('q');
  } catch (error) {
    by('q-said').textContent = error.message;
    answer.replaceChildren();
    by('q-files').hidden = true;
  }
  by('q-ask').disabled = false;
}

// Draw the answer to the question @mine, and again when anything has come since.
async function look(mine, all) {
  if (mine !== standing) { return; }
  try {
    const told = document.hidden ? {} : await ask('answer', { id: session.id, all });
    if (mine !== standing) { return; }
    if (told.html) {
      answer.innerHTML = `<style>${told.style}
        :host { margin: 0; padding: 0; } h1, h1 + pre { display: none; } h2 { margin-top: 20px; }
        svg { min-width: 720px; } a { color: var(--link); } .flame { cursor: pointer; }</style>` +
        told.html;
      answer.querySelectorAll('td').forEach(cell =>
        cell.replaceChildren(...linked(cell.textContent, NAME)));
      by('q-files').hidden = false;
    }
    setTimeout(look, LOOK_MS, mine, told.html ? 0 : all);
  } catch (error) {
    by('q-said').textContent = error.message;
  }
}

// ---- completion: the words that can follow in front of the cursor

async function learnParameters(place) {
  if (place in parameters) { return; }
  parameters[place] = [];
  try {
    const told = await inGuest(`trace -p '${place} { count }'`);
    parameters[place] = (/^at \S+ (.*)$/m.exec(told) || ['', ''])[1].split(' ').filter(Boolean);
  } catch (error) { // the guest will refuse the question and say why
    return;
  }
  offer();
}

function offer() {
  const before = by('q-text').value.slice(0, by('q-text').selectionStart);
  const last = /[\w.]*$/.exec(before)[0], inside = before.includes('{');
  const place = /^\s*(?:ret\s+|mark\s+)?([\w.]+)/.exec(before);
  let words = AHEAD.concat([...isFunction]);
  if (inside || /\bif\b/.test(before)) {
    if (place && !before.trim().startsWith('mark')) { learnParameters(place[1]); }
    const known = (place && parameters[place[1]] || []).concat(/^\s*ret\b/.test(before)
      ? ['retval', 'ns'] : []);
    words = /\bby\s+[\w.]*$/.test(before) ? known.concat(KEYS.map(key => key.slice(3)))
      : /[({,]\s*[\w.]*$/.test(before) && /\(/.test(before.split('{').pop()) ? known
        : inside ? ACTIONS.concat(KEYS, known) : known;
  } else if (place && /\s$/.test(before)) {
    words = ['{ ', 'if ', ', '];
  }
  fitting = before.includes('}') ? []
    : words.filter(word => word.startsWith(last) && word !== last).slice(0, WORDS_MAX);
  selected = -1;
  drawWords();
}

function drawWords() {
  by('q-words').replaceChildren(...fitting.map((word, i) => {
    const item = element('li', { id: `q-word-${i}`, textContent: word });
    item.setAttribute('role', 'option');
    item.setAttribute('aria-selected', i === selected);
    item.addEventListener('mousedown', event => { event.preventDefault(); take(i); });
    return item;
  }));
  by('q-text').setAttribute('aria-expanded', fitting.length > 0);
  by('q-text').setAttribute('aria-activedescendant', selected < 0 ? '' : `q-word-${selected}`);
}

function take(i) {
  const input = by('q-text'), at = input.selectionStart;
  const from = at - /[\w.]*$/.exec(input.value.slice(0, at))[0].length;
  input.setRangeText(fitting[i], from, at, 'end');
  offer();
}

by('q-text').addEventListener('input', offer);
by('q-text').addEventListener('keydown', event => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && fitting.length) {
    selected = (selected + step + fitting.length) % fitting.length;
    drawWords();
  } else if (event.key === 'Tab' && fitting.length && !event.shiftKey && (selected >= 0 ||
      /[\w.]$/.test(by('q-text').value))) {
    take(Math.max(selected, 0));
  } else if (event.key === 'Enter' && selected >= 0) {
    take(selected);
  } else if (event.key === 'Escape') {
    fitting = [];
    drawWords();
  } else {
    return;
  }
  event.preventDefault();
});
answer.addEventListener('click', event => {
  const title = event.target.closest('.flame');
  const [name] = title ? title.textContent.match(NAME) || [''] : [''];
  if (isFunction.has(name)) { location.hash = `#function=${name}`; }
});
by('q-form').addEventListener('submit', event => { event.preventDefault(); askQuestion(); });

// ---- files

function download(name, bytes) {
  const link = element('a', { href: URL.createObjectURL(new Blob([bytes])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The pictures of the answer, one below the other.
function asSvg() {
  const parts = [...answer.querySelectorAll('svg')];
  let y = 0;
  const inner = parts.map(node => {
    const [, , width, height] = node.getAttribute('viewBox').split(' ').map(Number);
    const copy = node.cloneNode(true);
    Object.entries({ x: 0, y, width, height }).forEach(([k, v]) => copy.setAttribute(k, v));
    y += height + 20;
    return new XMLSerializer().serializeToString(copy);
  });
  const style = answer.querySelector('style').textContent.replace(/:host/g, ':root');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 ${y}"><style>${style}</style>` +
    `${inner.join('')}</svg>`;
}

async function saveAs(kind) {
  by('q-said').textContent = '';
  try {
    if (kind === '.svg') { download('answer.svg', asSvg()); return; }
    const { base64 } = await ask('file', { id: session.id, kind });
    download(`answer${kind}`, Uint8Array.from(atob(base64), c => c.charCodeAt(0)));
  } catch (error) {
    by('q-said').textContent = error.message;
  }
}

by('q-files').append(...FILES.flatMap(kind => {
  const button = element('button', { textContent: kind, type: 'button' });
  button.addEventListener('click', () => saveAs(kind));
  return [' ', button];
}));
