// Studio: nothing lies outside the window, and nothing moves while an answer comes.
// SPDX-License-Identifier: Apache-2.0
const boxOf = (selector) => find(selector).getBoundingClientRect();

tell({
  'the first answer comes': () => studioCalm(),
  'the page is as wide as the window': () => {
    const { scrollWidth, clientWidth } = document.documentElement;
    expect(scrollWidth <= clientWidth, `${scrollWidth} pixels in ${clientWidth}`);
  },
  'every control is large enough to be hit': () => {
    const controls = '#controls select, #controls input, #tools button';
    for (const one of document.querySelectorAll(controls)) {
      const box = one.getBoundingClientRect();
      expect(!box.width || (box.width >= 38 && box.height >= 19), `${one.id}: ${box.height} high`);
    }
  },
  'every control has a name': () => {
    for (const one of document.querySelectorAll('#controls select, #controls input')) {
      expect(one.labels.length === 1 && one.labels[0].textContent.trim(), one.id);
    }
  },
  'letters stand out from their ground': () => {
    const style = getComputedStyle(document.documentElement);
    const light = (name) => {
      const hex = style.getPropertyValue(name).trim().slice(1);
      const parts = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    for (const ink of ['--ink', '--faint', '--json-key', '--json-text', '--json-number']) {
      for (const ground of ['--paper', '--card']) {
        const [a, b] = [light(ink), light(ground)].sort((one, other) => other - one);
        expect((a + 0.05) / (b + 0.05) >= 4.5, `${ink} on ${ground}`);
      }
    }
  },
  'nothing moves when a number changes': async () => {
    const before = ['#tabs', '#panel-step canvas', '#scenario'].map((one) => boxOf(one).top);
    await enter('[id="slide-training.micro_batches"]', '2');
    const after = ['#tabs', '#panel-step canvas', '#scenario'].map((one) => boxOf(one).top);
    expect(before.every((top, i) => Math.abs(top - after[i]) < 1), `${before} became ${after}`);
  },
  'nothing moves when the text is wrong': async () => {
    const before = boxOf('#tabs').top;
    await change(() => mirror().replaceRange('x', { line: 1, ch: 1 }));
    expect(!find('#trouble').hidden && boxOf('#tabs').top === before, 'the page moves');
    await change(() => mirror().replaceRange('', { line: 1, ch: 1 }, { line: 1, ch: 2 }));
  },
});
