'use strict';
// page.js - a console, a task, an editor. See web.py for what is asked of the server.

const by = id => document.getElementById(id);
const here = new URLSearchParams(location.search);
const terminal = new Terminal({ scrollback: 10000, fontSize: 13, reflowCursorLine: true,
  screenReaderMode: here.has('reader') });
const fit = new FitAddon.FitAddon();
const editor = CodeMirror(by('editor'), { lineNumbers: true, lineWrapping: true,
  indentUnit: 4, mode: 'text/x-csrc', extraKeys: { 'Ctrl-S': () => save() } });
// NASM's language, as far as colours need it.
CodeMirror.defineSimpleMode('nasm', { start: [
  { regex: /;.*/, token: 'comment' },
  { regex: /"[^"]*"|'[^']*'/, token: 'string' },
  { regex: /%\w+/, token: 'meta' },
  { regex: /[.$\w]+(?=:)/, token: 'def', sol: true },
  { regex: /(?:0x[\da-f]+|\d[\da-f]*h|\d+)\b/i, token: 'number' },
  { regex: /(?:section|global|extern|default|bits|align|d[bwdq]|res[bwdq]|equ|times|proc|endproc)\b/i,
    token: 'keyword' },
  { regex: /(?:r(?:[a-d]x|[sb]p|[sd]i|\d+[dwb]?)|e(?:[a-d]x|[sb]p|[sd]i)|[c-gs]s|[a-d][lhx])\b/i,
    token: 'variable-3' },
  { regex: /[.$\w]+|./ },
] });
const CHUNK = 512; // bytes in one message: a long paste comes in pieces
const CTRL_R = '\x12'; // the guest's line editor draws its line again
const LINE_COLUMNS = 80; // as wide as it takes the terminal to be
let lab = null, session = null, socket = null;
let since = 0; // when a connection was asked for, or was lost
let line = 'coming'; // the console: then 'there', 'lost', 'there' ..., 'over'
let ahead = ''; // what was typed while the console was coming
let columns = terminal.cols; // before they change
const saved = {}; // texts as the server has them
const texts = {}; // as they were edited
const refused = new Set(); // the next save replaces what was changed elsewhere
let opened = null; // the file in the editor

terminal.loadAddon(fit);
terminal.open(by('terminal'));
new ResizeObserver(() => fit.fit()).observe(by('terminal'));

function state(text) { by('state').textContent = text; document.body.dataset.state = text; }

// The address of what is asked of the server.
const addressOf = (what, more) =>
  `${what}?${new URLSearchParams({ token: here.get('token') || '', ...more })}`;

// The answer of the server. @tell: gets each part of an answer that comes in several.
async function ask(what, more, body, tell) {
  const reply = await fetch(addressOf(what, more),
    { method: 'POST', body: JSON.stringify(body || {}) });
  if (!reply.ok) {
    throw Object.assign(new Error((await reply.json()).error), { status: reply.status });
  }
  return lastOf(reply.body.pipeThrough(new TextDecoderStream()).getReader(), tell);
}

// The last of the lines of JSON that @reader reads.
async function lastOf(reader, tell) {
  for (let text = '', last; ;) {
    const { value, done } = await reader.read();
    const lines = (text + (value || '')).split('\n');
    text = done ? '' : lines.pop();
    for (const line of lines.filter(Boolean)) {
      last = JSON.parse(line);
      if (tell) { tell(last); }
    }
    if (done) { return last; }
  }
}

function options(select, rows) {
  select.replaceChildren(...rows.map(([value, text]) => new Option(text, value)));
  select.disabled = !rows.length;
}

// A sentence of the page's own, between the guest's lines.
function remark(text) { terminal.write(`\r\n\x1b[7m ${text} \x1b[0m\r\n`); }

function connect() {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const one = new WebSocket(`${scheme}://${location.host}/${addressOf('ws', { id: session.id })}`,
    ['binary']);
  one.binaryType = 'arraybuffer';
  socket = one;
  one.onopen = () => {
    const first = line === 'coming';
    line = 'there';
    state('connected');
    if (!first) { remark('Connected again. What the guest printed meanwhile is not shown.'); }
    // No Enter for a line that is half typed: the guest would run it.
    type(CTRL_R + (first ? ahead : ''));
    ahead = '';
  };
  one.onmessage = event => terminal.write(
    typeof event.data === 'string' ? event.data : new Uint8Array(event.data));
  one.onclose = event => {
    if (socket !== one) { return; }
    if (line === 'there') { since = Date.now(); }
    if (event.code === 1000 || event.code === 1011 ||
        Date.now() - since > 1000 * session.grace) {
      line = 'over';
      state('the guest has ended');
      by('again').hidden = false;
      return;
    }
    if (line === 'there') {
      line = 'lost';
      remark('The connection is lost. The last keys may not have arrived, and further ones '
        + 'are not sent until it is back.');
    }
    state('connecting again');
    setTimeout(connect, 300);
  };
}

// Keys wait for the first connection only. Behind a lost one there may be a hole in the line, and
// what follows a hole must not be run. websockify takes messages of bytes only.
function type(text) {
  if (line === 'coming') { ahead += text; }
  if (line !== 'there' || socket.readyState !== WebSocket.OPEN) { return; }
  const bytes = new TextEncoder().encode(text);
  for (let i = 0; i < bytes.length; i += CHUNK) { socket.send(bytes.slice(i, i + CHUNK)); }
}

terminal.onData(type);

// A line that was drawn in several rows is one row again, with the cursor in the middle of it.
terminal.onResize(({ cols }) => {
  if (cols >= LINE_COLUMNS && columns < LINE_COLUMNS) { type(CTRL_R); }
  columns = cols;
});

// Show the lab that the address names: task, files and points need no guest.
async function showLab() {
  try {
    lab = await ask('lab', { lab: here.get('lab') || '' });
  } catch (error) {
    state(error.message);
    return false;
  }
  options(by('labs'), [['', 'none'], ...lab.labs.map(([n, name]) => [n, `${n} ${name}`])]);
  const number = lab.labs.find(row => row[1] === lab.lab);
  by('labs').value = number ? number[0] : '';
  Object.assign(saved, lab.files);
  options(by('files'), [...Object.keys(lab.files), ...Object.keys(lab.headers)]
    .map(name => [name, name]));
  options(by('modules'), lab.modules.map(name => [name, name]));
  by('grade').disabled = !lab.lab;
  by('loading').hidden = !lab.modules.length;
  document.body.classList.toggle('no-lab', !lab.lab);
  document.body.classList.toggle('on-host', Boolean(lab.lab) && !lab.modules.length);
  by('save').disabled = !Object.keys(lab.files).length;
  if (by('files').value) { open(by('files').value); }
  return true;
}

async function start() {
  by('again').hidden = true;
  line = 'coming';
  state('starting');
  try {
    session = await ask('start');
  } catch (error) {
    state(error.message);
    by('again').hidden = false;
    return;
  }
  since = Date.now();
  seen = known = learning = null; // of an earlier guest
  connect();
  showPlace();
}

// The names of files that are not saved as they are edited.
function changed() {
  if (opened in saved) { texts[opened] = editor.getValue(); }
  return Object.keys(texts).filter(name => texts[name] !== saved[name]);
}

function open(name) {
  changed();
  opened = name;
  editor.setValue(texts[name] ?? saved[name] ?? lab.headers[name]);
  editor.setOption('readOnly', !(name in saved));
  editor.setOption('screenReaderLabel', `text of ${name}`);
  editor.setOption('mode', /\.[ch]$/.test(name) ? 'text/x-csrc'
    : /\.asm$/.test(name) ? 'nasm' : null);
  editor.clearHistory();
  by('about').textContent = name in saved ? 'Ctrl-S saves, too' :
    'The lab brings this file; it cannot be changed';
}

// What was printed. A case that failed gets a button that shows it.
function tell(text) {
  by('result').replaceChildren(...text.split(/(again: .* --seed \d+ --case \d+)/).map(part => {
    const found = /^again: .* --seed (\d+) --case (\d+)$/.exec(part);
    if (!found) { return part; }
    const button = element('button', { textContent: `Show case ${found[2]}` });
    const shown = element('div');
    button.addEventListener('click', async () => {
      shown.textContent = '...';
      shown.textContent = (await ask('grade',
        { lab: lab.lab, seed: found[1], case: found[2] })
        .catch(error => ({ output: error.message }))).output;
    });
    return element('span', {}, button, shown);
  }));
}

async function work(button, fn) {
  by(button).disabled = true;
  tell('...');
  tell(await fn().catch(error => error.message));
  by(button).disabled = false;
}

async function saveOne(name) {
  const text = texts[name];
  try {
    await ask('save', { lab: lab.lab, name },
      { was: refused.has(name) ? null : saved[name], text });
  } catch (error) {
    if (error.message.includes('elsewhere')) { refused.add(name); }
    throw error;
  }
  refused.delete(name);
  saved[name] = text;
}

async function save() {
  await work('save', async () => {
    const names = changed();
    for (const name of names) { await saveOne(name); }
    return names.length ? `saved: ${names.join(', ')}` : 'nothing has changed';
  });
}

async function run(what, more) {
  if (changed().length) {
    await save();
    if (changed().length) { return; }
  }
  await work(what, async () => {
    const done = await ask(what,
      { id: session ? session.id : '', lab: lab.lab, name: by('modules').value, ...more }, {},
      part => { if (part.running) { tell(part.running); } });
    return done.output + (what === 'load' && !done.status ? 'loaded\n' : '');
  });
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch (error) { return text; }
}

// The task, or what stands behind the # of the address.
async function showPlace() {
  showParts();
  await showFunction();
  await showFilms();
  await showQuestion();
  if (PARTS.some(part => fromAddress().has(part))) { return; }
  const { hash } = location, [name, heading] = decoded(hash.slice(1)).split('#');
  const place = by('task'), isTask = !name || name === lab.name;
  by('home').hidden = isTask;
  if (place.dataset.name !== (isTask ? lab.name : name)) {
    const shown = isTask ? { name: lab.name, text: lab.task }
      : await ask('read', { name }).catch(error => ({ name: 'error.md', text: error.message }));
    if (location.hash !== hash) { return; } // the user has gone on
    showDocument(place, shown.name, shown.text);
    place.scrollTop = 0;
  }
  const at = heading && by(`in-${heading}`);
  if (at) { at.scrollIntoView(); }
  if (session) {
    await learn(); // only then it is known which words are functions
    place.querySelectorAll('code').forEach(code => linkPath(code));
  }
}

window.addEventListener('hashchange', showPlace);
window.addEventListener('beforeunload', event => {
  if (changed().length) { event.preventDefault(); }
});
by('files').addEventListener('change', () => open(by('files').value));
by('labs').addEventListener('change', () => {
  here.set('lab', by('labs').value);
  location.search = here;
});
by('save').addEventListener('click', save);
by('grade').addEventListener('click', () => run('grade'));
by('load').addEventListener('click', () => run('load'));
by('again').addEventListener('click', () => { terminal.reset(); start(); });

// All that the console has shown, for tests.
function shown() {
  const buffer = terminal.buffer.active, lines = [];
  for (let i = 0; i < buffer.length; i++) {
    const line = buffer.getLine(i), text = line.translateToString(true);
    if (line.isWrapped) { lines[lines.length - 1] += text; } else { lines.push(text); }
  }
  return lines.join('\n').trimEnd();
}

// Another page gets the guest of this one at once, without waiting for the grace.
window.addEventListener('pagehide', () => {
  navigator.sendBeacon(addressOf('leave', { id: session ? session.id : '' }));
});
window.addEventListener('pageshow', event => { if (event.persisted) { location.reload(); } });
window.addEventListener('DOMContentLoaded', () => {
  showLab().then(ok => { if (ok) { showPlace(); start(); } });
  if (!PARTS.some(part => fromAddress().has(part))) { terminal.focus(); }
});
