// Speed checks: how long a page takes to draw, in milliseconds; measured, never judged.
// SPDX-License-Identifier: Apache-2.0
tell({
  speed: async () => {
    const painted = performance.getEntriesByName('first-contentful-paint')[0];
    const drawn = performance.now();
    const times = [];
    buttons('Everything').click();
    await frame();
    for (let i = 0; i < 12; i++) {
      const begin = performance.now();
      buttons(i < 6 ? '+' : '−').click();
      await frame();
      times.push(performance.now() - begin);
    }
    times.sort((a, b) => a - b);
    const heap = performance.memory ? performance.memory.usedJSHeapSize / 1e6 : 0;
    throw new Error(`first paint ${painted ? painted.startTime.toFixed(0) : '?'} ms, charts ` +
      `${drawn.toFixed(0)} ms, zoom step median ${times[6].toFixed(1)} ms, longest ` +
      `${times[11].toFixed(1)} ms, heap ${heap.toFixed(0)} MB`);
  },
});
