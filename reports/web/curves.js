// Curves: lines over one axis, which can be switched off, with the values at a cursor.
// SPDX-License-Identifier: Apache-2.0

// Adds curves to `parent`. `chart` has title, x() and y() (axes), curves() giving
// [{name, colour, dash, points: [[x, y], ...] by x}], joined (whether lines join points) and
// describe(x, values) giving lines of text, where values are [{curve, point}] nearest to x. It may
// have mark(point), 'dot' or 'cross', and choose(x, values), for Enter and clicks.
function addCurves(parent, chart) {
  let cursor = null; // an index of `stops`
  let stops = [];
  let pen = null;
  let line = null;
  const plot = addPlot(parent, {
    title: chart.title,
    x: chart.x,
    y: chart.y,
    draw: (newPen, svg) => {
      pen = newPen;
      const curves = chart.curves();
      stops = stopsOf(curves);
      svg.append(...curves.flatMap((curve) => curveShapes(curve, pen, chart)));
      hideTip();
      line = shape('line', { class: 'cursor', y1: pen.top, y2: pen.top + pen.height });
      cursor = null;
    },
  });
  const { svg } = plot;
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('aria-label', `${chart.title}. Left and right arrow keys read the values.`);
  const show = (index) => {
    if (!stops.length) return;
    cursor = Math.max(0, Math.min(stops.length - 1, index));
    const x = pen.x(stops[cursor]);
    line.setAttribute('x1', x);
    line.setAttribute('x2', x);
    svg.append(line);
    const box = svg.getBoundingClientRect();
    const top = box.top + pen.top + 8;
    const at = valuesAt(chart.curves(), stops[cursor]);
    showTip(chart.describe(stops[cursor], at),
      { left: box.left + x, right: box.left + x, top, bottom: top });
  };
  const hide = () => {
    hideTip();
    if (line) line.remove();
  };
  const choose = () => {
    if (cursor !== null && chart.choose) {
      chart.choose(stops[cursor], valuesAt(chart.curves(), stops[cursor]));
    }
  };
  svg.addEventListener('pointermove', (event) => {
    if (pen) show(nearestIndex(stops, pen.value(event.clientX - svg.getBoundingClientRect().left)));
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('click', choose);
  svg.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = Math.max(1, Math.round(stops.length / 20));
    const moves = {
      ArrowLeft: () => show(cursor === null ? 0 : cursor - 1),
      ArrowRight: () => show(cursor === null ? 0 : cursor + 1),
      PageUp: () => show((cursor || 0) - far),
      PageDown: () => show((cursor || 0) + far),
      Home: () => show(0),
      End: () => show(stops.length - 1),
      Enter: choose,
      Escape: hide,
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  return plot;
}

// All x that some curve has, ascending.
function stopsOf(curves) {
  const all = new Set(curves.flatMap(({ points }) => points.map(([x]) => x)));
  return [...all].filter(Number.isFinite).sort((a, b) => a - b);
}

// The index in ascending `numbers` of the one nearest to `value`.
function nearestIndex(numbers, value) {
  const after = upperBound(numbers, value, numbers.length);
  if (after === 0) return 0;
  if (after === numbers.length) return after - 1;
  return value - numbers[after - 1] < numbers[after] - value ? after - 1 : after;
}

// Of each curve that reaches to `x` its point nearest to it.
function valuesAt(curves, x) {
  return curves.flatMap((curve) => {
    const { points } = curve;
    if (!points.length || x < points[0][0] || x > points[points.length - 1][0]) return [];
    return [{ curve, point: points[nearestIndex(points.map(([at]) => at), x)] }];
  });
}

function curveShapes(curve, pen, { joined: join, mark }) {
  let path = '';
  let joined = false;
  const nodes = [];
  for (const point of curve.points) {
    const there = Number.isFinite(point[0]) && Number.isFinite(point[1]);
    const [x, y] = [pen.x(point[0]), pen.y(point[1])];
    if (there) path += `${joined ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    const kind = there && mark ? mark(point) : '';
    if (kind === 'dot') nodes.push(shape('circle', { cx: x, cy: y, r: 4, fill: curve.colour }));
    if (kind === 'cross') nodes.push(crossAt(x, y));
    joined = there && join;
  }
  const line = shape('path', { class: 'curve', d: path || 'M0 0', 'stroke-dasharray': curve.dash });
  line.style.stroke = curve.colour;
  return [line, ...nodes];
}

function crossAt(x, y) {
  const d = `M${x - 4} ${y - 4}l8 8M${x + 4} ${y - 4}l-8 8`;
  return shape('path', { class: 'cross', d });
}

// A legend whose entries switch curves on and off: {node, shown(i)}.
function curveLegend(curves, onchange) {
  const boxes = curves.map(() => element('input', { type: 'checkbox', checked: true, onchange }));
  const entries = curves.map((curve, i) => {
    const line = element('span', { className: 'line' });
    line.style.borderColor = curve.colour;
    if (curve.dash) line.style.borderTopStyle = curve.dash.length < 4 ? 'dotted' : 'dashed';
    return element('li', {}, element('label', {}, boxes[i], line, curve.name));
  });
  const node = element('ul', { className: 'legend curve-colours' }, ...entries);
  return { node, shown: (i) => boxes[i].checked };
}
