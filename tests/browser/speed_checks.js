// Speed: how long a page takes to draw, in milliseconds; measured, never judged.
// SPDX-License-Identifier: Apache-2.0
(async () => {
  await whenReady();
  const ready = performance.now();
  const painted = performance.getEntriesByName('first-contentful-paint')[0];
  const times = [];
  buttons('Everything').click();
  await frame();
  for (let i = 0; i < 24; i++) {
    const begin = performance.now();
    buttons(i % 12 < 6 ? '+' : '−').click();
    await frame();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  const figures = {
    'first paint (ms)': painted ? painted.startTime : NaN,
    'charts (ms)': ready,
    'zoom step, median (ms)': times[12],
    'zoom step, longest (ms)': times[23],
    'heap (MB)': performance.memory.usedJSHeapSize / 1e6,
  };
  return Object.entries(figures).map(([name, value]) => `${name}\t${value.toFixed(1)}`).join('\n');
})();
