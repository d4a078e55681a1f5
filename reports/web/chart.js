// Chart: a canvas that follows a view, keeps sharp on every screen, and explains itself.
// SPDX-License-Identifier: Apache-2.0

const AXIS = 34; // pixels below every chart: ticks and their unit
const RIGHT = 12;

function gutter() {
  return innerWidth < 600 ? 58 : 104;
}

function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    ink: colour('--ink'), faint: colour('--faint'), lane: colour('--lane'),
    line: colour('--line'), paper: colour('--paper'), accent: colour('--accent'),
  };
}

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// On paper everything is light. Charts draw themselves again between these two.
addEventListener('beforeprint', () => document.documentElement.classList.add('printing'));
addEventListener('afterprint', () => document.documentElement.classList.remove('printing'));

// Adds a chart to `parent`. `chart` has: title, height(), draw(pen), describe(x, y, pen) giving
// lines of text or nothing, and view; if things in it can be chosen also choose(x, y, pen),
// key(name, pen) giving whether it knows the key, and what its keys are. Returns {redraw, pen}.
function addChart(parent, chart) {
  const canvas = element('canvas', { tabIndex: 0 });
  canvas.setAttribute('role', 'img');
  const keys = `Left and right move, plus and minus zoom. ${chart.keys || ''}`;
  canvas.setAttribute('aria-label', `${chart.title}. ${keys}`);
  parent.append(element('figure', {}, element('figcaption', {}, chart.title), canvas));
  let pending = false;
  let pen = null;
  const draw = () => {
    pending = false;
    pen = makePen(canvas, chart);
    chart.draw(pen);
    drawWindow(pen, chart.scenario);
    drawTimeAxis(pen);
  };
  const redraw = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(draw);
  };
  chart.view.onChange(redraw);
  if (chart.key) {
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !chart.key(event.key, pen)) return;
      event.preventDefault();
    });
  }
  moveByHand(canvas, chart.view, () => pen, chart.choose && ((x, y) => chart.choose(x, y, pen)));
  showTooltips(canvas, (x, y) => pen && chart.describe(x, y, pen));
  new ResizeObserver(redraw).observe(canvas);
  // Charts that are replaced let go of the window.
  const until = { signal: chart.scenario.gone };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw, until);
  addEventListener('beforeprint', draw, until);
  addEventListener('afterprint', redraw, until);
  return { redraw, pen: () => pen };
}

// Returns the tools to draw `chart`: a context in CSS pixels, the place of the plot, colours, and x
// of a time.
function makePen(canvas, chart) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const plotHeight = chart.height();
  const height = plotHeight + AXIS;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const left = gutter();
  const plotWidth = Math.max(10, width - left - RIGHT);
  const { begin, end } = chart.view;
  return {
    context, ratio, left, width: plotWidth, height: plotHeight, begin, end,
    colours: themeColours(),
    x: (time) => left + (time - begin) / (end - begin) * plotWidth,
    time: (x) => begin + (x - left) / plotWidth * (end - begin),
    clip() {
      context.save();
      context.beginPath();
      context.rect(left, 0, plotWidth, plotHeight);
      context.clip();
    },
    label(text, y) {
      context.textAlign = 'right';
      context.fillStyle = this.colours.ink;
      context.fillText(text, left - 8, Math.max(7, y), left - 10);
    },
  };
}

function drawTimeAxis(pen) {
  const { context, colours } = pen;
  const { unit, ticks } = timeTicks(pen.begin, pen.end, Math.max(2, pen.width / 90));
  context.strokeStyle = colours.line;
  context.fillStyle = colours.faint;
  context.textAlign = 'center';
  context.beginPath();
  context.moveTo(pen.left, pen.height + 0.5);
  context.lineTo(pen.left + pen.width, pen.height + 0.5);
  for (const { at, label } of ticks) {
    const x = Math.round(pen.x(at)) + 0.5;
    context.moveTo(x, pen.height);
    context.lineTo(x, pen.height + 5);
    context.fillText(label, x, pen.height + 13);
  }
  context.stroke();
  context.textAlign = 'right';
  context.fillText(`time since the run began (${unit})`, pen.left + pen.width, pen.height + 27);
}

// Dims what lies outside the measured window and marks its ends.
function drawWindow(pen, scenario) {
  const { context, colours } = pen;
  pen.clip();
  for (const [index, time] of scenario.window.entries()) {
    const x = pen.x(time);
    context.globalAlpha = 0.55;
    context.fillStyle = colours.paper;
    if (index === 0) context.fillRect(pen.left, 0, x - pen.left, pen.height);
    else context.fillRect(x, 0, pen.left + pen.width - x, pen.height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.setLineDash([5, 3]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, pen.height);
    context.stroke();
  }
  context.restore();
}

let tooltip = null;

function showTooltips(canvas, describe) {
  const hide = () => { if (tooltip) tooltip.hidden = true; };
  const show = (event) => {
    const lines = event.buttons && event.pointerType === 'mouse'
      ? null : describe(event.offsetX, event.offsetY);
    if (!lines) return hide();
    if (!tooltip) document.body.append(tooltip = element('div', { className: 'tooltip' }));
    tooltip.replaceChildren(...lines.map((line) => element('div', {}, line)));
    tooltip.hidden = false;
    const box = tooltip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
    const below = event.clientY + 18;
    const top = below + box.height > innerHeight ? event.clientY - box.height - 10 : below;
    tooltip.style.left = `${Math.max(4, left)}px`;
    tooltip.style.top = `${Math.max(4, top)}px`;
  };
  canvas.addEventListener('pointermove', show);
  canvas.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'mouse') show(event);
  });
  canvas.addEventListener('pointerleave', hide);
  canvas.addEventListener('wheel', hide, { passive: true });
}
