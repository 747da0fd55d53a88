'use strict';
// page.js - shows the typed bytes: boundaries, classes, and the jump that is planned.

const by = id => document.getElementById(id);
const RUNGS = {
  direct: 'reaches the detour by itself', call: 'a call with another displacement',
  plain: 'the bytes behind it are the rest of its displacement',
  padded: 'prefixes in front, so that other bytes are its displacement',
  far: 'goes to a pad',
};
let decoder = null, chosen = 0;

function element(name, attributes, text) {
  const one = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
  if (text !== undefined) { one.textContent = text; }
  return one;
}

const hex = byte => byte.toString(16).padStart(2, '0');

function drawBytes(bytes, insns) {
  by('bytes').replaceChildren(...insns.map((insn, i) => {
    const length = insn.length || 1;
    const some = bytes.slice(insn.offset, insn.offset + length).map(hex).join(' ');
    const box = element('button', { class: `insn c${i % 2}${insn.length ? '' : ' bad'}` +
      (i === chosen ? ' on' : ''), 'aria-pressed': i === chosen }, some);
    box.addEventListener('click', () => { chosen = i; show(); by('bytes').children[i].focus(); });
    return box;
  }));
}

function row(insn) {
  const one = element('tr', {});
  const plan = insn.plan;
  const cells = insn.length ? [`+${insn.offset}`, insn.length, insn.name || '-', insn.kind,
    insn.class, plan.rung] : [`+${insn.offset}`, '', 'no instruction', '', '', ''];
  cells.forEach(cell => one.append(element('td', {}, cell)));
  return one;
}

// Below the plan: the bytes of text, of which some are written and some are only read.
function drawPlan(bytes, insn) {
  const out = by('plan');
  out.replaceChildren();
  if (!insn) { return; }
  if (!insn.length) {
    out.append(element('p', {}, 'No processor has an instruction that begins like this.'));
    return;
  }
  const plan = insn.plan;
  if (plan.rung === 'none') {
    out.append(element('p', {}, `No jump: ${plan.why}. A breakpoint is what is left.`));
    return;
  }
  out.append(element('p', {}, `${plan.rung}: ${RUNGS[plan.rung]}` +
    (plan.pad ? `; it lands on a pad at ${plan.pad}` : '') + '.'));
  const now = bytes.map(hex), kinds = now.map(() => '');
  [{ offset: insn.offset, bytes: plan.jump }, ...plan.evicted].forEach((jump, i) => {
    jump.bytes.forEach((byte, j) => {
      now[jump.offset + j] = byte;
      kinds[jump.offset + j] = i ? 'evicted' : 'written';
    });
  });
  for (let i = 0; i < plan.pinned; i++) {
    const at = insn.offset + plan.jump.length + i;
    kinds[at] = kinds[at] || 'pinned';
  }
  const line = element('p', { class: 'text' });
  now.forEach((byte, i) => line.append(element('span', { class: `byte ${kinds[i]}` }, byte)));
  out.append(line);
  const words = [`written: ${plan.jump.join(' ')}`];
  if (plan.pinned) { words.push(`read as displacement, unchanged: ${plan.pinned} bytes`); }
  if (plan.evicted.length) {
    words.push(`made jumps as well: ${plan.evicted.map(jump => '+' + jump.offset).join(', ')}`);
  }
  out.append(element('p', {}, words.join('; ')));
}

function show() {
  const { bytes, error } = bytesOf(by('input').value);
  by('error').textContent = error || '';
  if (error || !decoder) { return; }
  const insns = decoder.decode(bytes, by('evict').checked);
  const some = bytes.slice(0, insns.length ? insns.at(-1).offset + (insns.at(-1).length || 1) : 0);
  chosen = Math.min(chosen, Math.max(insns.length - 1, 0));
  by('error').textContent = some.length < bytes.length ? `only ${some.length} bytes are shown` : '';
  drawBytes(some, insns);
  by('rows').replaceChildren(...insns.map(row));
  drawPlan(some, insns[chosen]);
  document.body.dataset.count = insns.length;
}

Decoder.load(Uint8Array.from(atob(WASM), c => c.charCodeAt(0))).then(loaded => {
  decoder = loaded;
  const asked = decodeURIComponent(location.hash.slice(1));
  if (asked) { by('input').value = asked; }
  by('input').addEventListener('input', () => { chosen = 0; show(); });
  by('evict').addEventListener('change', show);
  show();
});
