// Plot: a frame of two axes with their units, as SVG, drawn anew when its width changes.
// SPDX-License-Identifier: Apache-2.0

const PLOT_HEIGHT = 260; // pixels between the axes
const PLOT_EDGES = { left: 62, right: 16, top: 26, bottom: 44 };
const LETTER = 6.5; // width of one, about
const MOST_NAMES = 40; // below an axis
const SLANT = 96; // pixels below an axis for names that do not fit side by side
// Those of Okabe and Ito that are seen on white and on black.
const CURVE_COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9',
  'var(--curve-black)', '#999999'];
const CURVE_DASHES = ['', '7 3', '2 2', '9 3 2 3'];

function curveLook(i) {
  const count = CURVE_COLOURS.length;
  const dash = CURVE_DASHES[Math.floor(i / count) % CURVE_DASHES.length];
  return { colour: CURVE_COLOURS[i % count], dash };
}

// The page names no address, so the name of SVG's elements is asked of the browser.
const SVG_NAMES = (() => {
  const template = document.createElement('template');
  template.innerHTML = '<svg></svg>';
  return template.content.firstChild.namespaceURI;
})();

function shape(tag, attributes, ...children) {
  const node = document.createElementNS(SVG_NAMES, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function fourDigits(number) {
  if (number === 0) return '0';
  return Math.abs(number) >= 1000 ? number.toFixed(0) : number.toPrecision(4);
}

// How values of `unit` are written that are at most `most`: {unit, size, text(value)}. "s" and "B"
// get the unit that people use, shares become per cent, large numbers thousands or millions.
function scaleFor(unit, most) {
  const scale = { unit, size: 1, text: (value) => fourDigits(value / scale.size) };
  if (unit === 's') [scale.unit, scale.size] = unitFor(most, TIME_UNITS);
  else if (unit === 'B') [scale.unit, scale.size] = unitFor(most, BYTE_UNITS);
  else if (unit === 'share') {
    [scale.unit, scale.size] = ['%', 0.01];
    scale.text = (value) => (100 * value).toFixed(1);
  } else if (most >= 1e8) [scale.unit, scale.size] = [`million ${unit}`, 1e6];
  else if (most >= 1e6) [scale.unit, scale.size] = [`thousand ${unit}`, 1e3];
  return scale;
}

// The ends of an axis for finite `values`: from 0 where they do not lie far above it.
function axisOver(values) {
  let [from, to] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    from = Math.min(from, value);
    to = Math.max(to, value);
  }
  if (from > to) return [0, 1];
  if (from >= 0 && from < 0.5 * to) from = 0;
  const room = to - from || Math.abs(to) || 1;
  return [from === 0 ? 0 : from - 0.05 * room, to + 0.05 * room];
}

// Round marks of an axis: [{at, label}], labels in the scale's unit.
function numberMarks([from, to], scale, most) {
  const step = roundStep((to - from) / scale.size, most);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const marks = [];
  for (let i = Math.ceil(from / scale.size / step - 1e-9); i * step * scale.size <= to; i++) {
    marks.push({ at: i * step * scale.size, label: (i * step).toFixed(decimals) });
  }
  return marks;
}

// An axis of numbers, or of names at 0, 1, ...: {ends, label, marks(most)}.
function numberAxis(words, unit, values) {
  const ends = axisOver(values);
  const scale = scaleFor(unit, Math.max(...ends.map(Math.abs)));
  const label = scale.unit ? `${words} (${scale.unit})` : words;
  return { ends, label, scale, marks: (most) => numberMarks(ends, scale, most) };
}

function nameAxis(words, names) {
  const every = Math.ceil(names.length / MOST_NAMES);
  const all = names.map((label, at) => ({ at, label }));
  const marks = () => all.filter(({ at }) => at % every === 0);
  return { ends: [-0.5, names.length - 0.5], label: words, marks, names };
}

function shortLabel(text, letters) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

// Adds a plot to `parent`. `plot` has title and draw(pen), and x() and y() give its axes. Returns
// {svg, redraw}.
function addPlot(parent, plot) {
  const look = { class: 'plot curve-colours', role: 'group', 'aria-label': plot.title };
  const svg = shape('svg', look);
  const figure = element('figure', {}, element('figcaption', {}, plot.title), svg);
  parent.append(figure);
  let drawn = 0;
  const redraw = () => {
    drawn = svg.clientWidth;
    const width = Math.max(240, drawn || 600);
    const pen = plotPen(width, plot.x(), plot.y());
    const height = PLOT_EDGES.top + PLOT_HEIGHT + PLOT_EDGES.bottom + (pen.slanted ? SLANT : 0);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    svg.style.height = `${height}px`;
    svg.replaceChildren(...plotFrame(pen));
    plot.draw(pen, svg);
  };
  new ResizeObserver(() => {
    if (Math.abs(svg.clientWidth - drawn) >= 1) requestAnimationFrame(redraw);
  }).observe(svg);
  redraw();
  return { svg, redraw };
}

function plotPen(width, x, y) {
  const { left, right, top } = PLOT_EDGES;
  const across = width - left - right;
  const letters = Math.max(0, ...(x.names || []).map((name) => name.length));
  const place = ([from, to], value) => (value - from) / (to - from);
  return {
    left, top, width: across, height: PLOT_HEIGHT, across: x, up: y,
    slanted: Boolean(x.names) && letters * LETTER * x.marks().length > across,
    x: (value) => left + across * place(x.ends, value),
    y: (value) => top + PLOT_HEIGHT * (1 - place(y.ends, value)),
    value: (pixel) => x.ends[0] + (pixel - left) / across * (x.ends[1] - x.ends[0]),
  };
}

function plotFrame(pen) {
  const { left, top, width, height } = pen;
  const nodes = [shape('text', { x: 4, y: 14 }, pen.up.label)];
  for (const { at, label } of pen.up.marks(6)) {
    const y = pen.y(at);
    nodes.push(shape('line', { class: 'grid', x1: left, x2: left + width, y1: y, y2: y }));
    nodes.push(shape('text', { x: left - 6, y: y + 4, 'text-anchor': 'end' }, label));
  }
  const bottom = top + height;
  nodes.push(shape('line', { class: 'axis', x1: left, x2: left + width, y1: bottom, y2: bottom }));
  const marks = pen.across.marks(Math.max(2, Math.floor(width / 56)));
  for (const { at, label } of marks) {
    const x = pen.x(at);
    nodes.push(shape('line', { class: 'axis', x1: x, x2: x, y1: bottom, y2: bottom + 5 }));
    const text = pen.slanted
      ? { 'text-anchor': 'end', transform: `translate(${x + 4} ${bottom + 16}) rotate(-50)` }
      : { x, y: bottom + 18, 'text-anchor': 'middle' };
    nodes.push(shape('text', text, pen.slanted ? shortLabel(label, 18) : label));
  }
  const below = bottom + 37 + (pen.slanted ? SLANT : 0);
  const label = { x: left + width, y: below, 'text-anchor': 'end' };
  nodes.push(shape('text', label, pen.across.label));
  return nodes;
}
