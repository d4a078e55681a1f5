// Sweep checks: a measure is chosen, curves are switched off, cells and points lead to sections.
// SPDX-License-Identifier: Apache-2.0
const [measures, tradeOffs] = document.querySelectorAll('.choices');
const shown = (place) => [...place.children].filter((part) => part.offsetHeight > 0);
const isHere = (node) => node && node.getBoundingClientRect().top < innerHeight;

const isSeen = (curve) => getComputedStyle(curve).display !== 'none';

// Chooses the part that `words` name above `place`.
function choose(place, words) {
  const select = place.previousElementSibling.querySelector('select');
  select.value = [...select.options].find((option) => option.text === words).value;
  select.dispatchEvent(new Event('change'));
}

tell({
  'one measure is shown, the one that is chosen': () => {
    expect(measures.children.length > 4, `${measures.children.length} measures`);
    for (const words of ['busy (%)', 'memory (GiB)']) {
      choose(measures, words);
      const parts = shown(measures);
      expect(parts.length === 1 && parts[0].dataset.name === words, parts.length);
      expect(parts[0].querySelector('caption').textContent === words, 'its table');
      expect(parts[0].querySelector('svg[role=group]').textContent.includes(words), 'its curves');
    }
  },
  'throughput stands against what is chosen': () => {
    choose(tradeOffs, 'exposed communication (ms)');
    const parts = shown(tradeOffs);
    expect(parts.length === 1 && /exposed communication/.test(parts[0].textContent), parts.length);
    choose(tradeOffs, 'memory (GiB)');
  },
  'cells that do not fit are marked, and say why; so are points': () => {
    const [part] = shown(measures);
    const cells = [...part.querySelectorAll('.heat .fails')];
    expect(cells.length === 1 && cells[0].title.startsWith('Does not fit'), cells.length);
    expect(part.querySelectorAll('.curve path[stroke="#b3261e"]').length === 1, 'no cross');
  },
  'letters of cells are told apart from what is below them': () => {
    const parts = (words) => words.match(/[0-9.]+/g).map(Number);
    for (const cell of shown(measures)[0].querySelectorAll('td[style]')) {
      const [paper, ink] = [getComputedStyle(cell).backgroundColor, getComputedStyle(cell).color]
        .map((words) => parts(words).slice(0, 3).map((part) =>
          (words.startsWith('color(') ? 255 * part : part)).reduce((a, b) => a + b) / 3);
      expect(Math.abs(paper - ink) > 60, `${paper} and ${ink}`);
    }
  },
  'a cell and a point lead to the section of their result': () => {
    for (const link of [shown(measures)[0].querySelector('.heat a[href="#scenario-4"]'),
      shown(tradeOffs)[0].querySelector('a[href="#scenario-2"]')]) {
      scrollTo(0, 0);
      link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
      const section = document.querySelector(link.getAttribute('href'));
      expect(section === document.querySelector(':target') && isHere(section), section.id);
    }
  },
  'sections but the first, the fastest and the front are folded; a link opens one': async () => {
    const folds = [...document.querySelectorAll('section > details')];
    expect(folds.length === 9 && folds[0].open, `${folds.length} sections`);
    const marked = folds.filter((fold) => fold.querySelector('.mark'));
    expect(marked.length > 0 && marked.every((fold) => fold.open), 'a marked one is folded');
    const closed = folds.findIndex((fold) => !fold.open);
    expect(closed > 0, 'all are open');
    const link = document.querySelector(`.comparison a[href="#scenario-${closed}"]`);
    link.click();
    await frames();
    await frames();
    expect(folds[closed].open && isHere(folds[closed]), 'it stays folded');
    const [canvas] = folds[closed].querySelectorAll('canvas');
    expect(canvas.width > 100, `its timeline is ${canvas.width} pixels wide`);
  },
  'all sections open and fold': () => {
    const folds = [...document.querySelectorAll('section > details')];
    const press = (words) => [...document.querySelectorAll('#timelines button')]
      .find((node) => node.textContent === words).click();
    press('Open all');
    expect(folds.every((fold) => fold.open), 'one is folded');
    press('Fold all');
    expect(folds.every((fold) => !fold.open), 'one is open');
    press('Open all');
  },
  'the comparison is sorted by any column, and back': () => {
    const table = document.querySelector('.comparison');
    const heads = [...table.tHead.rows[0].cells];
    const column = heads.findIndex((head) => head.textContent.startsWith('Step time'));
    const values = () => [...table.tBodies[0].rows].map((row) => +row.cells[column].textContent);
    const ordered = (list) => list.every((value, i) => i === 0 || list[i - 1] <= value);
    heads[column].querySelector('button').click();
    expect(ordered(values().reverse()), values().join(' '));
    expect(heads[column].getAttribute('aria-sort') === 'descending', 'it does not say so');
    heads[column].querySelector('button').click();
    expect(ordered(values()), values().join(' '));
  },
  'the comparison is copied as it is shown, as CSV and as LaTeX': async () => {
    const place = document.querySelector('#comparison');
    const copied = [];
    Object.defineProperty(navigator, 'clipboard', { configurable: true,
      value: { writeText: async (text) => copied.push(text) } });
    const filter = place.querySelector('input[type=search]');
    const type = (words) => {
      filter.value = words;
      filter.dispatchEvent(new Event('input'));
    };
    type('gpipe');
    for (const words of ['CSV', 'LaTeX']) {
      [...place.querySelectorAll('button')]
        .find((button) => button.textContent === `Copy as ${words}`).click();
    }
    await until(() => copied.length === 2);
    const cells = [...place.querySelectorAll('tbody tr')].filter((row) => !row.hidden)
      .map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    type('');
    const [csv, latex] = copied.map((text) => text.trim().split('\n'));
    expect(cells.length === 3 && csv.length === 4, csv.join(' / '));
    cells.forEach((row, i) => expect(csv[i + 1] === row.join(','), csv[i + 1]));
    const rows = latex.filter((line) => line.startsWith('schedule'));
    cells.forEach((row, i) => {
      const name = row[0].replaceAll('_', '\\_').replaceAll('|', '\\textbar{}');
      const line = `${[name, ...row.slice(1)].join(' & ')} \\\\`.replaceAll('–', '--');
      expect(rows[i] === line, `${rows[i]} for ${line}`);
    });
  },
  'the comparison leaves only rows with all words': () => {
    const place = document.querySelector('#comparison');
    const filter = place.querySelector('input[type=search]');
    const rows = [...place.querySelectorAll('tbody tr')];
    const type = (words) => {
      filter.value = words;
      filter.dispatchEvent(new Event('input'));
    };
    type('schedule=1F1B batches=4');
    const left = rows.filter((row) => !row.hidden);
    expect(left.length === 1, left.map((row) => row.textContent).join('; '));
    expect(/1 of 9 rows/.test(place.textContent), 'it does not say how many');
    type('nothing like this');
    expect(rows.every((row) => row.hidden), 'a row is left');
    type('');
    expect(rows.every((row) => !row.hidden), 'a row does not come back');
  },
  'names are broken between words only': () => {
    const cell = document.querySelector('.comparison td');
    const before = cell.innerHTML;
    cell.textContent = 'schedule=interleaved_zero_bubble micro_batches=8';
    const range = document.createRange();
    range.setStart(cell.firstChild, 0);
    range.setEnd(cell.firstChild, cell.textContent.indexOf(' '));
    const lines = range.getClientRects().length;
    cell.innerHTML = before;
    expect(lines === 1, `a word on ${lines} lines`);
  },
  'points and curves are told apart from dark paper': () => {
    if (!matchMedia('(prefers-color-scheme: dark)').matches) return;
    const light = (words) => {
      const [r, g, b] = words.match(/[0-9.]+/g).map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = light(getComputedStyle(document.body).backgroundColor);
    for (const node of document.querySelectorAll('.curve :is(circle, path)')) {
      const { fill, stroke } = getComputedStyle(node);
      const paint = node.hasAttribute('stroke') ? stroke : fill;
      const ratio = (light(paint) + 0.05) / (paper + 0.05);
      expect(ratio > 4, `${paint} has a contrast of ${ratio}`);
    }
  },
  'a curve is switched off and on': () => {
    const [part] = shown(measures);
    const seen = () => [...part.querySelectorAll('.curve')].filter(isSeen).length;
    expect(seen() === 3, `${seen()} curves`);
    part.querySelector('.legend input').click();
    expect(seen() === 2, 'it is still there');
    part.querySelector('.legend input').click();
    expect(seen() === 3, 'it does not come back');
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
