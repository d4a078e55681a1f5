// Heat-map: a measure over two swept paths, a cell for each pair of values.
// SPDX-License-Identifier: Apache-2.0

// Adds a heat-map of `sweep` to `parent`. Where further paths were swept, a cell stands for one of
// their values, or for the best of them.
function addHeatmap(parent, sweep) {
  const place = element('div', {});
  const draw = () => {
    hideTip();
    place.replaceChildren(...heatmap(sweep, {
      measure: measure.value(),
      down: down.value(),
      across: across.value(),
      fixed: others.map((other) => other.value() - 1), // -1: the best of all
    }));
  };
  const names = sweep.axes.map(({ name }) => name);
  const measure = choice('Measure', sweep.measures.map(({ name }) => name), 0, draw);
  const across = choice('Across', names, names.length - 1, () => changeAxis(across, down));
  const down = choice('Down', names, names.length - 2, () => changeAxis(down, across));
  const others = sweep.axes.map(({ name, values }) =>
    choice(name, ['the best of all', ...values.map(({ label }) => label)], 0, draw));
  const otherTools = element('span', { className: 'view-tools' });
  // The other axis makes way to a value that it has already.
  function changeAxis(changed, other) {
    if (changed.value() === other.value()) other.set(changed.value() === 0 ? 1 : 0);
    listOthers();
    draw();
  }
  function listOthers() {
    const free = others.filter((_, i) => i !== across.value() && i !== down.value());
    otherTools.replaceChildren(...free.map(({ node }) => node));
  }
  listOthers();
  parent.append(element('h2', {}, 'The sweep'), element('div', { className: 'view-tools' },
    measure.node, down.node, across.node, otherTools), place);
  draw();
}

// Whether result `a` is better than `b`: one that fits before one that does not.
function isBetter(sweep, measure, a, b) {
  if (!a.fails !== !b.fails) return !a.fails;
  const difference = a.values[measure] - b.values[measure];
  return sweep.measures[measure].more_is_better ? difference > 0 : difference < 0;
}

// The best of `results` (indices); -1 if there are none.
function bestOf(sweep, measure, results) {
  return results.reduce((best, i) => (best < 0 ||
    isBetter(sweep, measure, sweep.results[i], sweep.results[best]) ? i : best), -1);
}

// The result of each cell by row and column, -1 where none was run.
function heatCells(sweep, { measure, down, across, fixed }) {
  const rows = sweep.axes[down].values.map(() => sweep.axes[across].values.map(() => []));
  sweep.results.forEach(({ at }, i) => {
    const free = (axis) => axis === down || axis === across || fixed[axis] < 0;
    if (at.every((value, axis) => free(axis) || fixed[axis] === value)) {
      rows[at[down]][at[across]].push(i);
    }
  });
  return rows.map((row) => row.map((results) => bestOf(sweep, measure, results)));
}

function heatmap(sweep, choices) {
  const cells = heatCells(sweep, choices);
  const measure = sweep.measures[choices.measure];
  const valueOf = (i) => sweep.results[i].values[choices.measure];
  const run = cells.flat().filter((i) => i >= 0);
  const fitting = run.filter((i) => !sweep.results[i].fails);
  const best = bestOf(sweep, choices.measure, fitting);
  const scale = scaleFor(measure.unit, Math.max(...run.map((i) => Math.abs(valueOf(i)))));
  const ends = [Math.min(...fitting.map(valueOf)), Math.max(...fitting.map(valueOf))];
  if (!measure.more_is_better) ends.reverse();
  const share = (i) => (ends[0] === ends[1] ? 0.5 : (valueOf(i) - ends[0]) / (ends[1] - ends[0]));
  const [down, across] = [sweep.axes[choices.down], sweep.axes[choices.across]];
  const nodes = cells.map((row) => row.map((i) => heatCell(sweep, i,
    { isBest: i === best, share, text: (one) => scale.text(valueOf(one)) })));
  const table = element('table', { className: 'heat' },
    element('thead', {}, element('tr', {},
      element('th', { className: 'corner', scope: 'col' }, `${down.name} ↓`,
        element('br', {}), `${across.name} →`),
      ...across.values.map(({ label }) => element('th', { scope: 'col' }, label)))),
    element('tbody', {}, ...nodes.map((row, r) => element('tr', {},
      element('th', { scope: 'row' }, down.values[r].label), ...row))));
  roamTable(table, nodes, cells, sweep, choices.measure);
  const caption = `${measure.name} (${scale.unit})`;
  table.prepend(element('caption', { className: 'note' }, caption));
  return [element('div', { className: 'scroll heat-place' }, table),
    heatLegend(ends, scale, fitting.length)];
}

function heatCell(sweep, i, { isBest, share, text }) {
  if (i < 0) return element('td', { className: 'missing' }, '–');
  const { fails } = sweep.results[i];
  const cell = element('td', {}, `${fails ? '✗ ' : ''}${isBest ? '★ ' : ''}${text(i)}`);
  cell.classList.toggle('fails', Boolean(fails));
  cell.classList.toggle('best', isBest);
  if (fails) return cell;
  cell.classList.toggle('strong', share(i) > 0.6);
  cell.style.setProperty('--t', share(i).toFixed(3));
  return cell;
}

function heatLegend([worst, best], scale, fitting) {
  const marks = ' · ★ best · ✗ does not fit, point at it for why · – not run';
  if (!fitting) return element('p', { className: 'note' }, `Nothing fits${marks}`);
  return element('p', { className: 'note' }, `Worst ${scale.text(worst)} `,
    element('span', { className: 'ramp' }), ` ${scale.text(best)} ${scale.unit}${marks}`);
}

function roamTable(table, nodes, cells, sweep, measure) {
  const width = nodes[0].length;
  const all = nodes.flat();
  const results = cells.flat();
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
  roam(table, all, {
    step: (i, key) => {
      const column = (i % width) + (moves[key] || 0);
      if (key === 'Home') return i - i % width;
      if (key === 'End') return i - i % width + width - 1;
      const sideways = Math.abs(moves[key]) === 1 && width > 1;
      return sideways && (column < 0 || column >= width) ? undefined : i + moves[key];
    },
    describe: (i) => (results[i] < 0 ? ['not run'] : resultLines(sweep, results[i], measure)),
    choose: (i) => goToSection(results[i]),
  });
}
