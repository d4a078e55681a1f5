// Timeline: what every device executes when, and messages and collectives on every wire.
// SPDX-License-Identifier: Apache-2.0

const MOST_LANES = 512;
const GAP = 10; // between devices and wires

// Lays out the lanes: devices above, wires (if shown) below.
function laneLayout(scenario, showWires) {
  const devices = scenario.devices.slice(0, MOST_LANES);
  const wires = showWires ? scenario.wires.slice(0, MOST_LANES) : [];
  const deviceHeight = Math.max(3, Math.min(28, Math.floor(640 / devices.length)));
  const wireHeight = Math.max(3, Math.min(14, Math.floor(320 / Math.max(1, wires.length))));
  const wireTop = devices.length * deviceHeight + GAP;
  const height = wires.length ? wireTop + wires.length * wireHeight : wireTop - GAP;
  const bar = deviceHeight > 8 ? deviceHeight - 4 : deviceHeight * 0.8;
  return { devices, wires, deviceHeight, bar, wireHeight, wireTop, height };
}

function addTimeline(parent, scenario, options) {
  const layout = () => laneLayout(scenario, options.wires());
  const chart = addChart(parent, {
    title: 'Timeline: what each device executes; below it, messages and collectives',
    keys: 'Enter chooses an op, the comma and full stop go on to those beside it, < to what it ' +
      'waited for, up and down to other devices, Escape lets go.',
    scenario,
    view: scenario.view,
    height: () => layout().height,
    draw: (pen) => drawTimeline(pen, scenario, layout(), options),
    describe: (x, y, pen) => {
      const node = nodeAt(x, y, pen, layout(), scenario);
      return node && describeNode(node, scenario, pen);
    },
    choose: (x, y, pen) => {
      const node = nodeAt(x, y, pen, layout(), scenario);
      options.select(node && node.entry >= 0 ? node : null);
    },
    key: (key, pen) => moveSelection(key, pen, scenario, options),
  });
  return chart;
}

function drawTimeline(pen, scenario, lanes, options) {
  const palette = paints(scenario.palette.kinds, pen.colours.lane);
  const path = options.path();
  labelLanes(pen, lanes.devices, 0, lanes.deviceHeight, (d) => deviceName(d.number));
  labelLanes(pen, lanes.wires, lanes.wireTop, lanes.wireHeight, (w) => laneName(w, scenario));
  pen.clip();
  lanes.devices.forEach((device, i) => {
    const place = { top: i * lanes.deviceHeight, bar: lanes.bar };
    drawDevice(pen, device, { ...place, scenario, palette, path: path && path[i] });
  });
  lanes.wires.forEach((wire, i) => {
    const marks = path && path[scenario.devices.length + i];
    drawWire(pen, wire, lanes.wireTop + i * lanes.wireHeight, lanes.wireHeight, marks);
  });
  if (scenario.selected) drawSelection(pen, scenario, lanes);
  pen.context.restore();
}

// Returns "0 → 1"; or "data 0": the collectives of device 0 with those beside it along that axis.
function laneName(wire, { devices }) {
  if (wire.axis) return `${wire.axis} ${devices[wire.rank].number}`;
  return `${devices[wire.from].number} → ${devices[wire.to].number}`;
}

const deviceName = (number) => (innerWidth < 600 ? `dev. ${number}` : `device ${number}`);

function labelLanes(pen, lanes, top, height, name) {
  const every = Math.ceil(12 / height);
  lanes.forEach((lane, i) => {
    if (i % every === 0) pen.label(name(lane), top + (i + 0.5) * height);
  });
}

// Returns the indices [first, last) of the ops that touch the view. Ops of a device never overlap.
function visible(device, pen) {
  const first = upperBound(device.end, pen.begin, device.count);
  return [first, upperBound(device.start, pen.end, device.count)];
}

function drawDevice(pen, device, look) {
  pen.context.fillStyle = pen.colours.lane;
  pen.context.fillRect(pen.left, look.top, pen.width, look.bar);
  const [first, last] = visible(device, pen);
  if (last - first > pen.width / 4) {
    drawCoverage(pen, device, [first, last], look);
    return;
  }
  for (let i = first; i < last; i++) drawSpan(pen, device, i, look);
}

// Returns "F3"; "2F3" of stage 2, where the device has several.
function opLabel(device, i, scenario) {
  const op = scenario.ops[device.op[i]];
  const stage = device.several ? op.stage : '';
  return `${stage}${op.letter}${batchNumber(device.microBatch[i], scenario)}`;
}

function drawSpan(pen, device, i, { top, bar, scenario, palette, path }) {
  const op = scenario.ops[device.op[i]];
  const paint = paintOf(scenario.paintByOp[device.op[i]], palette, path, i);
  const x = pen.x(device.start[i]);
  const width = pen.x(device.end[i]) - x;
  pen.context.fillStyle = palette.styles[paint];
  pen.context.fillRect(x, top, Math.max(0.7, width > 4 ? width - 1 : width), bar);
  if (bar < 12 || width < 10) return;
  const whole = opLabel(device, i, scenario);
  const text = width < 4 + 8 * whole.length ? op.letter : whole;
  const left = Math.max(x, pen.left);
  const right = Math.min(x + width, pen.left + pen.width);
  if (right - left < 8 * text.length) return;
  pen.context.fillStyle = paint < palette.kinds ? palette.inks[op.kind] : pen.colours.ink;
  pen.context.textAlign = 'center';
  pen.context.fillText(text, (left + right) / 2, top + bar / 2 + 0.5);
}

// Draws a wire. Solid: the message occupies the wire; thin: latency until it arrives.
function drawWire(pen, wire, top, height, path) {
  const { context, colours } = pen;
  const first = upperBound(wire.arrival, pen.begin, wire.count);
  const last = upperBound(wire.start, pen.end, wire.count);
  const thick = Math.max(2, height - 5);
  context.fillStyle = colours.lane;
  context.fillRect(pen.left, top + thick / 2, pen.width, 1);
  context.fillStyle = colours.faint;
  const perPixel = (pen.end - pen.begin) / pen.width;
  let drawnTo = -Infinity;
  for (let i = first; i < last; i++) {
    if (wire.arrival[i] < drawnTo && !(path && path[i])) continue;
    const from = pen.x(wire.start[i]);
    const middle = Math.max(from + 1, pen.x(wire.end[i]));
    if (path) {
      context.fillStyle = path[i] ? colours.accent : colours.faint;
      context.globalAlpha = path[i] ? 1 : 0.3;
    }
    context.fillRect(from, top, middle - from, thick);
    context.fillRect(middle, top + thick / 2 - 0.5, pen.x(wire.arrival[i]) - middle, 1.5);
    drawnTo = wire.arrival[i] + perPixel / 2;
  }
  context.globalAlpha = 1;
}

// Returns the entry of sorted lane `begin`..`end` at `time`, or the nearest within `near`; else -1.
function entryAt(begin, end, count, time, near) {
  const i = upperBound(begin, time, count) - 1;
  if (i >= 0 && time <= end[i]) return i;
  const since = i >= 0 ? time - end[i] : Infinity;
  const until = i + 1 < count ? begin[i + 1] - time : Infinity;
  if (Math.min(since, until) > near) return -1;
  return since < until ? i : i + 1;
}

// Returns the node below a point; its entry is -1 where its lane is idle. Null outside of all
// lanes.
function nodeAt(x, y, pen, lanes, scenario) {
  if (x < pen.left || x > pen.left + pen.width || y < 0 || y >= lanes.height) return null;
  const time = pen.time(x);
  const near = 2 * (pen.end - pen.begin) / pen.width;
  const row = Math.floor(y / lanes.deviceHeight);
  const device = lanes.devices[row];
  const at = (lane, end) => entryAt(lane.start, end, lane.count, time, near);
  if (device) return { lane: row, entry: at(device, device.end), time };
  const wireRow = Math.floor((y - lanes.wireTop) / lanes.wireHeight);
  const wire = lanes.wires[wireRow];
  if (!wire) return null;
  return { lane: scenario.devices.length + wireRow, entry: at(wire, wire.arrival), time };
}
