// Utilisation over time: the share of each stretch in which a device is busy, and usefully so.
// SPDX-License-Identifier: Apache-2.0

const ROW = 52; // pixels for each device
const PLOT = 40; // of them for its curve
const BIN = 6; // pixels of one stretch
const UTILISATION_LAYERS = [['busy', '#56b4e9'], ['useful', '#0072b2']];

function addUtilisation(parent, scenario, options) {
  const devices = () => options.devices();
  return addChart(parent, {
    title: 'Utilisation over time (%): the busy and the useful share of each stretch',
    scenario,
    view: scenario.view,
    height: () => devices().length * ROW,
    draw: (pen) => devices().forEach((device, i) => drawUtilisation(pen, device, i * ROW)),
    describe: (x, y, pen) => describeUtilisation(x, pen, devices()[Math.floor(y / ROW)]),
  });
}

// Seconds of work before `time`, by the running sums `before` over whole spans.
function workBefore(spans, before, time) {
  const i = upperBound(spans.start, time, spans.count) - 1;
  if (i < 0) return 0;
  const length = spans.end[i] - spans.start[i];
  const part = length > 0 ? Math.min(1, (time - spans.start[i]) / length) : 1;
  return before[i] + part * (before[i + 1] - before[i]);
}

function shareOf(spans, before, from, to) {
  const work = workBefore(spans, before, to) - workBefore(spans, before, from);
  return Math.min(1, Math.max(0, work / (to - from)));
}

function drawUtilisation(pen, device, top) {
  drawRowFrame(pen, top, PLOT, ['100', '0']);
  pen.label(deviceName(device.number), top + PLOT / 2);
  pen.clip();
  const bins = Math.max(1, Math.floor(pen.width / BIN));
  const times = [];
  for (let i = 0; i <= bins; i++) times.push(pen.time(pen.left + i * pen.width / bins));
  for (const [name, colour] of UTILISATION_LAYERS) {
    pen.context.fillStyle = colour;
    for (let i = 0; i < bins; i++) {
      const share = shareOf(device.spans, device.spans[name], times[i], times[i + 1]);
      const x = Math.round(pen.x(times[i]));
      const height = share * PLOT;
      pen.context.fillRect(x, top + PLOT - height, Math.round(pen.x(times[i + 1])) - x, height);
    }
  }
  pen.context.restore();
}

// Background, base line and the labels of the ends of a small chart's axis.
function drawRowFrame(pen, top, height, [high, low]) {
  const { context, colours } = pen;
  context.fillStyle = colours.lane;
  context.fillRect(pen.left, top, pen.width, height);
  context.fillStyle = colours.faint;
  context.textAlign = 'right';
  context.font = '10px system-ui, sans-serif';
  context.fillText(high, pen.left - 4, top + 5);
  context.fillText(low, pen.left - 4, top + height - 4);
  context.font = '12px system-ui, sans-serif';
}

function describeUtilisation(x, pen, device) {
  if (!device || x < pen.left || x > pen.left + pen.width) return null;
  const bins = Math.max(1, Math.floor(pen.width / BIN));
  const bin = Math.min(bins - 1, Math.floor((x - pen.left) / pen.width * bins));
  const from = pen.time(pen.left + bin * pen.width / bins);
  const to = pen.time(pen.left + (bin + 1) * pen.width / bins);
  const range = pen.end - pen.begin;
  const busy = shareOf(device.spans, device.spans.busy, from, to);
  const useful = shareOf(device.spans, device.spans.useful, from, to);
  return [
    `device ${device.number}: busy ${formatPercent(busy)}, useful ${formatPercent(useful)}`,
    `${formatInstant(from, range)} to ${formatInstant(to, range)}`,
  ];
}
