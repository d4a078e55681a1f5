// Speed: how long a page takes to draw, in milliseconds; measured, never judged.
// SPDX-License-Identifier: Apache-2.0
(async () => {
  await whenReady();
  const ready = performance.now();
  const painted = performance.getEntriesByName('first-contentful-paint')[0];
  const times = []; // from the start of the frame until all charts are drawn in it
  buttons('Everything').click();
  await frame();
  for (let i = 0; i < 24; i++) {
    buttons(i % 12 < 6 ? '+' : '−').click();
    await new Promise((resolve) => requestAnimationFrame((begin) => {
      times.push(performance.now() - begin);
      setTimeout(resolve, 0);
    }));
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
