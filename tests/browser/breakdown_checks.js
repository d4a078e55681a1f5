// Breakdown checks: bars are as wide as they say, and their parts fill them.
// SPDX-License-Identifier: Apache-2.0
const bars = () => [...document.querySelectorAll('.breakdown li > div')];

tell({
  'there is a bar for each device, and one for their mean': () => {
    const devices = document.querySelectorAll('.devices tbody tr').length;
    expect(bars().length === devices + 1, `${bars().length} bars of ${devices} devices`);
  },
  'each part is as wide as its number says': () => {
    for (const bar of bars()) {
      const whole = bar.getBoundingClientRect().width;
      for (const part of bar.children) {
        const share = Number(/: ([0-9.]+) ?% of a step/.exec(part.title)[1]) / 100;
        const { width } = part.getBoundingClientRect();
        expect(near(width / whole, share, 0.0006 + 0.5 / whole), `${width} px: ${part.title}`);
      }
    }
  },
  'the parts of a bar fill it': () => {
    for (const bar of bars()) {
      const whole = bar.getBoundingClientRect().width;
      const sum = [...bar.children].reduce((a, part) => a + part.getBoundingClientRect().width, 0);
      expect(near(sum, whole, 0.5), `${sum} of ${whole} px: ${bar.getAttribute('aria-label')}`);
    }
  },
  'the legend names every part once': () => {
    const names = [...document.querySelector('.breakdown').previousElementSibling.children]
      .map((entry) => entry.textContent);
    const used = new Set([...document.querySelectorAll('.breakdown i')]
      .map((part) => /^[^,]+, (.*): [^:]+$/.exec(part.title)[1]));
    expect(names.length === new Set(names).size, names.join());
    expect(names.length === used.size && names.every((name) => used.has(name)), [...used].join());
  },
  'numbers in bars lie inside them': () => {
    for (const number of document.querySelectorAll('.breakdown b')) {
      const own = number.getBoundingClientRect();
      const part = number.parentElement.getBoundingClientRect();
      expect(own.left >= part.left && own.right <= part.right, `${number.textContent} is cut off`);
    }
  },
});
