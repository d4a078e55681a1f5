// Losses checks: values at the cursor are the data's, and curves can be switched off.
// SPDX-License-Identifier: Apache-2.0
const runs = JSON.parse(
  document.querySelector('script[type="application/losses+json"]').textContent);
const plots = () => [...document.querySelectorAll('.plot')];
const shownTip = () => [...document.querySelectorAll('.tooltip')].find((tip) => !tip.hidden);
const lossIn = (words) => Number(/: ([0-9.]+) nats/.exec(words)[1]);

tell({
  'there are three pictures, with a curve for each run': () => {
    expect(plots().length === 3, plots().length);
    for (const svg of plots()) {
      expect(svg.querySelectorAll('.curve').length === runs.length, 'curves');
    }
  },
  'the cursor reads the first and the last values': () => {
    const [svg] = plots();
    svg.focus();
    for (const [key, index] of [['Home', 0], ['End', runs[0].loss.length - 1]]) {
      press(svg, key);
      for (const { name, loss } of runs) {
        const line = [...shownTip().children].find((node) => node.textContent.startsWith(name));
        const read = lossIn(line.textContent);
        expect(near(read, loss[index], 0.0006 * loss[index]), `${read} of ${loss[index]}`);
      }
    }
  },
  'a pointer reads them, too': () => {
    const svg = plots()[1];
    const box = svg.getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent('pointermove',
      { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 60 }));
    expect(shownTip().textContent.startsWith('measured time'), shownTip().textContent);
  },
  'a run that is switched off is gone everywhere': () => {
    document.querySelector('.legend input').click();
    for (const svg of plots()) {
      expect(svg.querySelectorAll('.curve').length === runs.length - 1, 'curves left');
    }
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
