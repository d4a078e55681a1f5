// Controls: what is chosen and slid, written into the scenario's text.
// SPDX-License-Identifier: Apache-2.0

const SLIDER_STEPS = 24; // for each doubling or halving of a quantity
const MOST_DOUBLINGS = 6; // of a quantity, either way

const CHOICES = [
  ['model', 'Model', ['model']],
  ['machine', 'Machine', ['cluster.machine', 'cluster.name', 'cluster']],
  ['strategy', 'Strategy', ['training.strategy.kind', 'training.strategy']],
  ['schedule', 'Schedule', ['training.schedule.kind', 'training.schedule']],
];
const COUNTS = [
  ['cluster.devices', 'Devices', 1],
  ['training.global_batch_size', 'Batch (samples)', 1],
  ['parallel.pipeline', 'Pipeline', 1],
];
const upTo = (most) => Array.from({ length: most }, (_, i) => i + 1);
const MOST_BATCHES = 1024; // on the slider
const divisorsOf = (batch) => upTo(Math.min(batch || 256, MOST_BATCHES))
  .filter((size) => !batch || batch % size === 0);
const COUNT_SLIDERS = [
  ['training.micro_batches', 'Micro-batches', (counts) => divisorsOf(
    counts['training.global_batch_size'])],
  ['training.strategy.n_wise', 'Heads: stages that a loss trains', ({ stages }) => upTo(stages)],
];

// Returns the names that the schema offers for `path`.
function namesFor(schema, path) {
  const key = path[path.length - 1];
  return [...new Set(schemasAt(schema, key.split('.'), '{}')
    .flatMap((one) => [].concat(one.enum || [], one.examples || []))
    .filter((name) => typeof name === 'string'))];
}

// Splits "450 GB/s" into a number and the rest.
function quantityOf(text) {
  const found = /^\s*([0-9.eE+-]+)\s*(.*)$/.exec(text);
  return found && Number(found[1]) > 0 ? { number: Number(found[1]), unit: found[2] } : null;
}

const shortNumber = (number) => String(Number(number.toPrecision(3)));

// Adds the controls to `place`. `set(settings)` writes [[path, value], ...] into the scenario.
// Returns update(text, answer, fresh): shows what a text says, and where it says nothing what the
// last answer told; `fresh`: that is the answer to this text.
function addControls(place, schema, set) {
  const grid = element('div', { className: 'choices-grid' });
  const dials = element('div', { className: 'dials' });
  place.append(grid, dials);
  const updates = [
    ...CHOICES.map((choice) => addSelect(grid, choice, schema, set)),
    ...COUNTS.map((count) => addCount(grid, count, set)),
    ...COUNT_SLIDERS.map((slider) => addCountSlider(dials, slider, set)),
    addQuantities(dials, set),
  ];
  return (text, answer, fresh) => updates.forEach((update) => update(text, answer, fresh));
}

function field(name, control, ...more) {
  return element('label', { className: 'field' }, element('span', {}, name, ...more), control);
}

function addSelect(place, [id, name, paths], schema, set) {
  const names = namesFor(schema, paths);
  const own = element('option', { value: '' }, 'as written');
  const select = element('select', { id: `choose-${id}`, onchange: () => {
    if (select.value === '') return;
    // An object gives way as a whole; a machine keeps its number of devices.
    const devices = id === 'machine' && nodeAtPath(place.dataset.text, 'cluster.devices');
    const value = devices ? { machine: select.value, devices: devices.value } : select.value;
    set([[paths[paths.length - 1], value]]);
  } }, own, ...names.map((one) => element('option', { value: one }, one)));
  place.append(field(name, select));
  return (text) => {
    place.dataset.text = text;
    const path = paths.find((one) => (nodeAtPath(text, one) || {}).kind === 'scalar');
    const node = path && nodeAtPath(text, path);
    const changed = path === 'cluster.name';
    own.hidden = Boolean(node && !changed && names.includes(node.value));
    own.textContent = node ? `${node.value}${changed ? ', changed' : ''}` : 'as written';
    select.value = own.hidden ? node.value : '';
  };
}

function addCount(place, [path, name, least], set) {
  const input = element('input', { type: 'number', min: least, step: 1, id: `count-${path}`,
    oninput: () => {
      if (input.validity.valid && input.value) set([[path, Number(input.value)]]);
    } });
  const label = field(name, input);
  place.append(label);
  return (text, answer) => {
    const node = nodeAtPath(text, path);
    const value = node && node.kind === 'scalar' ? node.value : answer && answer.counts[path];
    if (document.activeElement !== input) input.value = value ?? '';
  };
}

function addCountSlider(place, [path, name, sizesOf], set) {
  const shown = element('span', { className: 'value' });
  let now = 1;
  let sizes = [1];
  const input = element('input', { type: 'range', min: 1, step: 1, id: `slide-${path}`,
    oninput: () => {
      const asked = Number(input.value);
      if (asked === now) return;
      const ends = [sizes[0], sizes[sizes.length - 1]];
      now = asked > now ? sizes.find((size) => size >= asked) || ends[1]
        : sizes.findLast((size) => size <= asked) || ends[0];
      input.value = now;
      shown.textContent = now;
      const settings = [[path, now]];
      // The other way to say it gives way.
      if (path === 'training.micro_batches' &&
          nodeAtPath(place.dataset.text, 'training.micro_batch_size')) {
        settings.unshift(['training.micro_batch_size', null]);
      }
      set(settings);
    } });
  const label = field(name, input, shown);
  place.append(label);
  return (text, answer) => {
    place.dataset.text = text;
    const node = nodeAtPath(text, path);
    const value = node && node.kind === 'scalar' ? node.value : answer && answer.counts[path];
    label.hidden = value === undefined || value === null;
    if (label.hidden) return;
    if (answer) sizes = sizesOf(answer.counts);
    input.max = Math.max(value, ...sizes);
    input.value = value;
    now = value;
    shown.textContent = value;
  };
}

// Sliders of bandwidths, latencies and memory. The middle of each is what the scenario said when
// its machine was chosen.
function addQuantities(place, set) {
  let machine = null;
  const sliders = new Map();
  const add = ({ name, path, value }) => {
    const base = quantityOf(value);
    if (!base) return null;
    const shown = element('span', { className: 'value' });
    const most = SLIDER_STEPS * MOST_DOUBLINGS;
    const input = element('input', { type: 'range', min: -most, max: most, step: 1, value: 0,
      id: `slide-${path}`, oninput: () => {
        const number = base.number * 2 ** (Number(input.value) / SLIDER_STEPS);
        const words = `${shortNumber(number)} ${base.unit}`;
        shown.textContent = words;
        set([[path, words]]);
      } });
    const label = field(name, input, shown);
    place.append(label);
    return { label, input, shown, base };
  };
  const show = (slider, value) => {
    const quantity = quantityOf(value);
    slider.shown.textContent = value;
    if (!quantity || quantity.unit !== slider.base.unit) return;
    if (document.activeElement === slider.input) return;
    const turns = Math.log2(quantity.number / slider.base.number) * SLIDER_STEPS;
    slider.input.value = Math.round(turns);
  };
  return (text, answer, fresh) => {
    if (!fresh) return;
    const node = nodeAtPath(text, 'cluster.machine') || nodeAtPath(text, 'cluster.name') ||
      nodeAtPath(text, 'cluster');
    const now = node && node.kind === 'scalar' ? node.value : 'own';
    const same = now === machine && answer.dials.every(({ path }) => sliders.has(path));
    if (!same) {
      for (const { label } of sliders.values()) label.remove();
      sliders.clear();
      for (const dial of answer.dials) {
        const slider = add(dial);
        if (slider) sliders.set(dial.path, slider);
      }
      machine = now;
    }
    for (const { path, value } of answer.dials) {
      const slider = sliders.get(path);
      const written = nodeAtPath(text, path);
      if (slider) show(slider, written && written.kind === 'scalar' ? written.value : value);
    }
  };
}
