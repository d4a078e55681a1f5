// Sweep checks: heat-map, curves and Pareto front against the data that the page holds.
// SPDX-License-Identifier: Apache-2.0
const sweep = JSON.parse(
  document.querySelector('script[type="application/sweep+json"]').textContent);
const shownTip = () => [...document.querySelectorAll('.tooltip')].find((tip) => !tip.hidden);
const measureOf = (...keys) => sweep.measures.findIndex(({ key }) => keys.includes(key));
const fitting = sweep.results.filter(({ fails }) => !fails);
const signOf = (measure) => (sweep.measures[measure].more_is_better ? 1 : -1);

// Chooses `words` in the first choice that `label` names.
function choose(label, words) {
  const select = [...document.querySelectorAll('.view-tools label')]
    .find((node) => node.textContent.startsWith(label)).querySelector('select');
  select.value = [...select.options].find((option) => option.text === words).value;
  select.dispatchEvent(new Event('change'));
}

const rows = () => [...document.querySelectorAll('.heat tbody tr')]
  .map((row) => [...row.cells].slice(1));
const cellOf = ({ at }) => rows()[at[0]][at[1]];

tell({
  'each cell has the number of its result': () => {
    const busy = measureOf('busy');
    choose('Measure', 'busy');
    expect(rows().length === sweep.axes[0].values.length, 'rows');
    expect(rows()[0].length === sweep.axes[1].values.length, 'columns');
    for (const result of sweep.results) {
      const words = cellOf(result).textContent;
      const number = Number(words.replace(/[^0-9.]/g, ''));
      expect(near(number, 100 * result.values[busy], 0.051), `${words} of ${result.name}`);
    }
  },
  'one cell is the best of those that fit': () => {
    const busy = measureOf('busy');
    const best = Math.max(...fitting.map(({ values }) => values[busy]));
    const marked = sweep.results.filter((result) => cellOf(result).classList.contains('best'));
    expect(marked.length === 1 && marked[0].values[busy] === best, marked.length);
    expect(!marked[0].fails, 'it does not fit');
  },
  'cells that do not fit are marked, and say why': () => {
    const failing = sweep.results.filter(({ fails }) => fails);
    expect(failing.length > 0, 'the sweep has none');
    expect(document.querySelectorAll('.heat .fails').length === failing.length, 'marks');
    for (const result of failing) {
      cellOf(result).dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
      expect(shownTip().textContent.includes('Does not fit'), shownTip().textContent);
    }
  },
  'axes can be exchanged': () => {
    choose('Across', sweep.axes[0].name);
    expect(rows().length === sweep.axes[1].values.length, 'rows');
    choose('Across', sweep.axes[1].name);
    expect(rows().length === sweep.axes[0].values.length, 'rows, back again');
  },
  'keys move among cells, and Enter leads to the section': () => {
    const cells = rows();
    cells[0][0].focus();
    press(cells[0][0], 'ArrowRight');
    press(cells[0][1], 'ArrowDown');
    expect(document.activeElement === cells[1][1], 'the second cell of the second row');
    press(cells[1][1], 'Enter');
    const index = sweep.results.findIndex(({ at }) => at[0] === 1 && at[1] === 1);
    expect(document.activeElement.id === `scenario-${index}`, document.activeElement.id);
  },
  'the front is what nothing that fits beats, by definition': () => {
    const chosen = [measureOf('peak_memory_bytes'),
      measureOf('tokens_per_s', 'samples_per_s', 'steps_per_s')];
    const gains = ({ values }) => chosen.map((measure) => signOf(measure) * values[measure]);
    const distinct = new Map(fitting.map((result) => [gains(result).join(), gains(result)]));
    const front = [...distinct.values()].filter(([a, b]) => fitting.map(gains)
      .every(([c, d]) => c < a || d < b || (c === a && d === b)));
    const listed = document.querySelectorAll('.front-list li').length;
    expect(listed === front.length, `${listed} of ${front.length}`);
    expect(document.querySelectorAll('.on-front').length === front.length, 'points');
  },
  'a mark for each result, which keys reach and Enter leaves': () => {
    const marks = [...document.querySelectorAll('.plot [role=img]')];
    expect(marks.length === sweep.results.length, marks.length);
    const crosses = marks.filter((mark) => mark.classList.contains('cross')).length;
    expect(crosses === sweep.results.length - fitting.length, `${crosses} crosses`);
    expect(marks.filter((mark) => mark.getAttribute('tabindex') === '0').length === 1, 'stops');
    const first = marks.find((mark) => mark.getAttribute('tabindex') === '0');
    first.focus();
    press(first, 'ArrowRight');
    const second = document.activeElement;
    expect(second !== first && marks.includes(second), 'the next point');
    expect(shownTip().textContent.includes(second.getAttribute('aria-label')), 'its name');
    press(second, 'Enter');
    expect(document.activeElement.id.startsWith('scenario-'), 'the section');
  },
  'a curve has the values of its path': () => {
    const [svg] = document.querySelectorAll('.plot');
    const last = sweep.axes[1].values.length - 1;
    svg.focus();
    press(svg, 'End');
    expect(shownTip().textContent.includes(sweep.axes[1].values[last].label), 'the last value');
    const curves = svg.querySelectorAll('.curve').length;
    expect(curves === sweep.axes[0].values.length, `${curves} curves`);
    document.querySelector('#sweep .legend input').click();
    expect(svg.querySelectorAll('.curve').length === curves - 1, 'one switched off');
    document.querySelector('#sweep .legend input').click();
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
