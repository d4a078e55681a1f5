// Describe: ops, messages and collectives in words.
// SPDX-License-Identifier: Apache-2.0

// Returns the micro-batch in its step, the slice of it that `number` is, and the number of slices
// and micro-batches. `parts` are the slices of each micro-batch where these differ in size.
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

// Returns the micro-batch in its step, "3", or "3.1" where it is one of several token slices.
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

// Returns lines about `node`, the first one as a heading.
function describeNode(node, scenario, pen) {
  const lane = scenario.lanes[node.lane];
  const range = pen.end - pen.begin;
  if (lane.op) return describeOp(lane, node, scenario, range);
  return (lane.axis ? describeCollective : describeMessage)(lane, node.entry, scenario, range);
}

function describeOp(device, { entry: i, time }, scenario, range) {
  if (i < 0) return [`device ${device.number}: idle`, `at ${formatInstant(time, range)}`];
  const op = scenario.ops[device.op[i]];
  const kind = scenario.palette.kinds[op.kind];
  const lines = [
    `device ${device.number}: ${op.letter}, ${kind.meaning}`,
    `stage ${op.stage}` + ('BIWH'.includes(op.letter) ? `, loss of stage ${op.loss}` : ''),
    batchWords(device.microBatch[i], scenario),
    `starts ${formatInstant(device.start[i], range)}`,
    `takes ${formatSeconds(device.end[i] - device.start[i])}`,
  ];
  if (op.pale) lines.push('trains nothing here');
  if (op.communication > 0) {
    lines.push(`of which ${formatSeconds(op.communication)} are exchanges with its group`);
  }
  if (device.exposed && device.exposed[i] > 0) {
    lines.push(`waited ${formatSeconds(device.exposed[i])} for its message`);
  }
  return lines;
}

function describeMessage(wire, i, scenario, range) {
  const name = laneName(wire, scenario);
  if (i < 0) return [`link ${name}: no message`];
  const [from, to, bytes] = scenario.channels[wire.what[i]];
  const lines = [
    `message, device ${name} (stage ${from} → ${to}), ${formatBytes(bytes)}`,
    batchWords(wire.microBatch[i], scenario),
    `starts ${formatInstant(wire.start[i], range)}`,
    `takes ${formatSeconds(wire.arrival[i] - wire.start[i])}, of which latency ` +
      `${formatSeconds(wire.arrival[i] - wire.end[i])}`,
  ];
  if (wire.waited[i] > 0) lines.push(`waited ${formatSeconds(wire.waited[i])} for the link`);
  return lines;
}

function describeCollective(group, i, scenario, range) {
  const { number } = scenario.devices[group.rank];
  if (i < 0) return [`${group.axis} group of device ${number}: no collective`];
  const [kind, stage, bytes] = scenario.collectives[group.what[i]];
  const lines = [
    `${kind} of ${formatBytes(bytes)}, ${group.axis} group of device ${number}, stage ${stage}`,
    batchWords(group.microBatch[i], scenario),
    `starts ${formatInstant(group.start[i], range)}`,
    `takes ${formatSeconds(group.end[i] - group.start[i])}`,
  ];
  const waited = group.waited[i];
  if (waited > 0) lines.push(`waited ${formatSeconds(waited)} for the one before`);
  return lines;
}
