// Sizing checks: a row and a point for each size, the best is marked, machines can be switched off.
// SPDX-License-Identifier: Apache-2.0
const panels = () => [...document.querySelectorAll('.panels svg')];
const shown = (svg) => [...svg.querySelectorAll('.curve')]
  .filter((curve) => getComputedStyle(curve).display !== 'none');
const [sizes, plans] = document.querySelectorAll('table');
const rows = (table) => [...table.querySelectorAll('tbody tr')];

tell({
  'each size has a row, and its plan in words': () => {
    expect(rows(sizes).length === 6, `${rows(sizes).length} sizes`);
    expect(rows(plans).length === 6, `${rows(plans).length} plans`);
    for (const { textContent } of rows(plans)) {
      expect(/tensor \d+, pipeline \d+/.test(textContent), textContent);
    }
  },
  'the recommended size is named, and marked in table and curves': () => {
    const text = document.body.textContent;
    const [, devices, machine] = text.match(/Recommended: (\d+) devices of ([^,]+),/) || [];
    const best = rows(sizes).filter((row) => /best/i.test(row.textContent));
    expect(best.length === 1, `${best.length} rows are the best`);
    expect(best[0].textContent.includes(machine) && best[0].textContent.includes(devices),
      `${devices} of ${machine}, but ${best[0].textContent}`);
    const words = [...panels()[0].querySelectorAll('text')].map((text) => text.textContent.trim());
    expect(words.filter((word) => word === 'best').length === 1, words.join());
  },
  'there are three pictures, with a curve for each machine and a point for each size': () => {
    expect(panels().length === 3, `${panels().length} pictures`);
    for (const svg of panels()) {
      expect(shown(svg).length === 2, `${shown(svg).length} curves`);
      for (const curve of shown(svg)) {
        expect(curve.querySelectorAll('circle').length === 3, curve.outerHTML);
      }
    }
  },
  'more devices take less time': () => {
    for (const curve of shown(panels()[0])) {
      const dots = [...curve.querySelectorAll('circle')];
      const heights = dots.map((dot) => Number(dot.getAttribute('cy')));
      expect(heights.every((y, i) => i === 0 || y > heights[i - 1]), heights.join());
    }
  },
  'a pointer on a point meets its size and its value': () => {
    panels()[0].scrollIntoView();
    const dot = panels()[0].querySelectorAll('.curve circle')[1].getBoundingClientRect();
    const met = document.elementFromPoint(dot.left + dot.width / 2, dot.top + dot.height / 2);
    const title = met.querySelector('title');
    expect(title && /^\S+ x 4: devices 4, time \(.+\) [0-9.]+/.test(title.textContent),
      met.outerHTML);
  },
  'a machine that is switched off is gone everywhere': () => {
    document.querySelector('.legend input').click();
    for (const svg of panels()) expect(shown(svg).length === 1, 'it is still there');
    document.querySelector('.legend input').click();
    for (const svg of panels()) expect(shown(svg).length === 2, 'it does not come back');
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
