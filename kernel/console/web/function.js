'use strict';
// function.js - a function that runs: its source, its instructions, the bytes that stand there
// now, and live counts. See listing.py for what the server tells.
//
// What is shown is in the address: #function=vfs_read&probes=0x0,0x5&all=1&run=vfs&fold=0x5

const REFRESH_MS = 250;
const DEFAULT_LOAD = 'vfs';
const OWNERS = { '-': 'original', i: 'int3', j: 'jump', r: 'read by the jump in front',
  x: 'int3 of other code' };
const JUMP_LEN = 5;
const OPTIMIZATION = '/proc/sys/debug/kprobes-optimization';
const ENGINE = '/proc/sys/debug/text-poke';
let learning = null; // a promise of @known
let known = null; // {functions: [[name, path]], workloads: [name]}, as the server told
let isFunction = new Set(); // the names of all functions
let seen = null; // the function that is shown
let counts = {}; // number of a row: [hits, misses by cause]
let unfolded = new Set(); // numbers of rows
let chosen = 0; // the number of the row that had the focus last
let refreshing = null; // the timer of the counts
let busy = 0; // how many commands and listings are under way

const NAME = /([A-Za-z_][\w.]*(?::[A-Za-z_][\w.]*)?)/g;
const OPERAND = /((?<=<)[\w.:]+(?=>))/; // as objdump writes a name

const hex = offset => `0x${offset.toString(16)}`;
// A function of a module may have the name of another one, and is named by its address.
const place = row => seen.module ? `0x${row.address}` : `${row.function}+${hex(row.offset)}`;
const spaced = bytes => bytes.replace(/..(?=.)/g, '$& ');
const own = row => row.probes.find(p => p.name && !p.set && p.kind === 'k');

function say(text) { by('fn-said').textContent = text; }

async function inGuest(text) {
  const done = await ask('command', { id: session.id, text });
  if (done.status) { throw new Error(done.output.trim() || `${text}: refused`); }
  return done.output.trim();
}

// ---- what is in the address

const fromAddress = () => new URLSearchParams(location.hash.slice(1));

// Which part the address asks for, if it asks for no document.
const PARTS = ['function', 'question', 'film'];
function showParts() {
  const state = fromAddress(), one = PARTS.find(name => state.has(name));
  document.body.classList.toggle('has-function', one === 'function' || one === 'question');
  PARTS.forEach(name => { by(name).hidden = name !== one; });
  by('task').hidden = Boolean(one);
  fit.fit();
  terminal.scrollToBottom();
}

function toAddress() {
  if (!seen || fromAddress().get('function') !== seen.asked) { return; } // the user has gone on
  const state = new URLSearchParams({ function: seen.asked });
  const probes = seen.rows.filter(own).map(row => hex(row.offset));
  if (probes.length) { state.set('probes', probes.join(',')); }
  if (seen.rows.some(row => row.probes.some(p => p.set))) { state.set('all', '1'); }
  state.set('run', by('fn-run').value);
  if (unfolded.size) {
    state.set('fold', [...unfolded].map(i => hex(seen.rows[i].offset)).join(','));
  }
  history.replaceState(null, '', `#${state}`.replace(/%2C/g, ','));
}

// Show what the address says, and set the probes that it names.
async function showFunction() {
  const state = fromAddress(), name = state.get('function');
  if (name === '') {
    say('type the name of a function above');
    by('fn-name').focus();
  }
  if (!name || !session) { return; }
  await learn();
  by('fn-name').value = name;
  if (known.workloads.includes(state.get('run'))) { by('fn-run').value = state.get('run'); }
  if (seen && seen.asked === name) { resume(); return; }
  unfolded = new Set();
  chosen = 0;
  by('film').append(by('player'));
  by('fn-film').replaceChildren();
  say(`reading ${name}`);
  if (!await list(name)) { return; }
  const offsets = (state.get('probes') || '').split(',').filter(Boolean).map(Number);
  const missing = seen.rows.filter(row => offsets.includes(row.offset) && !own(row));
  const all = state.has('all') &&
    !seen.rows.every(row => row.refused || row.probes.some(p => p.set));
  if (missing.length || all) {
    await change(async () => {
      for (const row of missing) { await inGuest(`probe add ${place(row)}`); }
      return all ? countAll() : '';
    });
  } else {
    tellCounted();
  }
  if (!seen || fromAddress().get('function') !== name) { return; } // the user has gone on
  const folds = (state.get('fold') || '').split(',').filter(Boolean).map(Number);
  for (const [i, row] of seen.rows.entries()) {
    if (folds.includes(row.offset)) { await unfold(i); }
  }
  toAddress();
}

// ---- the guest's functions

async function learn(again) {
  if (known && !again) { return; }
  if (!known) { say('waiting for the guest'); }
  learning = learning || ask('functions', { id: session.id }).finally(() => { learning = null; });
  const told = await learning;
  if (!known) { say(''); }
  known = told;
  isFunction = new Set(known.functions.map(([name]) => name));
  by('fn-names').replaceChildren(...known.functions.map(([name, path]) =>
    element('option', { value: name, label: path })));
  for (const [id, first] of [['fn-run', []], ['q-run', [['', 'no workload']]]]) {
    const run = by(id).value || (by(id).length ? '' : DEFAULT_LOAD);
    options(by(id), [...first, ...known.workloads.map(name => [name, name])]);
    by(id).value = run;
  }
}

// Read a function: for the first time, or because its bytes or its probes have changed. Return
// whether it is shown: an answer that is late is not.
let lists = 0; // how often it was asked
async function list(name) {
  const mine = ++lists;
  let told;
  busy++;
  try {
    told = await ask('function', { id: session.id, name });
    if (told.module && !isFunction.has(`${told.module}:${told.function}`)) { await learn(true); }
    if (mine !== lists) { return false; }
    seen = told;
  } catch (error) {
    if (mine !== lists) { return false; }
    say(error.message);
    if (error.status === 404) { // else the guest has ended, and its last counts stay
      seen = null;
      ['fn-title', 'fn-rows', 'fn-source'].forEach(id => by(id).replaceChildren());
    }
    return false;
  } finally {
    busy--;
  }
  counts = {};
  for (const [i, row] of seen.rows.entries()) {
    if (row.probes.length) { counts[i] = [row.probes[0].hits, ...row.probes[0].missed]; }
  }
  draw();
  resume();
  return true;
}

function resume() {
  clearInterval(refreshing);
  refreshing = setInterval(refresh, REFRESH_MS);
}

let asking = false;
async function refresh() {
  if (asking || busy || document.hidden || by('function').hidden || !seen) { return; }
  asking = true;
  const shown = seen;
  try {
    const news = await ask('counts', { id: session.id });
    if (seen === shown && !busy) { // else the user has gone on meanwhile
      if (news.stale || news.of !== seen.asked) {
        await list(seen.asked);
      } else {
        drawCounts(news.rows);
      }
      if (by('fn-threads').open) { drawThreads((await ask('threads', { id: session.id })).rows); }
    }
  } catch (error) {
    clearInterval(refreshing);
    say(error.message);
  }
  asking = false;
}

function tellCounted() {
  say(`${seen.rows.filter(row => row.probes.length).length} of ${seen.rows.length} ` +
    `${seen.file ? 'functions' : 'instructions'} are counted`);
}

// Do something that changes probes, then show what has become of the function.
async function change(fn) {
  busy++;
  const said = await fn().catch(error => error.message);
  if (seen && await list(seen.asked)) {
    if (said) { say(said); } else { tellCounted(); }
    toAddress();
  }
  busy--;
}

// ---- drawing

function draw() {
  const focus = document.activeElement && document.activeElement.id;
  by('fn-title').replaceChildren(element('code', { textContent: seen.function }),
    seen.file ? `: ${seen.rows.length} functions` : `: ${seen.size} bytes at 0x${seen.address}`);
  by('fn-optimize').checked = seen.optimize;
  options(by('fn-engine'), seen.engines.map(name => [name, name]));
  by('fn-engine').value = seen.engine;
  const path = !seen.file && !seen.module && seen.source.length ? seen.source[0].path : '';
  by('fn-file').textContent = path ? `Count the functions of ${path.split('/').pop()}` : '';
  by('fn-all').textContent = seen.file ? 'Count every function' : 'Count every instruction';
  by('fn-file').hidden = !path;
  by('fn-file').dataset.path = path;
  by('fn-rows').replaceChildren(...seen.rows.flatMap((row, i) => drawRow(row, i)));
  by('fn-source').replaceChildren(...seen.source.map(drawSource));
  [...unfolded].forEach(i => unfold(i));
  drawCounts(counts, true);
  if (focus && by(focus)) { by(focus).focus(); }
}

// The byte @k of an instruction that has a probe itself may also be read by a jump in front.
const isRead = (row, i, k) => !seen.file && row.probes.length > 0 &&
  seen.rows.slice(Math.max(0, i - JUMP_LEN), i)
    .some(one => one.jump && row.offset + k < one.offset + JUMP_LEN);

function drawBytes(row, i) {
  const cell = element('td', { className: 'bytes' });
  for (let k = 0; k < row.owners.length; k++) {
    const owner = row.owners[k], read = owner !== 'r' && isRead(row, i, k);
    cell.append(element('span', {
      className: `o-${owner.replace('-', 'o')}${read ? ' read' : ''}`,
      title: OWNERS[owner] + (read ? `, ${OWNERS.r}` : ''),
      textContent: row.now.slice(2 * k, 2 * k + 2) }), ' ');
  }
  return cell;
}

// The parts of a text; those that @pattern finds and that name a function lead to it.
const linked = (text, pattern) => text.split(pattern).map(part => isFunction.has(part)
  ? element('a', { href: `#function=${part}`, textContent: part }) : part);

function drawRow(row, i) {
  const mine = own(row), at = place(row);
  const toggle = element('button', { id: `fn-at-${i}`, className: 'stop',
    textContent: mine ? '●' : '○' });
  toggle.setAttribute('aria-pressed', Boolean(mine));
  toggle.setAttribute('aria-label', row.refused ? `${at} cannot be probed: ${row.refused}`
    : `probe at ${at}: ${row.text}`);
  if (row.refused && !row.probes.length) { toggle.setAttribute('aria-disabled', true); }
  toggle.addEventListener('click', () => flip(i));
  const fold = element('button', { id: `fn-fold-${i}`, className: 'fold', textContent: '▸',
    tabIndex: -1, hidden: !row.probes.length });
  fold.setAttribute('aria-expanded', false);
  fold.setAttribute('aria-label', `what a hit of ${at} executes`);
  fold.addEventListener('click', () => unfolded.has(i) ? foldUp(i) : unfold(i));
  const way = row.refused ? row.refused : row.tier
    ? row.tier + (row.jump ? `, ${row.jump}` : '') : '';
  const line = element('tr', { id: `fn-row-${i}`, className: row.refused ? 'refused' : '' },
    element('td', {}, toggle, fold),
    element('td', { title: `0x${row.address}` }, ...(seen.file ? linked(row.function, NAME)
      : [`+${hex(row.offset)}`])),
    element('td', { className: 'count' }),
    element('td', { className: 'original', textContent: spaced(row.original) }),
    drawBytes(row, i),
    element('td', { className: 'text' }, ...linked(row.text, OPERAND)),
    element('td', { textContent: way, className: 'way', title: row.no_jump || '' }),
    element('td', { className: 'missed' }));
  line.addEventListener('mouseenter', () => mark(row));
  line.addEventListener('focusin', () => { chosen = i; mark(row); });
  return [line, element('tr', { id: `fn-path-${i}`, hidden: true, className: 'path' })];
}

function drawSource(piece) {
  const list = element('ol', { start: piece.first }, ...piece.lines.map((text, k) => {
    const line = piece.first + k;
    const item = element('li', { textContent: text || ' ' });
    item.dataset.at = `${piece.path}:${line}`;
    if (seen.rows.some(row => row.path === piece.path && row.line === line)) {
      item.className = 'compiled';
      item.addEventListener('mouseenter', () => mark({ path: piece.path, line }));
      item.addEventListener('click', () => {
        const first = seen.rows.findIndex(row => row.path === piece.path && row.line === line);
        by(`fn-at-${first}`).focus();
      });
    }
    return item;
  }));
  return element('figure', {},
    element('figcaption', {}, piece.path.startsWith('..') ? piece.path.split('/').pop()
      : element('a', { href: `#${piece.path}`, textContent: piece.path })),
    list);
}

// ---- films

let filmed = null; // the names of all films, as soon as they are there
async function showFilms() {
  const name = fromAddress().get('film');
  if (name === null) { return; }
  by('film').append(by('player'));
  const told = await ask('films');
  filmed = told.names;
  loadFilms(told.films);
  choose(Math.max(0, filmed.indexOf(name)));
}

// A film of the marked instruction: a probe comes and goes. The bytes of the listing move with it.
async function record() {
  const row = seen.rows[chosen];
  if (!row || row.refused) { say('mark an instruction that can be probed'); return; }
  say(`filming ${place(row)}`);
  await change(async () => {
    const one = await ask('record',
      { id: session.id, place: place(row), run: by('fn-run').value });
    by('fn-film').append(by('player'));
    loadFilms([one]);
    by('play').focus();
    return `a film of ${place(row)}: press Play`;
  });
  by('fn-film').scrollIntoView();
}

document.addEventListener('frame', event => {
  const { film: one, frame } = event.detail;
  if (!seen || !by('fn-film').contains(by('player'))) { return; }
  const found = /\+(0x[0-9a-f]+|\d+)$/.exec(one.at), first = Number(found ? found[1] : 0);
  const memory = frame.cells.filter(([name]) => name[0] === 'm').map(([, text]) => text);
  seen.rows.forEach((row, i) => {
    by(`fn-row-${i}`).querySelectorAll('.bytes span').forEach((cell, k) => {
      const byte = memory[row.offset + k - first];
      cell.classList.toggle('filmed', byte !== undefined);
      if (byte !== undefined) { cell.textContent = byte; }
    });
  });
});

// Show which line and which instructions belong together.
function mark(what) {
  const at = `${what.path}:${what.line}`;
  by('fn-source').querySelectorAll('li').forEach(item => {
    item.classList.toggle('marked', item.dataset.at === at);
  });
  seen.rows.forEach((row, i) => {
    by(`fn-row-${i}`).classList.toggle('marked', `${row.path}:${row.line}` === at);
  });
}

let drawn = 0; // when counts were drawn last, in ms
function drawCounts(news, isFirst) {
  const passed = performance.now() - drawn;
  drawn += passed;
  by('fn-rows').querySelectorAll('.glows').forEach(cell => {
    cell.classList.remove('glows');
    cell.removeAttribute('title');
  });
  for (const [i, row] of Object.entries(news)) {
    const line = by(`fn-row-${i}`), [hits, ...missed] = row;
    const cell = line.querySelector('.count');
    const rate = (hits - (counts[i] ? counts[i][0] : 0)) * 1000 / passed;
    cell.textContent = hits.toLocaleString('en');
    line.querySelector('.missed').textContent = missed.map((n, k) => n && `${n} ${seen.causes[k]}`).filter(Boolean)
      .join(', ');
    if (!isFirst && rate > 0) {
      cell.classList.add('glows');
      cell.style.setProperty('--glow', Math.min(1, Math.log10(1 + rate) / 5));
      cell.title = `${Math.round(rate)} a second`;
    }
    counts[i] = row;
  }
}

// The threads, read from memory like the counts.
function drawThreads(rows) {
  by('fn-ps').replaceChildren(...rows.map(row => element('tr', {},
    ...row.map(text => element('td', { textContent: text })))));
}

// ---- what a hit executes

async function unfold(i) {
  const shown = seen;
  const { parts } = await ask('path', { id: session.id, row: i })
    .catch(error => { say(error.message); return {}; });
  if (!parts || seen !== shown) { return; }
  const steps = parts.flatMap(part => [
    element('h2', { textContent: part.what }),
    element('ol', {}, ...part.steps.map(step =>
      element('li', { tabIndex: -1, className: 'stop' },
        ...(step.address ? [element('code', { textContent: `0x${step.address}` }), ' '] : []),
        element('code', {}, ...linked(step.text, OPERAND)))))]);
  const more = element('details', {}, element('summary', { textContent: 'probe explain' }));
  more.addEventListener('toggle', async () => {
    if (more.open && more.children.length === 1) {
      more.append(element('pre', { textContent:
        await inGuest(`probe explain -v ${place(seen.rows[i])}`) }));
    }
  });
  by(`fn-path-${i}`).replaceChildren(element('td', { colSpan: 8 }, ...steps, more));
  unfolded.add(i);
  showFold(i, true);
}

function foldUp(i) {
  unfolded.delete(i);
  showFold(i, false);
}

function showFold(i, isOpen) {
  by(`fn-path-${i}`).hidden = !isOpen;
  by(`fn-fold-${i}`).setAttribute('aria-expanded', isOpen);
  by(`fn-fold-${i}`).textContent = isOpen ? '▾' : '▸';
  toAddress();
}

// ---- what the user does

// Every instruction of a function, or every function of a file.
const countAll = () => inGuest('probe all ' + (seen.module ? `${seen.module}:` : '') +
  seen.function + (seen.file ? ' --entries' : ''));

function flip(i) {
  const row = seen.rows[i], mine = own(row);
  if (row.refused) { say(`${place(row)}: ${row.refused}`); return; }
  change(() => inGuest(mine ? `probe del ${mine.name}` : `probe add ${place(row)}`));
}

// Run the workload on the console, where one sees it, as soon as the prompt is there. @part: of
// the page that has the workload, "again and again" and a line for remarks.
let repeating = null;
function runLoad(part) {
  const name = by(`${part}-run`).value, said = by(`${part}-said`);
  const waiting = 'waiting for the prompt of the console';
  let typed = null; // the line of the console where it was typed last; lines move, and go
  const run = () => {
    const { row, text } = lastLine();
    if (typed && !by(`${part}-again`).checked) { clearInterval(repeating); return; }
    if (text !== 'sonde>' || typed && row === typed.line) { return; }
    if (said.textContent === waiting) { said.textContent = ''; }
    type(`run ${name}\r`);
    typed = terminal.registerMarker();
  };
  clearInterval(repeating);
  if (!name) { return; }
  repeating = setInterval(run, 300);
  run();
  if (!typed) { said.textContent = waiting; }
}

function lastLine() {
  const buffer = terminal.buffer.active, row = buffer.baseY + buffer.cursorY;
  return { row, text: buffer.getLine(row).translateToString(true).trim() };
}

const switchTo = (file, value) => change(async () => {
  await inGuest(`echo ${value} > ${file}`);
  return `${file} is ${value}`;
});

// Arrows move along the instructions and the steps of what is unfolded.
by('function').addEventListener('keydown', event => {
  const here = event.target.closest('.stop');
  if (!here) { return; }
  const row = /^fn-at-(\d+)$/.exec(here.id);
  const stops = [...by('fn-rows').querySelectorAll('.stop')]
    .filter(node => !node.closest('[hidden]'));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    const next = stops[stops.indexOf(here) + step];
    if (next) { next.focus(); next.scrollIntoView({ block: 'nearest' }); }
  } else if (event.key === 'ArrowRight' && row && seen.rows[row[1]].probes.length) {
    unfold(Number(row[1]));
  } else if (event.key === 'ArrowLeft') {
    const i = row ? Number(row[1]) : Number(here.closest('tr').id.slice('fn-path-'.length));
    by(`fn-at-${i}`).focus();
    foldUp(i);
  } else {
    return;
  }
  event.preventDefault();
});

by('fn-search').addEventListener('submit', event => {
  event.preventDefault();
  location.hash = `#function=${by('fn-name').value.trim()}`;
});
by('fn-name').addEventListener('focus', () => session && learn(true)); // modules come and go
by('fn-name').addEventListener('input', event => {
  // A choice from the list of completions, not a key.
  if (!event.inputType || event.inputType === 'insertReplacementText') {
    by('fn-search').requestSubmit();
  }
});
by('fn-all').addEventListener('click', () => change(countAll));
by('fn-file').addEventListener('click', () => {
  location.hash = `#function=${by('fn-file').dataset.path}&all=1`;
});
by('fn-none').addEventListener('click', () => change(() => inGuest('probe del all')));
by('fn-record').addEventListener('click', record);
by('fn-start').addEventListener('click', () => {
  toAddress();
  runLoad('fn');
});
by('fn-run').addEventListener('change', toAddress);
by('fn-optimize').addEventListener('change', event =>
  switchTo(OPTIMIZATION, event.target.checked ? 1 : 0));
by('fn-engine').addEventListener('change', event => switchTo(ENGINE, event.target.value));

// A click on the name of a function in the console leads to it.
terminal.registerLinkProvider({
  provideLinks(y, callback) {
    const line = terminal.buffer.active.getLine(y - 1);
    const text = line ? line.translateToString(true) : '';
    callback([...text.matchAll(NAME)].filter(found => isFunction.has(found[0]))
      .map(found => ({ text: found[0],
        range: { start: { x: found.index + 1, y }, end: { x: found.index + found[0].length, y } },
        activate: () => { location.hash = `#function=${found[0]}`; } })));
  },
});
