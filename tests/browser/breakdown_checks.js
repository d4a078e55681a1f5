// Breakdown checks: the parts of bars fill them, and each is named once.
// SPDX-License-Identifier: Apache-2.0
const svg = document.querySelector('.picture .panels svg');
const parts = [...svg.querySelectorAll('rect')].filter((rect) => rect.querySelector('title'));
const words = (part) => part.querySelector('title').textContent;
const bars = new Map();
for (const part of parts) {
  const bar = /^device ([^,]+), /.exec(words(part))[1];
  bars.set(bar, [...(bars.get(bar) || []), part]);
}

tell({
  'there is a bar for each device, and one for their mean': () => {
    const devices = document.querySelectorAll('.devices tbody tr').length;
    expect(bars.size === devices + 1, `${bars.size} bars of ${devices} devices`);
  },
  'the parts of a bar fill it': () => {
    const sum = (bar) => bar.reduce((all, part) => all + part.getBoundingClientRect().height, 0);
    const [whole] = [...bars.values()].map(sum);
    for (const [name, bar] of bars) {
      expect(near(sum(bar), whole, 0.5), `${sum(bar)} of ${whole} px: ${name}`);
      for (const part of bar) {
        const share = Number(/: ([0-9.]+)\s*$/.exec(words(part))[1]) / 100;
        const { height } = part.getBoundingClientRect();
        expect(near(height / whole, share, 0.0006 + 0.5 / whole), `${height} px: ${words(part)}`);
      }
    }
  },
  'the legend names every part once': () => {
    const names = [...document.querySelectorAll('.picture .legend li')]
      .map((entry) => entry.textContent.trim());
    const used = new Set(parts.map((part) => /^[^,]+, (.*), share of/.exec(words(part))[1]));
    expect(names.length === new Set(names).size, names.join());
    expect(names.length === used.size && names.every((name) => used.has(name)), [...used].join());
  },
  'idle time is hatched in the colours of the page': () => {
    const pattern = document.querySelector('.picture pattern rect[fill="#e5e5e5"]');
    const lane = document.createElement('i');
    lane.style.color = 'var(--lane)';
    document.body.append(lane);
    const wanted = getComputedStyle(lane).color;
    lane.remove();
    expect(getComputedStyle(pattern).fill === wanted, getComputedStyle(pattern).fill);
  },
  'letters are large enough to be read': () => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    expect(12 * scale >= 8, `${12 * scale} pixels`);
  },
  'nothing sticks out of the window': () => {
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} of ${innerWidth} pixels`);
  },
});
