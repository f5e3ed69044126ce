'use strict';

// Elements are made from text, never from markup: what a network calls its nodes is shown, not run.
function el(tag, attrs, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'text') node.textContent = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const byId = (id) => document.getElementById(id);
const clamp = (value, lo, hi) => Math.min(hi, Math.max(lo, value));

function significant(value, digits) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(clamp(digits - whole, 0, 9));
}
function seconds(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1) return significant(value, 4) + ' s';
  if (size >= 1e-3) return significant(value * 1e3, 4) + ' ms';
  if (size >= 1e-6 || size === 0) return significant(value * 1e6, 4) + ' µs';
  return significant(value * 1e9, 3) + ' ns';
}
function scaled(value, unit, base, prefixes) {
  if (!Number.isFinite(value)) return '–';
  let k = 0;
  while (Math.abs(value) >= base && k + 1 < prefixes.length) { value /= base; ++k; }
  return significant(value, 3) + ' ' + prefixes[k] + unit;
}
const count = (value, unit) => scaled(value, unit || '', 1000, ['', 'k', 'M', 'G', 'T', 'P']);
const bytes = (value) => scaled(value, 'B', 1024, ['', 'Ki', 'Mi', 'Gi', 'Ti']);
const rate = (amount, time, unit) => (time > 0 && amount > 0 ? count(amount / time, unit) : '–');
const percent = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : '–');
const typeText = (buffer) => buffer.dtype + '[' + buffer.shape.join(', ') + ']';

// One hue for each operator, the same in every part of the page; those that take most time are asked for first and
// lie furthest apart.
const hues = new Map();
function hueOf(op) {
  if (!hues.has(op)) hues.set(op, Math.round(212 + hues.size * 137.508) % 360);
  return hues.get(op);
}
const isDark = () => document.documentElement.dataset.theme === 'dark';
// Asked for very often while something is drawn: kept until the theme changes.
const colours = new Map();
const forgetColours = () => colours.clear();
function kept(key, make) {
  let value = colours.get(key);
  if (value === undefined) colours.set(key, value = make());
  return value;
}
const colourOf = (op) => kept('op ' + op, () => `hsl(${hueOf(op)} ${isDark() ? 42 : 52}% ${isDark() ? 46 : 62}%)`);
const css = (name) => kept(name, () => getComputedStyle(document.documentElement).getPropertyValue(name).trim());

function showTip(text, x, y) {
  const tip = byId('tip');
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = clamp(x + 14, 4, innerWidth - box.width - 4) + 'px';
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + 'px';
}
const hideTip = () => { byId('tip').hidden = true; };
