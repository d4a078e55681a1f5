// Graph: why things began when they did, back from one op along what each one waited for.
// SPDX-License-Identifier: Apache-2.0
//
// A node is {lane, entry}: an op of a device, a message of a wire or a collective of a group.

const MOST_LINKS = 100000; // of one chain

// Returns the node that `node` waited for last; null if it started with the run, or the cause is
// unknown.
function causeOf(scenario, { lane, entry }) {
  const { causes } = scenario.lanes[lane];
  if (!causes || causes.lane[entry] < 0) return null;
  return { lane: causes.lane[entry], entry: causes.entry[entry] };
}

// Returns `node`, its cause, the cause of that, and so on, while they end after `until`.
function chainOf(scenario, node, until) {
  const chain = [];
  for (let at = node; at && chain.length < MOST_LINKS; at = causeOf(scenario, at)) {
    if (at !== node && scenario.lanes[at.lane].end[at.entry] <= until) break;
    chain.push(at);
  }
  return chain;
}

// Returns for each lane 1 where an entry is on the critical path of the measured window; null if
// the path is unknown.
function criticalPath(scenario) {
  if (!scenario.path_end) return null;
  const marks = scenario.lanes.map((lane) => new Uint8Array(lane.count));
  const [lane, entry] = scenario.path_end;
  for (const node of chainOf(scenario, { lane, entry }, scenario.window[0])) {
    marks[node.lane][node.entry] = 1;
  }
  return marks;
}

// Returns the messages that op `node` used, or made: [{made, message, used}], of which an op may be
// unknown.
function messagesOf(scenario, node, side) {
  const found = [];
  scenario.wires.forEach((wire, i) => {
    const mine = side === 'used' ? wire.to : wire.from;
    if (!wire.made || mine !== node.lane) return;
    const next = (from) => wire[side].indexOf(node.entry, from);
    for (let m = next(0); m >= 0; m = next(m + 1)) {
      const end = (lane, entry) => (entry < 0 ? null : { lane, entry });
      found.push({
        made: end(wire.from, wire.made[m]),
        message: { lane: scenario.devices.length + i, entry: m },
        used: end(wire.to, wire.used[m]),
      });
    }
  });
  return found;
}

// By the numbers of Wait in sim/causes/causes.h.
const WAITS = [
  '', 'its device was free', 'the activation arrived', 'the gradient arrived',
  'the exchange was over', 'another stream had come so far', 'the queue of messages had room',
  'the message before it had left',
];

// Says why `node` began when it did: "when the gradient arrived: message 2 → 1".
function whyItBegan(scenario, node) {
  const lane = scenario.lanes[node.lane];
  if (!lane.causes) return '';
  const cause = causeOf(scenario, node);
  if (!cause) return 'began: nothing in this picture came before it';
  const words = lane.wait ? WAITS[lane.wait[node.entry]] : '';
  return `began when ${words || 'it could'}, after ${nodeName(scenario, cause)}`;
}

// Returns "B3 of device 2", "message 2 → 1", "all-reduce of data 0".
function nodeName(scenario, { lane, entry }) {
  const at = scenario.lanes[lane];
  if (at.op) return `${opLabel(at, entry, scenario)} of device ${at.number}`;
  if (at.axis) return `${scenario.collectives[at.what[entry]][0]} of ${laneName(at, scenario)}`;
  return `message ${laneName(at, scenario)}`;
}
