// Losses checks: curves stand with their values, and can be switched off.
// SPDX-License-Identifier: Apache-2.0
const panels = () => [...document.querySelectorAll('.panels svg')];
const names = [...document.querySelectorAll('.legend li')].map((entry) => entry.textContent.trim());
const shown = (svg) => [...svg.querySelectorAll('.curve')]
  .filter((curve) => getComputedStyle(curve).display !== 'none');

tell({
  'there are three pictures, with a curve for each run': () => {
    expect(panels().length === 3 && names.length === 2, `${panels().length}, ${names.join()}`);
    for (const svg of panels()) expect(shown(svg).length === names.length, 'curves');
  },
  'a pointer on a curve meets its values': () => {
    panels()[1].scrollIntoView();
    const dot = panels()[1].querySelectorAll('.curve circle')[40].getBoundingClientRect();
    const met = document.elementFromPoint(dot.left + dot.width / 2, dot.top + dot.height / 2);
    const title = met.querySelector('title');
    expect(title && /^(fast|slow): measured time \(s\) [0-9.]+, loss \(nats\) [0-9.]+/
      .test(title.textContent), met.outerHTML);
  },
  'a run that is switched off is gone everywhere': () => {
    document.querySelector('.legend input').click();
    for (const svg of panels()) expect(shown(svg).length === names.length - 1, 'curves left');
    document.querySelector('.legend input').click();
    for (const svg of panels()) expect(shown(svg).length === names.length, 'curves back');
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
