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
