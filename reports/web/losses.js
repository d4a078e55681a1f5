// Losses: what training came to, against steps, measured time and simulated time.
// SPDX-License-Identifier: Apache-2.0

function startLosses() {
  const data = document.querySelector('script[type="application/losses+json"]');
  if (!data) return;
  const runs = JSON.parse(data.textContent);
  const place = data.parentElement;
  const curves = runs.map((run, i) => ({ ...run, ...curveLook(i) }));
  const plots = [];
  const legend = curveLegend(curves, () => plots.forEach((plot) => plot.redraw()));
  const grid = element('div', { className: 'plots' });
  place.append(legend.node, grid);
  for (const [key, words, unit] of [['steps', 'steps', ''], ['measured_s', 'measured time', 's'],
    ['simulated_s', 'simulated time', 's']]) {
    plots.push(addLosses(grid, curves, { key, words, unit, shown: legend.shown }));
  }
}

function addLosses(parent, curves, { key, words, unit, shown }) {
  const whole = curves.map((curve) => ({
    name: curve.name,
    colour: curve.colour,
    dash: curve.dash,
    points: curve[key].map((x, i) => [x, curve.loss[i] === null ? NaN : curve.loss[i]])
      .filter(([x]) => x !== null),
  }));
  const drawn = () => whole.filter((_, i) => shown(i));
  const numbers = (which) => drawn().flatMap(({ points }) => points.map((point) => point[which]));
  return addCurves(parent, {
    title: `Loss against ${words}`,
    x: () => numberAxis(words, unit, numbers(0)),
    y: () => numberAxis('loss', 'nats', numbers(1)),
    curves: drawn,
    joined: true,
    describe: (x, values) => {
      const scale = scaleFor(unit, Math.abs(x));
      const at = `${words} ${scale.text(x)}${scale.unit ? ` ${scale.unit}` : ''}`;
      return [at, ...values.map(({ curve, point: [, loss] }) =>
        `${curve.name}: ${Number.isFinite(loss) ? `${fourDigits(loss)} nats` : 'no number'}`)];
    },
  });
}
