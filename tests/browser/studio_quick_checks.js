// Studio: many changes in a row; no answer that is shown is older than one shown before.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the first answer comes': () => studioCalm(),
  'fifty changes end with the answer to the last': async () => {
    const seen = [];
    new MutationObserver(() => {
      const found = /(\d+) micro-batch/.exec(find('#panel-step').textContent);
      if (found) seen.push(Number(found[1]));
    }).observe(find('#panel-step'), { childList: true, subtree: true });
    const slider = find('[id="slide-training.micro_batches"]');
    for (let i = 1; i <= 50; i++) {
      slider.value = String(i);
      slider.dispatchEvent(new Event('input'));
      if (i % 3 === 0) await frame();
    }
    await studioCalm();
    expect(scenarioText().includes('"micro_batches": 50'), scenarioText());
    expect(seen[seen.length - 1] === 50, `shown: ${seen.join(' ')}`);
    expect(seen.every((one, i) => i === 0 || one >= seen[i - 1]), `out of order: ${seen.join(' ')}`);
  },
  'the numbers are those of the same text asked once': async () => {
    const shown = find('#headlines').textContent;
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 999 }));
    expect(find('#headlines').textContent === shown, 'other numbers');
  },
});
