// Pareto: results by two measures, and those that no other beats in both.
// SPDX-License-Identifier: Apache-2.0

const MOST_NAMED = 24; // of the front, below the picture

function addPareto(parent, sweep) {
  const names = sweep.measures.map(({ name }) => name);
  const find = (keys, otherwise) => {
    const found = sweep.measures.findIndex(({ key }) => keys.includes(key));
    return found < 0 ? otherwise : found;
  };
  const redraw = () => {
    hideTip();
    plot.redraw();
    list.replaceChildren(...frontList(sweep, x.value(), y.value()));
  };
  const y = choice('Up', names, find(['tokens_per_s', 'samples_per_s', 'steps_per_s'], 1), redraw);
  const x = choice('Across', names, find(['peak_memory_bytes'], 0), redraw);
  parent.append(element('h2', {}, 'Trade-offs'),
    element('div', { className: 'view-tools' }, y.node, x.node));
  const values = (measure) => sweep.results.map((result) => result.values[measure]);
  const axis = (measure) => numberAxis(describeMeasure(sweep.measures[measure]),
    sweep.measures[measure].unit, values(measure));
  const plot = addPlot(parent, {
    title: 'Every result; in orange the Pareto front, which no other result beats in both',
    x: () => axis(x.value()),
    y: () => axis(y.value()),
    draw: (pen, svg) => drawPareto(pen, svg, sweep, x.value(), y.value()),
  });
  const list = element('div', {});
  parent.append(list);
  list.replaceChildren(...frontList(sweep, x.value(), y.value()));
}

function describeMeasure({ name, more_is_better: more }) {
  return `${name}, ${more ? 'more' : 'less'} is better`;
}

// Results that fit, than which no other is better in one and as good in the other: by the first.
function paretoFront(sweep, x, y) {
  const gain = (i, measure) => (sweep.measures[measure].more_is_better ? 1 : -1) *
    sweep.results[i].values[measure];
  const order = sweep.results.map((_, i) => i).filter((i) => !sweep.results[i].fails);
  order.sort((a, b) => gain(b, x) - gain(a, x) || gain(b, y) - gain(a, y) || a - b);
  let most = -Infinity;
  return order.filter((i) => {
    if (gain(i, y) <= most) return false;
    most = gain(i, y);
    return true;
  });
}

function drawPareto(pen, svg, sweep, x, y) {
  const place = (i) => [pen.x(sweep.results[i].values[x]), pen.y(sweep.results[i].values[y])];
  const front = paretoFront(sweep, x, y);
  const onFront = new Set(front);
  const path = front.map(place).map(([px, py], n) => `${n ? 'L' : 'M'}${px} ${py}`);
  if (front.length > 1) svg.append(shape('path', { class: 'front', d: path.join('') }));
  const order = sweep.results.map((_, i) => i);
  order.sort((a, b) => sweep.results[a].values[x] - sweep.results[b].values[x] || a - b);
  const marks = order.map((i) => paretoMark(place(i), sweep.results[i], onFront.has(i)));
  // What is on the front lies above the rest.
  const layer = shape('g', {}, ...marks.filter((_, n) => !onFront.has(order[n])),
    ...marks.filter((_, n) => onFront.has(order[n])));
  svg.append(layer, ...front.slice(0, MOST_NAMED).map((i, n) => {
    const [left, top] = place(i);
    return shape('text', { class: 'word', x: left + 7, y: top - 7 }, String(n + 1));
  }));
  const moves = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  roam(layer, marks, {
    step: (n, key) => {
      if (key === 'Home') return 0;
      return key === 'End' ? marks.length - 1 : n + moves[key];
    },
    describe: (n) => resultLines(sweep, order[n], y, x),
    choose: (n) => goToSection(order[n]),
  });
}

function paretoMark([x, y], { name, fails }, onFront) {
  const look = { class: onFront ? 'point on-front' : 'point pale', r: onFront ? 5.5 : 4.5 };
  const mark = fails ? crossAt(x, y) : shape('circle', { ...look, cx: x, cy: y });
  mark.setAttribute('role', 'img');
  mark.setAttribute('aria-label', name);
  return mark;
}

function frontList(sweep, x, y) {
  const front = paretoFront(sweep, x, y);
  const entries = front.slice(0, MOST_NAMED).map((i) => {
    const figures = `${measureWords(sweep, i, y)}, ${measureWords(sweep, i, x)}`;
    const words = `${sweep.results[i].name}: ${figures}`;
    const go = { type: 'button', onclick: () => goToSection(i) };
    return element('li', {}, i < sweep.drawn ? element('button', go, words) : words);
  });
  const notes = [];
  if (front.length > MOST_NAMED) notes.push(`The front has ${front.length - MOST_NAMED} more.`);
  const failing = sweep.results.filter(({ fails }) => fails).length;
  if (failing) notes.push(`✗ does not fit: ${failing} of ${sweep.results.length}.`);
  return [element('ol', { className: 'front-list' }, ...entries),
    element('p', { className: 'note' }, notes.join(' '))];
}
