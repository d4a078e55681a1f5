// Answers: explain, search and plan, asked from the page, with what they found to click.
// SPDX-License-Identifier: Apache-2.0

// Adds a panel with a button that asks, a bar of progress and a button that cancels. `question()`
// returns what to ask, `show(place, answer)` draws it. Returns changed(), to be called when the
// scenario is another one: what is asked is given up, and what was found says so.
function addAsking(place, { words, note, form, question, show }) {
  const bar = element('progress', { max: 1, value: 0, hidden: true });
  const said = element('span', { className: 'note' });
  said.setAttribute('role', 'status');
  const trouble = element('p', { className: 'alarm', hidden: true });
  const found = element('div', {});
  let control = null;
  const running = (on) => {
    bar.hidden = stop.hidden = !on;
    start.disabled = on;
    if (!on) control = null;
  };
  const run = async () => {
    if (control) return;
    control = new AbortController();
    const { signal } = control;
    bar.removeAttribute('value');
    said.textContent = '';
    trouble.hidden = true;
    running(true);
    const told = ({ done, of }) => {
      bar.value = of ? done / of : 0;
      said.textContent = `${done} of ${of}`;
    };
    try {
      const answer = await engine.ask(question(), { told, signal });
      said.textContent = '';
      found.replaceChildren();
      old.hidden = true;
      show(found, answer);
    } catch (error) {
      said.textContent = error.name === 'AbortError' ? 'Cancelled.' : '';
      trouble.hidden = error.name === 'AbortError';
      trouble.textContent = error instanceof EngineLost ? lostWords(error) : error.message;
    }
    running(false);
  };
  const start = button(words, note, run);
  const stop = button('Cancel', 'Give this up', () => control && control.abort());
  stop.hidden = true;
  const old = element('p', { className: 'note', hidden: true },
    'Found for the scenario before its last change.');
  place.append(element('p', { className: 'note' }, note), ...(form ? [form] : []),
    element('div', { className: 'tools' }, start, stop, bar, said), trouble, old, found);
  return () => {
    if (control) control.abort();
    old.hidden = !found.hasChildNodes();
  };
}

// A table that scrolls sideways where it is too wide.
function scrolledTable(className, head, rows) {
  return element('div', { className: 'scroll' }, element('table', { className },
    element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)));
}

function addExplain(place, page) {
  return addAsking(place, {
    words: 'Explain',
    note: 'Where the time of a step goes, and what one step better in each thing would bring.',
    question: () => ({ ask: 'explain', text: page.text() }),
    show(found, { limit, json }) {
      const told = JSON.parse(json);
      const worth = told.changes.filter(({ gain }) => gain > 0.0005);
      const rows = worth.map((change) => element('tr', {},
        element('td', {}, element('button', { type: 'button', title: change.set.join(', '),
          onclick: () => page.apply(change.set) }, 'Apply')),
        element('td', { className: 'number' }, formatPercent(change.gain)),
        element('td', {}, change.change + (change.fits_in_memory ? '' : ' (does not fit)')),
        element('td', { className: 'note' }, change.kind)));
      const head = ['', 'saves', 'change', 'of the'].map((name) => element('th', {}, name));
      found.append(element('p', {}, `What limits the step: ${limit}.`));
      if (!rows.length) found.append(element('p', {}, 'No single change would shorten the step.'));
      else found.append(scrolledTable('advice', head, rows));
    },
  });
}

// Lets links of a chart, "#scenario-3", choose text 3 of `texts`.
function leadTo(place, texts, page) {
  place.querySelectorAll('a[href^="#scenario-"]').forEach((link) => {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const number = Number(link.getAttribute('href').split('-').pop());
      const text = texts[number] || '';
      if (text) page.replace(text);
    });
  });
}

function addSearch(place, page) {
  return addAsking(place, {
    words: 'Search',
    note: 'The plans worth having for this model on these devices: degrees, sizes, schedules.',
    question: () => ({ ask: 'search', text: page.text() }),
    show(found, { texts, chart, json }) {
      if (!texts.length) {
        found.append(element('p', { className: 'alarm' }, 'No plan is within the limits.'));
        return;
      }
      const { plans } = JSON.parse(json);
      const picture = element('div', {});
      picture.innerHTML = chart;
      leadTo(picture, texts, page);
      const rows = plans.map((plan, i) => element('tr', {},
        element('td', {}, element('button', { type: 'button', title: plan.words,
          onclick: () => page.replace(texts[i]) }, 'Use')),
        element('td', { className: 'number' }, formatSeconds(plan.step_time_s)),
        element('td', { className: 'number' }, formatBytes(plan.memory_bytes)),
        element('td', { className: 'words' }, plan.words)));
      const head = ['', 'step', 'memory', 'plan'].map((name) => element('th', {}, name));
      found.append(picture, scrolledTable('advice', head, rows));
    },
  });
}

function addPlan(place, page, schema) {
  const machines = element('input', { value: 'dgx-h100', id: 'plan-machines' });
  const list = element('datalist', { id: 'plan-machine-names' },
    ...namesFor(schema, ['cluster']).map((name) => element('option', { value: name })));
  machines.setAttribute('list', list.id);
  const devices = element('input', { value: '8..64x2', id: 'plan-devices' });
  const tokens = element('input', { value: '1T', id: 'plan-tokens' });
  const samples = element('input', { id: 'plan-samples' }); // of models that have no tokens
  const form = element('div', { className: 'choices-grid' }, list, field('Machines', machines),
    field('Sizes', devices), field('Tokens', tokens), field('or samples', samples));
  return addAsking(place, {
    words: 'Plan',
    note: 'How many devices, which, how long and how much: the best plan of each size.',
    form,
    question: () => {
      const model = nodeAtPath(page.text(), 'model');
      return { ask: 'plan', options: {
        model: model && model.kind === 'scalar' ? String(model.value) : '',
        machines: machines.value.split(',').map((name) => name.trim()),
        devices: devices.value, tokens: tokens.value, samples: samples.value } };
    },
    show(found, answer) {
      found.innerHTML = answer.page;
      leadTo(found, answer.texts, page);
    },
  });
}
