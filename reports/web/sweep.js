// Sweep: views of many results, from the small data that the page has of all of them.
// SPDX-License-Identifier: Apache-2.0

const MOST_CURVES = 12;

function startSweep() {
  const data = document.querySelector('script[type="application/sweep+json"]');
  if (!data) return;
  const sweep = JSON.parse(data.textContent);
  const place = data.parentElement;
  if (sweep.axes.length > 1) addHeatmap(place, sweep);
  if (sweep.axes.length > 0) addSweepCurves(place, sweep);
  if (sweep.results.length > 1) addPareto(place, sweep);
}

// "12.3 ms" of a measure of result `i`.
function measureWords(sweep, i, measure) {
  const value = sweep.results[i].values[measure];
  const scale = scaleFor(sweep.measures[measure].unit, Math.abs(value));
  return `${scale.text(value)} ${scale.unit}`;
}

// What is said of result `i` beside the pointer; `first` are the measures that are drawn.
function resultLines(sweep, i, ...first) {
  const { name, warning } = sweep.results[i];
  const rest = sweep.measures.map((_, m) => m).filter((m) => !first.includes(m));
  const lines = [name];
  for (const m of [...first, ...rest]) {
    lines.push(`${sweep.measures[m].name}: ${measureWords(sweep, i, m)}`);
  }
  if (warning) lines.push(warning);
  if (i < sweep.drawn) lines.push('Click or Enter: its section');
  return lines;
}

// A measure along one path, with a curve for each value of another if there is one, each point the
// best over all further paths.
function addSweepCurves(parent, sweep) {
  const several = sweep.axes.length > 1;
  const names = sweep.axes.map(({ name }) => name);
  const numeric = sweep.axes.findIndex(isNumeric);
  const first = Math.max(0, numeric);
  const build = () => {
    hideTip();
    if (several && by.value() === along.value()) by.set(along.value() === 0 ? 1 : 0);
    place.replaceChildren();
    sweepPlot(place, sweep,
      { measure: measure.value(), along: along.value(), by: several ? by.value() : -1 });
  };
  const measure = choice('Measure', sweep.measures.map(({ name }) => name), 0, build);
  const along = choice('Along', names, first, build);
  const by = choice('A curve for each', names, first === 0 ? 1 : 0, build);
  const place = element('div', {});
  const tools = element('div', { className: 'view-tools' }, measure.node);
  if (several) tools.append(along.node, by.node);
  parent.append(element('h2', {}, several ? 'Along one path' : 'The sweep'), tools, place);
  build();
}

function isNumeric({ values }) {
  return values.every(({ number }) => number !== undefined);
}

function sweepPlot(place, sweep, { measure, along, by }) {
  const axis = sweep.axes[along];
  const position = (value) => (isNumeric(axis) ? axis.values[value].number : value);
  const all = sweepCurves(sweep, { measure, along, by, position });
  const curves = all.slice(0, MOST_CURVES);
  const legend = curveLegend(curves, () => plot.redraw());
  if (by >= 0) place.append(legend.node);
  if (all.length > curves.length) {
    const words = `The first ${curves.length} of ${all.length} curves; the heat-map has all.`;
    place.append(element('p', { className: 'note' }, words));
  }
  const { name, unit } = sweep.measures[measure];
  const shown = () => curves.filter((_, i) => legend.shown(i));
  const fails = curves.some(({ points }) => points.some(([, , i]) => sweep.results[i].fails));
  const others = sweep.axes.length > 2 ? ', the best of all other paths' : '';
  const plot = addCurves(place, {
    title: `${name} along ${axis.name}${others}`,
    x: () => (isNumeric(axis) ? numberAxis(axis.name, '', axis.values.map(({ number }) => number))
      : nameAxis(axis.name, axis.values.map(({ label }) => label))),
    y: () => numberAxis(name, unit, curves.flatMap(({ points }) => points.map(([, y]) => y))),
    curves: shown,
    joined: isNumeric(axis),
    mark: (point) => (sweep.results[point[2]].fails ? 'cross' : 'dot'),
    describe: (x, values) => curveWords(sweep, measure, axis, values),
    choose: (x, values) => goToSection(values.length ? values[0].point[2] : -1),
  });
  if (fails) {
    const words = '✗ does not fit in the memory of a device';
    place.append(element('p', { className: 'note' }, words));
  }
}

function curveWords(sweep, measure, axis, values) {
  if (!values.length) return ['nothing here'];
  const index = sweep.axes.indexOf(axis);
  const at = sweep.results[values[0].point[2]].at[index];
  return [`${axis.name} ${axis.values[at].label}`, ...values.map(({ curve, point: [, , i] }) => {
    const fails = sweep.results[i].fails ? ', does not fit' : '';
    return `${curve.name ? `${curve.name}: ` : ''}${measureWords(sweep, i, measure)}${fails}`;
  })];
}

// Curves of [x, y, result], by x.
function sweepCurves(sweep, { measure, along, by, position }) {
  const groups = by < 0 ? [''] : sweep.axes[by].values.map(({ label }) => label);
  return groups.map((name, group) => {
    const byValue = sweep.axes[along].values.map(() => []);
    sweep.results.forEach(({ at }, i) => {
      if (by < 0 || at[by] === group) byValue[at[along]].push(i);
    });
    const points = byValue.flatMap((results, value) => {
      const best = bestOf(sweep, measure, results);
      return best < 0 ? [] : [[position(value), sweep.results[best].values[measure], best]];
    });
    return { name, ...curveLook(group), points };
  });
}
