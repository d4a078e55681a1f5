// Studio: many changes in a row; no answer that is shown is older than one shown before.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the first answer comes': () => studioCalm(),
  'fifty changes end with the answer to the last': async () => {
    const seen = [];
    new MutationObserver(() => {
      const found = /mean of (\d+) step/.exec(find('#headlines').textContent);
      if (found) seen.push(Number(found[1]));
    }).observe(find('#headlines'), { childList: true, subtree: true });
    const line = scenarioText().split('\n').findIndex((one) => one.includes('"steps"'));
    for (let i = 1; i <= 50; i++) {
      mirror().replaceRange(`    "steps": ${10 + i}`, { line, ch: 0 }, { line, ch: 99 });
      if (i % 3 === 0) await frame();
    }
    await studioCalm();
    expect(document.documentElement.dataset.version === '51', 'not fifty changes');
    expect(seen[seen.length - 1] === 60, `shown: ${seen.join(' ')}`);
    expect(seen.every((one, i) => i === 0 || one >= seen[i - 1]),
      `out of order: ${seen.join(' ')}`);
  },
  'the numbers are those of the same text asked once': async () => {
    const shown = find('#headlines').textContent;
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 999 }));
    expect(find('#headlines').textContent === shown, 'other numbers');
  },
});
