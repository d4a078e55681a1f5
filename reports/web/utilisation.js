// Utilisation over time: the share of each stretch in which a device is busy, and usefully so.
// SPDX-License-Identifier: Apache-2.0

const ROW = 52; // pixels for each device
const PLOT = 40; // of them for its curve
const BIN = 6; // pixels of one stretch
const UTILISATION_LAYERS = [['busy', '#56b4e9'], ['useful', '#0072b2']];

function addUtilisation(parent, scenario, options) {
  // The mean of all devices, then some of them.
  const rows = () => (scenario.devices.length > 1 ? [null] : []).concat(options.devices());
  return addChart(parent, {
    title: 'Utilisation over time (%): the busy and the useful share of each stretch',
    scenario,
    view: scenario.view,
    height: () => rows().length * ROW,
    draw: (pen) => rows().forEach((device, i) => {
      pen.label(rowName(device, deviceName), i * ROW + PLOT / 2);
      drawUtilisation(pen, device ? [device] : scenario.devices, i * ROW);
    }),
    describe: (x, y, pen) => describeUtilisation(x, pen, rows()[Math.floor(y / ROW)], scenario),
  });
}

const rowName = (device, name) => (device ? name(device.number) : 'all devices');

// Adds to `work` the seconds of busy and useful work of `device` before each of `times`.
function addWorkBefore(device, times, work) {
  const { start, end, busy, useful, count } = device;
  times.forEach((time, t) => {
    const i = upperBound(start, time, count) - 1;
    if (i < 0) return;
    const length = end[i] - start[i];
    const part = length > 0 ? Math.min(1, (time - start[i]) / length) : 1;
    work.busy[t] += busy[i] + part * (busy[i + 1] - busy[i]);
    work.useful[t] += useful[i] + part * (useful[i + 1] - useful[i]);
  });
}

// Shares of each stretch between two of `times`, means over `devices`: {busy, useful}.
function sharesBetween(devices, times) {
  const work = { busy: new Float64Array(times.length), useful: new Float64Array(times.length) };
  for (const device of devices) addWorkBefore(device, times, work);
  const shares = (sums) => times.slice(1).map((time, t) => {
    const share = (sums[t + 1] - sums[t]) / ((time - times[t]) * devices.length);
    return Math.min(1, Math.max(0, share));
  });
  return { busy: shares(work.busy), useful: shares(work.useful) };
}

function binEdges(pen) {
  const bins = Math.max(1, Math.floor(pen.width / BIN));
  const edges = [];
  for (let i = 0; i <= bins; i++) edges.push(pen.time(pen.left + i * pen.width / bins));
  return edges;
}

function drawUtilisation(pen, devices, top) {
  drawRowFrame(pen, top, PLOT, ['100', '0']);
  pen.clip();
  const times = binEdges(pen);
  const shares = sharesBetween(devices, times);
  for (const [name, colour] of UTILISATION_LAYERS) {
    pen.context.fillStyle = colour;
    shares[name].forEach((share, i) => {
      const x = Math.round(pen.x(times[i]));
      const height = share * PLOT;
      pen.context.fillRect(x, top + PLOT - height, Math.round(pen.x(times[i + 1])) - x, height);
    });
  }
  pen.context.restore();
}

// Draws background, base line and the labels of the ends of a small chart's axis.
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

function describeUtilisation(x, pen, device, scenario) {
  if (device === undefined || x < pen.left || x > pen.left + pen.width) return null;
  const edges = binEdges(pen);
  const bins = edges.length - 1;
  const bin = Math.min(bins - 1, Math.floor((x - pen.left) / pen.width * bins));
  const times = edges.slice(bin, bin + 2);
  const { busy, useful } = sharesBetween(device ? [device] : scenario.devices, times);
  const [from, to] = times.map((time) => formatInstant(time, pen.end - pen.begin));
  const name = rowName(device, (number) => `device ${number}`);
  return [
    `${name}: busy ${formatPercent(busy[0])}, useful ${formatPercent(useful[0])}`,
    `${from} to ${to}`,
  ];
}
