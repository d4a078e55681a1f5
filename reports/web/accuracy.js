// Accuracy: predicted against measured values, each beside the line where both are equal.
// SPDX-License-Identifier: Apache-2.0

const ACCURACY_BANDS = [1.1, 1.5]; // times too much, or too little: lines beside that of no error

function startAccuracy() {
  const data = document.querySelector('script[type="application/accuracy+json"]');
  if (!data) return;
  const values = JSON.parse(data.textContent).filter(({ predicted }) => predicted !== null);
  if (!values.length) return;
  const quantities = [...new Set(values.map(({ quantity }) => quantity))];
  const sources = [...new Set(values.map(({ source }) => source))];
  const place = data.parentElement;
  const redraw = () => {
    hideTip();
    plot.redraw();
  };
  const quantity = choice('Quantity', quantities, 0, redraw);
  const source = choice('Source', ['all', ...sources], 0, redraw);
  place.append(element('div', { className: 'view-tools' }, quantity.node, source.node));
  const shown = () => values.filter((value) => value.quantity === quantities[quantity.value()] &&
    (source.value() === 0 || value.source === sources[source.value() - 1]));
  const axis = (words) => logAxis(`${words} ${quantities[quantity.value()]}`,
    shown().flatMap(({ measured, predicted }) => [measured, predicted]));
  const plot = addPlot(place, {
    title: 'Predicted against measured; lines: equal, and off by 10 and 50 %. Pale: fitted',
    x: () => axis('measured'),
    y: () => axis('predicted'),
    draw: (pen, svg) => drawAccuracy(pen, svg, shown(), sources),
  });
}

// An axis of decades. Its ends are logarithms; what is placed on it is the value's.
function logAxis(words, values) {
  const logs = values.map(Math.log10);
  let from = Math.min(...logs);
  let to = Math.max(...logs);
  if (!values.length) [from, to] = [0, 1];
  const room = 0.05 * (to - from) || 0.1;
  const ends = [from - room, to + room];
  return { ends, label: `${words} (logarithmic)`, marks: (most) => logMarks(ends, most) };
}

// Powers of ten, and between them 2 and 5, or every digit, as there is room.
function logMarks([from, to], most) {
  for (const digits of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1]]) {
    const marks = [];
    for (let power = Math.floor(from); power <= to; power++) {
      for (const digit of digits) {
        const at = power + Math.log10(digit);
        if (at >= from && at <= to) marks.push({ at, label: shortNumber(digit * 10 ** power) });
      }
    }
    if (marks.length <= most || digits.length === 1) return marks;
  }
  return [];
}

function shortNumber(value) {
  const short = value < 1e5 && value >= 1e-3;
  return short ? String(Number(value.toPrecision(2))) : value.toExponential(0);
}

function drawAccuracy(pen, svg, values, sources) {
  for (const factor of [1, ...ACCURACY_BANDS.flatMap((band) => [band, 1 / band])]) {
    svg.append(equalLine(pen, factor));
  }
  const marks = values.map(({ measured, predicted, source, id, fitted }) => {
    const place = sources.indexOf(source);
    const { colour } = curveLook(place);
    const whole = place < CURVE_COLOURS.length; // further sources have rings
    return shape('circle', {
      cx: pen.x(Math.log10(measured)),
      cy: pen.y(Math.log10(predicted)),
      r: 3.5,
      fill: whole ? colour : 'transparent',
      stroke: whole ? 'none' : colour,
      opacity: fitted ? 0.3 : 0.8,
      role: 'img',
      'aria-label': `${source}: ${id}`,
    });
  });
  const layer = shape('g', {}, ...marks);
  svg.append(layer);
  const moves = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  roam(layer, marks, {
    step: (i, key) => {
      if (key === 'Home') return 0;
      return key === 'End' ? marks.length - 1 : i + moves[key];
    },
    describe: (i) => accuracyWords(values[i]),
    choose: () => {},
  });
}

// Where predicted is `factor` times measured, as far as it is in the frame.
function equalLine(pen, factor) {
  const shift = Math.log10(factor);
  const from = Math.max(pen.across.ends[0], pen.up.ends[0] - shift);
  const to = Math.min(pen.across.ends[1], pen.up.ends[1] - shift);
  if (from >= to) return shape('g', {});
  const look = { class: factor === 1 ? 'axis' : 'grid', x1: pen.x(from), x2: pen.x(to) };
  return shape('line', { ...look, y1: pen.y(from + shift), y2: pen.y(to + shift) });
}

function accuracyWords(value) {
  const { source, table, id, quantity, measured, predicted, error, fitted, choice: best } = value;
  const lines = [`${source}: ${id}`, table];
  lines.push(`${quantity}: measured ${fourDigits(measured)}, predicted ${fourDigits(predicted)}`);
  lines.push(`error ${error > 0 ? '+' : ''}${(100 * error).toFixed(1)} %`);
  if (best) lines.push(`best: ${best}`);
  if (fitted) lines.push(`fitted: ${fitted}`);
  if (value.remark) lines.push(value.remark);
  return lines;
}
