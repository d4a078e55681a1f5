// Studio's speed: from a change of the text until its answer is drawn; measured, never judged.
// SPDX-License-Identifier: Apache-2.0
(async () => {
  await whenReady();
  await studioCalm();
  const first = performance.now(); // since the page was opened
  const root = document.documentElement;
  const answered = () => new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (root.dataset.answered !== root.dataset.version) return;
      observer.disconnect();
      resolve();
    }).observe(root, { attributes: true });
  });
  const times = [];
  for (let i = 0; i < 40; i++) {
    const at = scenarioText().indexOf('"global_batch_size": ') + '"global_batch_size": '.length;
    const since = performance.now();
    const drawn = answered();
    mirror().replaceRange(i % 2 ? '64' : '62', mirror().posFromIndex(at),
      mirror().posFromIndex(at + 2));
    await drawn;
    times.push(performance.now() - since);
    await frames();
  }
  const early = times.slice(0, 8).sort((a, b) => a - b);
  times.sort((a, b) => a - b);
  const told = {
    'first answer (ms)': first,
    'a change, shortest (ms)': times[0],
    'a change, median (ms)': times[20],
    'of the first eight, median (ms)': early[4],
    'a change, longest (ms)': times[39],
  };
  return Object.entries(told).map(([name, value]) => `${name}\t${value.toFixed(1)}`).join('\n');
})();
