// Timeline: what every device executes when, and messages and collectives on every wire.
// SPDX-License-Identifier: Apache-2.0

const MOST_LANES = 512;
const GAP = 10; // between devices and wires

// Where lanes lie: devices above, wires (if shown) below.
function laneLayout(scenario, showWires) {
  const devices = scenario.devices.slice(0, MOST_LANES);
  const wires = showWires ? scenario.wires.slice(0, MOST_LANES) : [];
  const deviceHeight = Math.max(3, Math.min(28, Math.floor(640 / devices.length)));
  const wireHeight = Math.max(3, Math.min(14, Math.floor(320 / Math.max(1, wires.length))));
  const wireTop = devices.length * deviceHeight + GAP;
  const height = wires.length ? wireTop + wires.length * wireHeight : wireTop - GAP;
  return { devices, wires, deviceHeight, wireHeight, wireTop, height };
}

function addTimeline(parent, scenario, options) {
  const layout = () => laneLayout(scenario, options.wires());
  return addChart(parent, {
    title: 'Timeline: what each device executes; below it, messages and collectives',
    scenario,
    view: scenario.view,
    height: () => layout().height,
    draw: (pen) => drawTimeline(pen, scenario, layout()),
    describe: (x, y, pen) => describeLane(x, y, pen, scenario, layout()),
  });
}

function drawTimeline(pen, scenario, lanes) {
  const palette = paints(scenario.palette.kinds, pen.colours.lane);
  labelLanes(pen, lanes.devices, 0, lanes.deviceHeight, (d) => deviceName(d.number));
  labelLanes(pen, lanes.wires, lanes.wireTop, lanes.wireHeight, wireName);
  pen.clip();
  lanes.devices.forEach((device, i) => {
    drawDevice(pen, device, i * lanes.deviceHeight, lanes.deviceHeight, { scenario, palette });
  });
  lanes.wires.forEach((wire, i) => {
    drawWire(pen, wire, lanes.wireTop + i * lanes.wireHeight, lanes.wireHeight);
  });
  pen.context.restore();
}

// "0 → 1"; "data 0": the collectives of device 0 with those beside it along that axis.
const wireName = (w) => (w.axis ? `${w.axis} ${w.device}` : `${w.from} → ${w.to}`);

const deviceName = (number) => (innerWidth < 600 ? `dev. ${number}` : `device ${number}`);

function labelLanes(pen, lanes, top, height, name) {
  const every = Math.ceil(12 / height);
  lanes.forEach((lane, i) => {
    if (i % every === 0) pen.label(name(lane), top + (i + 0.5) * height);
  });
}

// Colours of every kind of op as numbers, plain ones first, then the pale ones.
function paints(kinds, lane) {
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const idle = rgb(lane);
  const plain = kinds.map((kind) => rgb(kind.colour));
  const pale = plain.map((colour) => colour.map((c, i) => Math.round(0.5 * c + 0.5 * idle[i])));
  return { idle, colours: plain.concat(pale), inks: kinds.map((kind) => kind.ink) };
}

function paintIndex(op, palette) {
  return op.kind + (op.pale ? palette.inks.length : 0);
}

// Indices [first, last) of the spans that touch the view. Spans of a device never overlap.
function visible(spans, pen) {
  const first = upperBound(spans.end, pen.begin, spans.count);
  return [first, upperBound(spans.start, pen.end, spans.count)];
}

function drawDevice(pen, device, top, height, { scenario, palette }) {
  const bar = height > 8 ? height - 4 : height * 0.8;
  pen.context.fillStyle = pen.colours.lane;
  pen.context.fillRect(pen.left, top, pen.width, bar);
  const [first, last] = visible(device.spans, pen);
  if (last - first > pen.width / 2) {
    drawCoverage(pen, device.spans, [first, last], { top, bar, scenario, palette });
    return;
  }
  for (let i = first; i < last; i++) {
    drawSpan(pen, device, i, { top, bar, scenario, palette });
  }
}

function drawSpan(pen, device, i, { top, bar, scenario, palette }) {
  const { spans } = device;
  const op = scenario.ops[spans.op[i]];
  const x = pen.x(spans.start[i]);
  const width = pen.x(spans.end[i]) - x;
  pen.context.fillStyle = `rgb(${palette.colours[paintIndex(op, palette)]})`;
  pen.context.fillRect(x, top, Math.max(0.7, width > 4 ? width - 1 : width), bar);
  if (bar < 12 || width < 10) return;
  const number = batchNumber(spans.microBatch[i], scenario);
  const whole = `${device.several ? op.stage : ''}${op.letter}${number}`;
  const text = width < 4 + 8 * whole.length ? op.letter : whole;
  const left = Math.max(x, pen.left);
  const right = Math.min(x + width, pen.left + pen.width);
  if (right - left < 8 * text.length) return;
  pen.context.fillStyle = op.pale ? pen.colours.ink : palette.inks[op.kind];
  pen.context.textAlign = 'center';
  pen.context.fillText(text, (left + right) / 2, top + bar / 2 + 0.5);
}

// Too many spans to draw one by one: each pixel column shows the mixture that its time holds.
function drawCoverage(pen, spans, [first, last], { top, bar, scenario, palette }) {
  const columns = Math.max(1, Math.round(pen.width * pen.ratio));
  const kinds = palette.colours.length;
  const covered = new Float32Array(columns * kinds);
  const perColumn = (pen.end - pen.begin) / columns;
  for (let i = first; i < last; i++) {
    const paint = paintIndex(scenario.ops[spans.op[i]], palette);
    const from = Math.max(0, (spans.start[i] - pen.begin) / perColumn);
    const to = Math.min(columns, (spans.end[i] - pen.begin) / perColumn);
    for (let column = Math.floor(from); column < to; column++) {
      const part = Math.min(to, column + 1) - Math.max(from, column);
      covered[column * kinds + paint] += part;
    }
  }
  paintColumns(pen, covered, columns, { top, bar, palette });
}

function paintColumns(pen, covered, columns, { top, bar, palette }) {
  const strip = new ImageData(columns, 1);
  const kinds = palette.colours.length;
  for (let column = 0; column < columns; column++) {
    let idle = 1;
    const mixed = [0, 0, 0];
    for (let kind = 0; kind < kinds; kind++) {
      const part = covered[column * kinds + kind];
      if (part === 0) continue;
      idle -= part;
      for (let c = 0; c < 3; c++) mixed[c] += part * palette.colours[kind][c];
    }
    for (let c = 0; c < 3; c++) {
      strip.data[4 * column + c] = mixed[c] + Math.max(0, idle) * palette.idle[c];
    }
    strip.data[4 * column + 3] = 255;
  }
  const scratch = new OffscreenCanvas(columns, 1);
  scratch.getContext('2d').putImageData(strip, 0, 0);
  pen.context.imageSmoothingEnabled = false;
  pen.context.drawImage(scratch, pen.left, top, pen.width, bar);
}

// Solid: the message occupies the wire; thin: latency until it arrives.
function drawWire(pen, wire, top, height) {
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
    if (wire.arrival[i] < drawnTo) continue;
    const from = pen.x(wire.start[i]);
    const middle = Math.max(from + 1, pen.x(wire.end[i]));
    context.fillRect(from, top, middle - from, thick);
    context.fillRect(middle, top + thick / 2 - 0.5, pen.x(wire.arrival[i]) - middle, 1.5);
    drawnTo = wire.arrival[i] + perPixel / 2;
  }
}

function describeLane(x, y, pen, scenario, lanes) {
  if (x < pen.left || x > pen.left + pen.width || y < 0 || y >= lanes.height) return null;
  const time = pen.time(x);
  const near = 2 * (pen.end - pen.begin) / pen.width;
  const device = lanes.devices[Math.floor(y / lanes.deviceHeight)];
  if (device) return describeDevice(device, time, near, scenario, pen);
  const wire = lanes.wires[Math.floor((y - lanes.wireTop) / lanes.wireHeight)];
  if (!wire) return null;
  const describe = wire.axis ? describeCollective : describeMessage;
  return describe(wire, time, near, scenario, pen);
}

// The entry of sorted lane `begin`..`end` at `time`, or the nearest within `near`; else -1.
function entryAt(begin, end, count, time, near) {
  const i = upperBound(begin, time, count) - 1;
  if (i >= 0 && time <= end[i]) return i;
  const since = i >= 0 ? time - end[i] : Infinity;
  const until = i + 1 < count ? begin[i + 1] - time : Infinity;
  if (Math.min(since, until) > near) return -1;
  return since < until ? i : i + 1;
}

// The micro-batch in its step, which slice of it `number` is, and how many slices and micro-batches
// there are. `parts` are the slices of each micro-batch where these differ in size.
function sliceOf(number, { micro_batches: numbers, slices, parts }) {
  const inStep = number % numbers;
  if (!parts.length) {
    const microBatch = Math.floor(inStep / slices);
    return { microBatch, slice: inStep % slices, slices, microBatches: numbers / slices };
  }
  let microBatch = 0;
  let slice = inStep;
  while (slice >= parts[microBatch]) slice -= parts[microBatch++];
  return { microBatch, slice, slices: parts[microBatch], microBatches: parts.length };
}

// The micro-batch in its step, "3", or "3.1" where it is one of several token slices.
function batchNumber(number, scenario) {
  const { microBatch, slice } = sliceOf(number, scenario);
  return scenario.slices > 1 ? `${microBatch}.${slice}` : `${microBatch}`;
}

function batchWords(number, scenario) {
  const step = Math.floor(number / scenario.micro_batches);
  const { microBatch, slice, slices, microBatches } = sliceOf(number, scenario);
  const words = scenario.slices > 1 ? `slice ${slice} of ${slices}, ` : '';
  return `${words}micro-batch ${microBatch} of ${microBatches} in step ${step} of the run`;
}

function describeDevice(device, time, near, scenario, pen) {
  const { spans } = device;
  const i = entryAt(spans.start, spans.end, spans.count, time, near);
  const range = pen.end - pen.begin;
  if (i < 0) return [`device ${device.number}: idle`, `at ${formatInstant(time, range)}`];
  const op = scenario.ops[spans.op[i]];
  const kind = scenario.palette.kinds[op.kind];
  const lines = [
    `device ${device.number}: ${op.letter}, ${kind.meaning}`,
    `stage ${op.stage}` + ('BIWH'.includes(op.letter) ? `, loss of stage ${op.loss}` : ''),
    batchWords(spans.microBatch[i], scenario),
    `starts ${formatInstant(spans.start[i], range)}`,
    `takes ${formatSeconds(spans.end[i] - spans.start[i])}`,
  ];
  if (op.pale) lines.push('trains nothing here');
  if (op.communication > 0) {
    lines.push(`of which ${formatSeconds(op.communication)} are exchanges with its group`);
  }
  if (spans.exposed && spans.exposed[i] > 0) {
    lines.push(`waited ${formatSeconds(spans.exposed[i])} for its message`);
  }
  return lines;
}

function describeMessage(wire, time, near, scenario, pen) {
  const i = entryAt(wire.start, wire.arrival, wire.count, time, near);
  if (i < 0) return [`link ${wire.from} → ${wire.to}: no message`];
  const [from, to, bytes] = scenario.channels[wire.channel[i]];
  const lines = [
    `message, device ${wire.from} → ${wire.to} (stage ${from} → ${to}), ${formatBytes(bytes)}`,
    batchWords(wire.microBatch[i], scenario),
    `starts ${formatInstant(wire.start[i], pen.end - pen.begin)}`,
    `takes ${formatSeconds(wire.arrival[i] - wire.start[i])}, of which latency ` +
      `${formatSeconds(wire.arrival[i] - wire.end[i])}`,
  ];
  if (wire.waited[i] > 0) lines.push(`waited ${formatSeconds(wire.waited[i])} for the link`);
  return lines;
}

function describeCollective(lane, time, near, scenario, pen) {
  const i = entryAt(lane.start, lane.end, lane.count, time, near);
  if (i < 0) return [`${lane.axis} group of device ${lane.device}: no collective`];
  const [kind, stage, bytes] = scenario.collectives[lane.collective[i]];
  const lines = [
    `${kind} of ${formatBytes(bytes)}, ${lane.axis} group of device ${lane.device}, stage ${stage}`,
    batchWords(lane.microBatch[i], scenario),
    `starts ${formatInstant(lane.start[i], pen.end - pen.begin)}`,
    `takes ${formatSeconds(lane.end[i] - lane.start[i])}`,
  ];
  if (lane.waited[i] > 0) lines.push(`waited ${formatSeconds(lane.waited[i])} for the one before`);
  return lines;
}
