// Data: expands the columns that page_data.cc wrote into typed arrays, one object per lane.
// SPDX-License-Identifier: Apache-2.0

// Returns the bytes of a zlib block in base64.
async function expand(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

// Sums up `numbers` in place: counters are written as differences.
function addUp(numbers) {
  for (let i = 1; i < numbers.length; i++) numbers[i] += numbers[i - 1];
  return numbers;
}

// Reads the columns of one scenario, which lie there plane by plane, see page_columns.h.
function columnReader(buffer) {
  const bytes = new Uint8Array(buffer);
  const read = (Numbers) => ([first, count]) => {
    const size = Numbers.BYTES_PER_ELEMENT;
    const column = new Uint8Array(count * size);
    for (let byte = 0, from = first; byte < size; byte++) {
      for (let to = byte; to < column.length; to += size) column[to] = bytes[from++];
    }
    return new Numbers(column.buffer);
  };
  return {
    floats: read(Float32Array), ints: read(Int32Array), shorts: read(Uint16Array),
    bytes: read(Uint8Array),
  };
}

// Returns lane and entry of the cause of each entry of lane `own`, see PlaceColumns; null if
// unknown.
function unpackCauses(packed, read, own, lanes) {
  if (!packed.cause_lane) return null;
  const lane = read.ints(packed.cause_lane);
  const entry = read.ints(packed.cause_step);
  const last = new Int32Array(lanes);
  for (let i = 0; i < entry.length; i++) {
    if (lane[i] === own) entry[i] = i - entry[i];
    else if (lane[i] >= 0) entry[i] = last[lane[i]] += entry[i];
  }
  return { lane, entry };
}

// Unpacks the ops of one device. busy[i] and useful[i] are the seconds of all ops before i, so that
// the utilisation of any stretch takes two binary searches.
function unpackSpans(packed, read, { ops, range }) {
  const gap = read.floats(packed.gap);
  const op = read.ints(packed.op);
  const duration = packed.duration ? read.floats(packed.duration) : null;
  const count = op.length;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const busy = new Float64Array(count + 1);
  const useful = new Float64Array(count + 1);
  let now = range[0];
  for (let i = 0; i < count; i++) {
    const { duration: planned, communication, useful: isUseful } = ops[op[i]];
    const length = duration ? duration[i] : planned;
    now += gap[i];
    start[i] = now;
    end[i] = now += length;
    const active = length - communication;
    busy[i + 1] = busy[i] + active;
    useful[i + 1] = useful[i] + (isUseful ? active : 0);
  }
  const exposed = packed.exposed ? read.floats(packed.exposed) : null;
  const microBatch = addUp(read.ints(packed.micro_batch));
  const wait = packed.wait ? read.bytes(packed.wait) : null;
  return { count, start, end, op, busy, useful, exposed, microBatch, wait };
}

const LEVELS_EVERY = 64; // changes between two that are kept by class

// Unpacks the memory of one device: total[i] bytes from time[i] on; changes at one instant are one
// entry. Entry 0 is the state at the start of the excerpt. levelsAt(i): bytes by class.
function unpackMemory(packed, read, { range }) {
  const gap = read.floats(packed.gap);
  const kind = read.shorts(packed.kind);
  const level = Float64Array.from(packed.at_begin);
  const classes = level.length;
  const most = gap.length + 1;
  const time = new Float64Array(most);
  const total = new Float64Array(most);
  const changes = new Uint32Array(most); // that are over by then
  const kept = new Float64Array((Math.floor(gap.length / LEVELS_EVERY) + 1) * classes);
  const highest = Float64Array.from(level);
  let sum = level.reduce((a, b) => a + b, 0);
  let entry = 0;
  let now = range[0];
  time[0] = now;
  total[0] = sum;
  for (let i = 0; i < gap.length; i++) {
    if (i % LEVELS_EVERY === 0) kept.set(level, i / LEVELS_EVERY * classes);
    if (gap[i] > 0) entry++;
    now += gap[i];
    const [which, bytes] = packed.pairs[kind[i]];
    level[which] += bytes;
    sum += bytes;
    highest[which] = Math.max(highest[which], level[which]);
    time[entry] = now;
    total[entry] = sum;
    changes[entry] = i + 1;
  }
  if (gap.length % LEVELS_EVERY === 0) kept.set(level, gap.length / LEVELS_EVERY * classes);
  const levelsAt = (i) => {
    const first = Math.floor(changes[i] / LEVELS_EVERY);
    const levels = kept.slice(first * classes, (first + 1) * classes);
    for (let c = first * LEVELS_EVERY; c < changes[i]; c++) {
      const [which, bytes] = packed.pairs[kind[c]];
      levels[which] += bytes;
    }
    return levels;
  };
  return { count: entry + 1, time, total, levelsAt, highest };
}

// Unpacks messages of a wire, or collectives of a group, which have no latency. `made` and `used`
// are ops of the devices `from` and `to`.
function unpackLane(packed, read, { range }) {
  const start = new Float64Array(packed.gap[1]);
  read.floats(packed.gap).forEach((gap, i) => { start[i] = (i ? start[i - 1] : range[0]) + gap; });
  const occupied = read.floats(packed.occupied);
  const end = start.map((time, i) => time + occupied[i]);
  const latency = packed.latency ? read.floats(packed.latency) : null;
  const arrival = latency ? end.map((time, i) => time + latency[i]) : end;
  const { from, to, axis, rank } = packed;
  return {
    from, to, axis, rank, count: start.length, start, end, arrival,
    waited: read.floats(packed.waited),
    what: read.ints(packed.what),
    microBatch: addUp(read.ints(packed.micro_batch)),
    made: packed.made ? addUp(read.ints(packed.made)) : null,
    used: packed.used ? addUp(read.ints(packed.used)) : null,
  };
}

async function unpackScenario(data) {
  const read = columnReader(await expand(data.columns));
  delete data.columns;
  for (const op of data.ops) op.kind = data.palette.kinds.findIndex((k) => k.letter === op.letter);
  const lanes = data.ranks.length + data.wires.length + data.groups.length;
  const devices = data.ranks.map((rank, i) => ({
    number: rank.device,
    stages: rank.stages,
    capacity: rank.capacity,
    several: rank.several,
    ...unpackSpans(rank.spans, read, data),
    causes: unpackCauses(rank.spans, read, i, lanes),
    memory: unpackMemory(rank.memory, read, data),
  }));
  const wires = data.wires.concat(data.groups).map((packed, i) => ({
    ...unpackLane(packed, read, data),
    causes: unpackCauses(packed, read, devices.length + i, lanes),
  }));
  // All lanes by number: what is known of an op, a message or a collective is in one of them.
  return { ...data, devices, wires, lanes: devices.concat(wires) };
}

// Returns the first index in sorted `array` (of `count`) whose value is greater than `value`.
function upperBound(array, value, count) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
