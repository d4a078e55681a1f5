// Memory over time: bytes of each class, stacked, with the capacity of each device.
// SPDX-License-Identifier: Apache-2.0

const MEMORY_ROW = 84;
const MEMORY_PLOT = 72;

function addMemory(parent, scenario, options) {
  const devices = () => options.devices();
  const most = memoryCeiling(scenario);
  return addChart(parent, {
    title: memoryTitle(scenario),
    scenario,
    view: scenario.view,
    height: () => devices().length * MEMORY_ROW,
    draw: (pen) => devices().forEach((device, i) => {
      drawMemory(pen, device, i * MEMORY_ROW, { scenario, most: most(options.toCapacity()) });
    }),
    describe: (x, y, pen) => {
      return describeMemory(x, pen, devices()[Math.floor(y / MEMORY_ROW)], scenario);
    },
  });
}

function memoryTitle({ devices }) {
  const most = mostCapacity({ devices });
  if (!(most > 0)) return 'Memory over time by class';
  const alike = devices.every(({ capacity }) => capacity === most);
  const has = alike ? `the ${formatBytes(most)} that a device has` : 'what each device has';
  return `Memory over time by class; dashed: ${has}`;
}

// Returns the bytes of the largest device; 0 where none is known.
function mostCapacity({ devices }) {
  return Math.max(0, ...devices.map(({ capacity }) => capacity));
}

function memoryPeak(scenario) {
  let peak = 1;
  for (const { memory } of scenario.devices) {
    for (let i = 0; i < memory.count; i++) peak = Math.max(peak, memory.total[i]);
  }
  return peak;
}

// Returns whether the capacity is near enough to the peak to be on the axis unasked.
function capacityIsNear(scenario) {
  const most = mostCapacity(scenario);
  return most > 0 && most < 2 * memoryPeak(scenario);
}

// Returns the top of the axis, the same for all devices.
function memoryCeiling(scenario) {
  const peak = memoryPeak(scenario);
  const most = Math.max(peak, mostCapacity(scenario));
  return (toCapacity) => 1.05 * (toCapacity ? most : peak);
}

// Returns for each pixel column the entry with the highest total in its time, so that no peak is
// lost; -1 outside the excerpt.
function entriesByColumn(memory, pen, [first, last]) {
  const columns = Math.ceil(pen.width);
  const chosen = new Int32Array(columns);
  let i = Math.max(0, upperBound(memory.time, pen.begin, memory.count) - 1);
  for (let column = 0; column < columns; column++) {
    const end = pen.time(pen.left + column + 1);
    let best = i;
    while (i + 1 < memory.count && memory.time[i + 1] < end) {
      i++;
      if (memory.total[i] > memory.total[best]) best = i;
    }
    const inside = end > first && pen.time(pen.left + column) < last;
    chosen[column] = inside ? best : -1;
  }
  return chosen;
}

// Returns the bytes by class of each column; nothing outside the excerpt.
function levelsByColumn(memory, chosen) {
  let last = null;
  return Array.from(chosen, (entry, column) => {
    if (entry < 0) return null;
    if (column === 0 || entry !== chosen[column - 1]) last = memory.levelsAt(entry);
    return last;
  });
}

function drawMemory(pen, device, top, { scenario, most }) {
  drawRowFrame(pen, top, MEMORY_PLOT, [formatBytes(most), '0 B']);
  pen.label(deviceName(device.number), top + MEMORY_PLOT / 2);
  pen.clip();
  const { memory } = device;
  const chosen = entriesByColumn(memory, pen, scenario.range);
  const levels = levelsByColumn(memory, chosen);
  const base = new Float64Array(chosen.length);
  const bottom = top + MEMORY_PLOT;
  const y = (bytes) => bottom - bytes / most * MEMORY_PLOT;
  scenario.palette.classes.forEach((look, c) => {
    pen.context.fillStyle = look.colour;
    pen.context.beginPath();
    for (let column = 0; column < chosen.length; column++) {
      const bytes = levels[column] ? levels[column][c] : 0;
      if (!(bytes > 0)) continue;
      const height = y(base[column]) - y(base[column] + bytes);
      pen.context.rect(pen.left + column, y(base[column] + bytes), 1.05, height);
      base[column] += bytes;
    }
    pen.context.fill();
  });
  drawCapacity(pen, device.capacity, y, top);
  pen.context.restore();
}

function drawCapacity(pen, capacity, y, top) {
  if (!(capacity > 0) || y(capacity) < top) return;
  const { context, colours } = pen;
  context.strokeStyle = colours.ink;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(pen.left, y(capacity));
  context.lineTo(pen.left + pen.width, y(capacity));
  context.stroke();
  context.setLineDash([]);
}

function describeMemory(x, pen, device, scenario) {
  if (!device || x < pen.left || x > pen.left + pen.width) return null;
  const { memory } = device;
  const column = Math.min(Math.ceil(pen.width) - 1, Math.floor(x - pen.left));
  const i = entriesByColumn(memory, pen, scenario.range)[column];
  if (i < 0) return null;
  const at = formatInstant(pen.time(x), pen.end - pen.begin);
  const lines = [`device ${device.number} at ${at}: ${formatBytes(memory.total[i])}`];
  const levels = memory.levelsAt(i);
  scenario.palette.classes.forEach((look, c) => {
    const bytes = levels[c];
    if (bytes > 0) lines.push(`${look.meaning}: ${formatBytes(bytes)}`);
  });
  return lines;
}
