// Data: unpacks what page_data.cc packed into typed arrays, one object per lane.
// SPDX-License-Identifier: Apache-2.0

function unpack(base64, Numbers) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Numbers(bytes.buffer);
}

// Spans of one device. busy[i] and useful[i] are the seconds of all spans before i, so that the
// utilisation of any stretch takes two binary searches.
function unpackSpans(packed, ops) {
  const count = packed.count;
  const start = unpack(packed.start, Float64Array);
  const op = unpack(packed.op, Uint32Array);
  const duration = packed.duration ? unpack(packed.duration, Float32Array) : null;
  const end = new Float64Array(count);
  const busy = new Float64Array(count + 1);
  const useful = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) {
    const length = duration ? duration[i] : ops[op[i]].duration;
    end[i] = start[i] + length;
    const active = length - ops[op[i]].communication;
    busy[i + 1] = busy[i] + active;
    useful[i + 1] = useful[i] + (ops[op[i]].useful ? active : 0);
  }
  const exposed = packed.exposed ? unpack(packed.exposed, Float32Array) : null;
  const microBatch = unpack(packed.micro_batch, Int32Array);
  return { count, start, end, op, busy, useful, exposed, microBatch };
}

// Memory of one device: levels[c][i] bytes of class c from time[i] on; changes at one instant are
// one entry. Entry 0 is the state at the beginning of the excerpt.
function unpackMemory(packed, begin) {
  const gap = unpack(packed.gap, Float32Array);
  const kind = unpack(packed.kind, Uint16Array);
  const level = packed.at_begin.slice();
  const time = new Float64Array(packed.count + 1);
  const total = new Float64Array(packed.count + 1);
  const levels = level.map(() => new Float64Array(packed.count + 1));
  let entry = 0;
  let now = begin;
  const store = () => {
    time[entry] = now;
    total[entry] = 0;
    for (let c = 0; c < level.length; c++) {
      levels[c][entry] = level[c];
      total[entry] += level[c];
    }
  };
  store();
  for (let i = 0; i < packed.count; i++) {
    if (gap[i] > 0) entry++;
    now += gap[i];
    const pair = packed.pairs[kind[i]];
    level[pair[0]] += pair[1];
    store();
  }
  return { count: entry + 1, time, total, levels };
}

// Messages of one wire.
function unpackWire(packed) {
  const start = unpack(packed.start, Float64Array);
  const occupied = unpack(packed.occupied, Float32Array);
  const latency = unpack(packed.latency, Float32Array);
  const end = start.map((time, i) => time + occupied[i]);
  const arrival = end.map((time, i) => time + latency[i]);
  const waited = unpack(packed.waited, Float32Array);
  const channel = unpack(packed.channel, Uint32Array);
  const microBatch = unpack(packed.micro_batch, Int32Array);
  const { from, to, count } = packed;
  return { from, to, count, start, end, arrival, waited, channel, microBatch };
}

// Collectives of one lane, in the form of messages without latency.
function unpackLane(packed) {
  const start = unpack(packed.start, Float64Array);
  const duration = unpack(packed.duration, Float32Array);
  const end = start.map((time, i) => time + duration[i]);
  const waited = unpack(packed.waited, Float32Array);
  const collective = unpack(packed.collective, Uint32Array);
  const microBatch = unpack(packed.micro_batch, Int32Array);
  const { axis, device, count } = packed;
  return { axis, device, count, start, end, arrival: end, waited, collective, microBatch };
}

function unpackScenario(data) {
  for (const op of data.ops) op.kind = data.palette.kinds.findIndex((k) => k.letter === op.letter);
  const devices = data.ranks.map((rank) => ({
    number: rank.device,
    stages: rank.stages,
    several: rank.several,
    spans: unpackSpans(rank.spans, data.ops),
    memory: unpackMemory(rank.memory, data.range[0]),
  }));
  const wires = data.wires.map(unpackWire).concat(data.lanes.map(unpackLane));
  return { ...data, devices, wires };
}

// The first index in sorted `array` (of `count`) whose value is greater than `value`.
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
