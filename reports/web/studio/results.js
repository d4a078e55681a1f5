// Results: what an answer holds, drawn in place of the answer before it; and pins.
// SPDX-License-Identifier: Apache-2.0

// Puts markup of ours into `place`; nothing moves while it changes.
function fillWith(place, markup) {
  place.style.minHeight = `${place.offsetHeight}px`;
  place.innerHTML = markup;
  requestAnimationFrame(() => { place.style.minHeight = ''; });
}

// Returns draw(answer), which draws into the panel `place` and the headlines.
function makeResults(headlines, place) {
  const top = element('div', {});
  const charts = element('div', { className: 'charts' });
  const tables = element('div', {});
  place.append(top, charts, tables);
  let gone = null;
  let ticked = new Map();
  return async (answer, isNewest) => {
    const scenario = await unpackScenario(JSON.parse(answer.data));
    if (!isNewest()) return;
    fillWith(headlines, answer.headlines);
    headlines.querySelectorAll('div').forEach((card) => {
      card.title = [...card.querySelectorAll('.note')].map((note) => note.textContent).join(' ');
    });
    fillWith(top, answer.origin + answer.notes.map((note) => tagged('p', note)).join('') +
      answer.excerpt);
    const open = [...tables.querySelectorAll('details')].map((one) => one.open);
    fillWith(tables, `<h3>Numbers</h3>${answer.headlines}${answer.tables}`);
    tables.querySelectorAll('details').forEach((one, i) => { one.open = Boolean(open[i]); });
    if (gone) gone.abort();
    gone = new AbortController();
    scenario.gone = gone.signal;
    scenario.view = makeView(scenario.range, initialView(scenario));
    const fresh = element('div', {});
    charts.style.minHeight = `${charts.offsetHeight}px`;
    charts.replaceChildren(fresh);
    buildScenario(fresh, scenario);
    for (const box of fresh.querySelectorAll('input[type=checkbox]')) {
      const name = box.parentElement.textContent.trim();
      if (ticked.has(name)) box.checked = ticked.get(name);
      box.addEventListener('change', () => ticked.set(name, box.checked));
    }
    requestAnimationFrame(() => { charts.style.minHeight = ''; });
  };
}

function tagged(tag, text) {
  return element(tag, { className: 'note' }, text).outerHTML;
}

// Pins: scenarios that the present one is compared with, a row each.
function makePins(place, choose) {
  const pins = [];
  let now = null;
  const heads = (rows) => [...new Set(rows.flatMap(({ row }) => row.map(({ head }) => head)))]
    .filter((head) => head !== 'Scenario' && head !== 'Speed-up');
  const cell = (row, head) => {
    const found = row.find((one) => one.head === head);
    return found ? `${found.text} ${found.unit}` : '–';
  };
  const ratio = (pin) => {
    const times = pin.step_time_s / now.step_time_s;
    return `${threeDigits(times)}×`;
  };
  const draw = () => {
    place.hidden = pins.length === 0;
    if (place.hidden || !now) return;
    const rows = [{ ...now, own: true }, ...pins];
    const columns = heads(rows);
    const number = (...words) => element('th', { className: 'number' }, ...words);
    const head = [element('th', {}, 'Scenario'), number('Now is', element('small', {}, 'as fast')),
      ...columns.map((name) => number(name)), element('th', {})];
    const body = rows.map((one) => element('tr', { className: one.own ? 'now' : '' },
      element('td', {}, one.own ? `now: ${one.name}` : element('button', { type: 'button',
        className: 'link', title: 'Go back to this scenario', onclick: () => choose(one.text) },
      one.label)),
      element('td', { className: 'number' }, one.own ? '1' : ratio(one)),
      ...columns.map((name) => element('td', { className: 'number' }, cell(one.row, name))),
      element('td', {}, one.own ? '' : button('×', `Take ${one.label} away`, () => {
        pins.splice(pins.indexOf(one), 1);
        draw();
      }))));
    place.replaceChildren(element('h2', {}, 'Compared with'),
      scrolledTable('comparison', head, body));
  };
  let count = 0;
  return {
    show(answer) { now = answer; draw(); },
    add(text) {
      if (!now) return;
      count++;
      pins.push({ ...now, text, label: `${count}: ${now.name}` });
      draw();
    },
  };
}
