'use strict';
// document.js - the task and what it leads to: documents and sources of the tree. The part of
// the address behind # says which, so the browser's own way back works.

const element = (tag, more, ...children) => {
  const node = Object.assign(document.createElement(tag), more);
  node.append(...children);
  return node;
};

// As GitHub names headings.
const slug = text => text.toLowerCase().replace(/[^\w\- ]/g, '').replace(/ /g, '-');

// Where a link in the document @base leads: another site, a view (#function=...), or
// #PATH#HEADING.
function target(base, link) {
  if (/^([a-z]+:|#\w+=)/i.test(link)) { return link; }
  const url = new URL(link, `http://tree/${base}`);
  return `#${url.pathname.slice(1)}${url.hash}`;
}

const IS_PATH = /^(docs|drivers|kernel|libc|probes|tests)\/[\w./-]+$/;

function link(node, base) {
  node.setAttribute('href', target(base, node.getAttribute('href')));
  if (!node.getAttribute('href').startsWith('#')) {
    node.target = '_blank';
    node.rel = 'noopener noreferrer';
  }
}

// The name of a file is a link to it, the name of a function to its instructions.
function linkPath(code) {
  const text = code.textContent;
  if (code.closest('pre, a') || !IS_PATH.test(text) && !isFunction.has(text)) { return; }
  const node = element('a',
    { href: isFunction.has(text) ? `#function=${text}` : `#${text}` });
  code.replaceWith(node);
  node.append(code);
}

// What an example types on the console can be typed by a click.
function runnable(code) {
  const lines = code.textContent.split('\n').filter(line => line.startsWith('sonde> '))
    .map(line => line.slice('sonde> '.length));
  if (!lines.length) { return; }
  const button = element('button', { textContent: 'Run it here', className: 'run-here' });
  button.addEventListener('click', () => {
    type(lines.map(line => `${line}\r`).join(''));
    by('terminal').scrollIntoView({ block: 'nearest' });
  });
  code.closest('pre').after(button);
}

// Show the text of the file @name in @place.
function showDocument(place, name, text) {
  place.dataset.name = name;
  if (!name.endsWith('.md')) {
    place.replaceChildren(element('h1', { textContent: name }),
      element('pre', { textContent: text, tabIndex: 0 }));
    return;
  }
  place.innerHTML = marked.parse(text);
  place.querySelectorAll('h1, h2, h3, h4').forEach(node => { node.id = `in-${slug(node.textContent)}`; });
  place.querySelectorAll('a[href]').forEach(node => link(node, name));
  place.querySelectorAll('code').forEach(linkPath);
  place.querySelectorAll('pre > code').forEach(runnable);
  place.querySelectorAll('pre, table').forEach(node => { node.tabIndex = 0; }); // they may scroll
  place.querySelectorAll('th:empty').forEach(node => node.replaceWith(element('td')));
  place.querySelectorAll('img').forEach(node => node.replaceWith(node.alt));
}
