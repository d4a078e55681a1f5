// Selection: one op, message or collective, with arrows to what it needed and what needs it.
// SPDX-License-Identifier: Apache-2.0

// Also the chain of those that it had to wait for.

// Returns the middle of lane number `lane` in the picture; null if it is not shown.
function laneMiddle(lane, scenario, lanes) {
  if (lane < lanes.devices.length) return lane * lanes.deviceHeight + lanes.bar / 2;
  const row = lane - scenario.devices.length;
  if (row < 0 || row >= lanes.wires.length) return null;
  return lanes.wireTop + row * lanes.wireHeight + Math.max(2, lanes.wireHeight - 5) / 2;
}

function drawSelection(pen, scenario, lanes) {
  const { context, colours } = pen;
  const chain = chainOf(scenario, scenario.selected, pen.begin);
  context.lineWidth = 2;
  context.strokeStyle = colours.accent;
  chain.forEach((node, i) => {
    outline(pen, node, scenario, lanes);
    if (i > 0) connect(pen, node, chain[i - 1], scenario, lanes);
  });
  context.lineWidth = 1.2;
  for (const [side, style] of [['used', colours.ink], ['made', colours.faint]]) {
    context.strokeStyle = context.fillStyle = style;
    for (const { made, used } of messagesOf(scenario, scenario.selected, side)) {
      if (made && used) arrow(pen, made, used, scenario, lanes);
    }
  }
  context.lineWidth = 3;
  context.strokeStyle = colours.ink;
  outline(pen, scenario.selected, scenario, lanes);
}

// Draws a frame around `node`.
function outline(pen, { lane, entry }, scenario, lanes) {
  const { start, end, arrival } = scenario.lanes[lane];
  const middle = laneMiddle(lane, scenario, lanes);
  if (middle === null) return;
  const height = lane < scenario.devices.length ? lanes.bar : Math.max(4, lanes.wireHeight - 3);
  const x = pen.x(start[entry]);
  const width = Math.max(2, pen.x((arrival || end)[entry]) - x);
  if (x > pen.left + pen.width || x + width < pen.left) return;
  pen.context.strokeRect(x, middle - height / 2, width, height);
}

// Draws a line from the end of one node to the start of the next of a chain, if they lie on
// different lanes.
function connect(pen, from, to, scenario, lanes) {
  if (from.lane === to.lane) return;
  const [y, y2] = [from, to].map((node) => laneMiddle(node.lane, scenario, lanes));
  if (y === null || y2 === null) return;
  const before = scenario.lanes[from.lane];
  const { context } = pen;
  context.beginPath();
  context.moveTo(pen.x((before.arrival || before.end)[from.entry]), y);
  context.lineTo(pen.x(scenario.lanes[to.lane].start[to.entry]), y2);
  context.stroke();
}

// Draws an arrow from the end of op `made` to the start of op `used`.
function arrow(pen, made, used, scenario, lanes) {
  const [y, y2] = [made, used].map((node) => laneMiddle(node.lane, scenario, lanes));
  if (y === null || y2 === null) return;
  const { context } = pen;
  const x = pen.x(scenario.lanes[made.lane].end[made.entry]);
  const x2 = pen.x(scenario.lanes[used.lane].start[used.entry]);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x2, y2);
  context.stroke();
  const angle = Math.atan2(y2 - y, x2 - x);
  context.beginPath();
  context.moveTo(x2, y2);
  for (const side of [-0.4, 0.4]) {
    context.lineTo(x2 - 9 * Math.cos(angle + side), y2 - 9 * Math.sin(angle + side));
  }
  context.fill();
}

// Returns the op of `device` nearest to `time`; null if it has none.
function opNearest(device, lane, time) {
  const entry = entryAt(device.start, device.end, device.count, time, Infinity);
  return entry < 0 || entry >= device.count ? null : { lane, entry };
}

// Returns the node that `key` selects in place of the selected one; undefined if the key is not
// ours.
function nodeByKey(key, pen, scenario) {
  const { selected, lanes, devices } = scenario;
  const middle = (pen.begin + pen.end) / 2;
  if (key === 'Enter') return selected || opNearest(devices[0], 0, middle);
  if (!selected) return undefined;
  const { lane, entry } = selected;
  const beside = (step) => {
    const next = entry + step;
    return next >= 0 && next < lanes[lane].count ? { lane, entry: next } : selected;
  };
  const across = (step) => {
    const other = lane + step;
    const there = other >= 0 && other < devices.length;
    return (there && opNearest(devices[other], other, lanes[lane].start[entry])) || selected;
  };
  const moves = {
    ',': () => beside(-1),
    '.': () => beside(1),
    '<': () => causeOf(scenario, selected) || selected,
    ArrowUp: () => across(-1),
    ArrowDown: () => across(1),
    Escape: () => null,
  };
  return moves[key] && moves[key]();
}

// Moves the selection as `key` says, and brings the new node into view. Returns whether the key is
// ours.
function moveSelection(key, pen, scenario, options) {
  const node = nodeByKey(key, pen, scenario);
  if (node === undefined) return false;
  options.select(node);
  if (!node) return true;
  const { view } = scenario;
  const time = scenario.lanes[node.lane].start[node.entry];
  if (time < view.begin || time > view.end) view.pan(time - (view.begin + view.end) / 2);
  return true;
}

// Adds the line below a timeline that says what is selected.
function addSelectionLine(parent) {
  const line = element('p', { className: 'selection' });
  line.setAttribute('aria-live', 'polite');
  parent.append(line);
  return (scenario, pen) => {
    const node = scenario.selected;
    if (!node) {
      line.textContent = 'Click an op, or press Enter, to see what it waited for.';
      return;
    }
    const lines = describeNode(node, scenario, pen).concat(whyItBegan(scenario, node));
    line.textContent = `${lines.filter(Boolean).join('; ')}.`;
  };
}
