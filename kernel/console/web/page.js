'use strict';
// page.js - a console, a task, an editor. See web.py for what is asked of the server.

const by = id => document.getElementById(id);
const here = new URLSearchParams(location.search);
const terminal = new Terminal({ scrollback: 10000, screenReaderMode: here.has('reader') });
const fit = new FitAddon.FitAddon();
const editor = CodeMirror(by('editor'), { lineNumbers: true, indentUnit: 4,
  mode: 'text/x-csrc', extraKeys: { 'Ctrl-S': () => save() } });
const CHUNK = 512; // bytes in one message: a long paste comes in pieces
let session = null, socket = null, tries = 0;
const saved = {}; // texts as the server has them

terminal.loadAddon(fit);
terminal.open(by('terminal'));
window.addEventListener('resize', () => fit.fit());
fit.fit();

function state(text) { by('state').textContent = text; document.body.dataset.state = text; }

async function ask(what, more, body) {
  const query = new URLSearchParams(more);
  if (here.has('token')) { query.set('token', here.get('token')); }
  const reply = await fetch(`${what}?${query}`,
    { method: 'POST', body: JSON.stringify(body || {}) });
  const data = await reply.json();
  if (!reply.ok) { throw new Error(data.error); }
  return data;
}

function options(select, rows) {
  select.replaceChildren(...rows.map(([value, text]) => new Option(text, value)));
  select.disabled = !rows.length;
}

function connect() {
  const query = new URLSearchParams({ id: session.id });
  if (here.has('token')) { query.set('token', here.get('token')); }
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const one = new WebSocket(`${scheme}://${location.host}/ws?${query}`, ['binary']);
  one.binaryType = 'arraybuffer';
  socket = one;
  one.onopen = () => { tries = 0; state('connected'); type('\r'); };
  one.onmessage = event => terminal.write(
    typeof event.data === 'string' ? event.data : new Uint8Array(event.data));
  one.onclose = event => {
    if (socket !== one) { return; }
    if (event.code === 1000 || event.code === 1011 || ++tries > 20) {
      state('the guest has ended');
      by('again').hidden = false;
    } else {
      state('connecting again');
      setTimeout(connect, 300);
    }
  };
}

// websockify takes messages of bytes only.
function type(text) {
  if (!socket || socket.readyState !== WebSocket.OPEN) { return; }
  const bytes = new TextEncoder().encode(text);
  for (let i = 0; i < bytes.length; i += CHUNK) { socket.send(bytes.slice(i, i + CHUNK)); }
}

terminal.onData(type);

async function start() {
  const lab = here.get('lab') || '';
  by('again').hidden = true;
  state('starting');
  try {
    session = await ask('start', { lab });
  } catch (error) {
    state(error.message);
    by('again').hidden = false;
    return;
  }
  by('task').textContent = session.task;
  options(by('labs'), [['', 'none'], ...session.labs.map(([n, name]) => [n, `${n} ${name}`])]);
  const number = session.labs.find(row => row[1] === session.lab);
  by('labs').value = number ? number[0] : '';
  Object.assign(saved, session.files);
  options(by('files'), Object.keys(session.files).map(name => [name, name]));
  options(by('modules'), session.modules.map(name => [name, name]));
  by('grade').disabled = !session.lab;
  by('load').disabled = !session.modules.length;
  by('save').disabled = !Object.keys(session.files).length;
  if (by('files').value) { open(by('files').value); }
  connect();
}

let opened = null;
const texts = {}; // of files that are not on the screen

function open(name) {
  if (opened) { texts[opened] = editor.getValue(); }
  opened = name;
  editor.setValue(name in texts ? texts[name] : saved[name]);
  editor.clearHistory();
}

async function work(button, fn) {
  by(button).disabled = true;
  by('result').textContent = '...';
  try {
    by('result').textContent = await fn();
  } catch (error) {
    by('result').textContent = error.message;
  }
  by(button).disabled = false;
}

let force = false; // the next save replaces what was changed elsewhere

async function save() {
  await work('save', async () => {
    const text = editor.getValue();
    try {
      await ask('save', { id: session.id, name: opened },
        { was: force ? null : saved[opened], text });
    } catch (error) {
      force = error.message.includes('elsewhere');
      throw error;
    }
    force = false;
    saved[opened] = text;
    return `${opened} is saved`;
  });
}

async function run(what) {
  if (opened && editor.getValue() !== saved[opened]) { await save(); }
  if (opened && editor.getValue() !== saved[opened]) { return; }
  await work(what, async () => {
    const done = await ask(what, { id: session.id, name: by('modules').value });
    return done.output + (what === 'load' && !done.status ? 'loaded\n' : '');
  });
}

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
    const line = buffer.getLine(i);
    const text = line.translateToString(true);
    if (line.isWrapped) { lines[lines.length - 1] += text; } else { lines.push(text); }
  }
  return lines.join('\n').trimEnd();
}

start();
terminal.focus();
