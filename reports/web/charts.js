// Charts: the tools, legends and charts of one scenario.
// SPDX-License-Identifier: Apache-2.0

const DEVICES_AT_ONCE = 8; // in the charts of utilisation and memory
const STEPS_AT_FIRST = 1;

function button(text, title, onclick) {
  return element('button', { type: 'button', title, onclick }, text);
}

function tick(text, checked, onchange) {
  const box = element('input', { type: 'checkbox', checked, onchange });
  return { box, label: element('label', {}, box, ` ${text}`) };
}

function initialView(scenario) {
  const [begin, end] = scenario.window;
  const shown = Math.min(end, scenario.range[1], begin + STEPS_AT_FIRST * scenario.step_time);
  return scenario.range[1] > scenario.range[0] && shown > begin ? [begin, shown] : scenario.range;
}

function tools(scenario) {
  const { view } = scenario;
  const middle = () => (view.begin + view.end) / 2;
  const step = () => view.show(scenario.window[0], scenario.window[0] + scenario.step_time);
  return element('div', { className: 'tools' },
    button('−', 'Zoom out', () => view.zoom(2, middle())),
    button('+', 'Zoom in', () => view.zoom(0.5, middle())),
    button('◀', 'Earlier', () => view.pan(-(view.end - view.begin) / 3)),
    button('▶', 'Later', () => view.pan((view.end - view.begin) / 3)),
    button('One step', 'The first measured step', step),
    button('Measured', 'The measured window', () => view.show(...scenario.window)),
    button('Everything', 'All that this page holds', () => view.show(...scenario.range)));
}

function legend(entries) {
  return element('ul', { className: 'legend' }, ...entries.map(([colour, text]) => {
    const box = element('span', { className: 'box' });
    box.style.background = colour;
    return element('li', {}, box, text);
  }));
}

function opLegend(scenario) {
  const kinds = scenario.palette.kinds.filter((kind) => kind.used);
  const entries = kinds.map((kind) => [kind.colour, `${kind.letter} ${kind.meaning}`]);
  if (scenario.ops.some((op) => op.pale)) {
    const pale = 'color-mix(in srgb, #56b4e9 50%, var(--lane))';
    entries.push([pale, 'pale: trains nothing on its device']);
  }
  if (scenario.wires.length) entries.push(['var(--faint)', 'message (thin: latency)']);
  entries.push(['var(--lane)', 'idle']);
  return legend(entries);
}

function utilisationLegend() {
  const meanings = { busy: 'busy: executes anything', useful: 'of it useful' };
  return legend([...UTILISATION_LAYERS.map(([name, colour]) => [colour, meanings[name]]),
    ['var(--lane)', 'idle']]);
}

function memoryLegend(scenario) {
  const held = (c) => scenario.devices.some(({ memory }) => memory.highest[c] > 0);
  return legend(scenario.palette.classes
    .filter((look, c) => held(c))
    .map((look) => [look.colour, look.meaning]));
}

// Adds a choice of the devices that the small charts show, if not all fit.
function devicePicker(scenario, onchange) {
  const count = scenario.devices.length;
  if (count <= DEVICES_AT_ONCE) return { node: '', devices: () => scenario.devices };
  const select = element('select', { onchange });
  for (let first = 0; first < count; first += DEVICES_AT_ONCE) {
    const last = Math.min(count, first + DEVICES_AT_ONCE) - 1;
    select.append(element('option', { value: String(first) }, `${first} to ${last} of ${count}`));
  }
  const first = () => Number(select.value);
  return {
    node: element('label', {}, 'Devices in the next charts: ', select),
    devices: () => scenario.devices.slice(first(), first() + DEVICES_AT_ONCE),
  };
}

function buildScenario(place, scenario) {
  const charts = [];
  const redraw = () => charts.forEach((chart) => chart.redraw());
  const wires = tick('messages', scenario.wires.length <= 32, redraw);
  const path = tick('critical path', false, redraw);
  const marks = criticalPath(scenario);
  const capacity = tick('axis up to the capacity', capacityIsNear(scenario), redraw);
  const picker = devicePicker(scenario, redraw);
  const options = {
    wires: () => wires.box.checked,
    toCapacity: () => capacity.box.checked,
    devices: picker.devices,
    path: () => (path.box.checked ? marks : null),
    select: (node) => {
      scenario.selected = node;
      redraw();
      say(scenario, timeline.pen());
    },
  };
  scenario.paintByOp = paintsOfOps(scenario);
  const bar = tools(scenario);
  if (scenario.wires.length) bar.append(wires.label);
  if (marks) bar.append(path.label);
  place.append(bar, opLegend(scenario));
  if (scenario.devices.length > MOST_LANES) {
    place.append(element('p', { className: 'note' },
      `The timeline shows devices 0 to ${MOST_LANES - 1} of ${scenario.devices.length}.`));
  }
  const timeline = addTimeline(place, scenario, options);
  charts.push(timeline);
  const say = addSelectionLine(place);
  say(scenario);
  place.append(picker.node, utilisationLegend());
  charts.push(addUtilisation(place, scenario, options));
  const memoryTools = element('div', { className: 'tools' });
  if (mostCapacity(scenario) > 0) memoryTools.append(capacity.label);
  place.append(memoryLegend(scenario), memoryTools);
  charts.push(addMemory(place, scenario, options));
  redraw();
}
