'use strict';
// decode.js - calls decode.c, and reads its lines. For the page and for node.

function bytesOf(text) {
  const digits = text.replace(/0x|[\s,;\\x]/gi, '');
  const wrong = digits.search(/[^0-9a-f]/i);
  if (wrong >= 0) { return { error: `"${digits[wrong]}" is no hexadecimal digit` }; }
  if (digits.length % 2) { return { error: 'the last byte has one digit only' }; }
  return { bytes: (digits.match(/../g) || []).map(two => parseInt(two, 16)) };
}

function jumpOf(text) {
  const at = text.indexOf(' ');
  return { offset: Number(text.slice(0, at)), bytes: text.slice(at + 1).split(' ') };
}

function insnOf(line) {
  const [head, name, rung, jump, pinned, pad, evicted] = line.split('|');
  const [offset, length, kind, kindClass] = head.split(' ');
  const insn = { offset: Number(offset), length: Number(length), kind, class: kindClass, name };
  if (!insn.length) { return insn; }
  insn.plan = rung === 'none' ? { rung, why: jump } : {
    rung, jump: jumpOf(jump).bytes, pinned: Number(pinned),
    pad: parseInt(pad, 16) ? 'ffffffff' + pad : '',
    evicted: evicted ? evicted.split(',').map(jumpOf) : [],
  };
  return insn;
}

class Decoder {
  constructor(instance) { this.calls = instance.exports; }

  static async load(binary) {
    const { instance } = await WebAssembly.instantiate(binary, {});
    return new Decoder(instance);
  }

  text(bytes, mayEvict) {
    const memory = new Uint8Array(this.calls.memory.buffer);
    const some = bytes.slice(0, this.calls.decode_max());
    memory.set(some, this.calls.decode_input());
    this.calls.decode(some.length, mayEvict ? 1 : 0);
    const start = this.calls.decode_output();
    return new TextDecoder().decode(memory.subarray(start, memory.indexOf(0, start)));
  }

  decode(bytes, mayEvict = true) {
    return this.text(bytes, mayEvict).split('\n').filter(line => line).map(insnOf);
  }
}

if (typeof module !== 'undefined') { module.exports = { Decoder, bytesOf }; }
