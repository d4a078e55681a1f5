// Linked checks: two scenarios on one scale of time, or each on its own.
// SPDX-License-Identifier: Apache-2.0
const widths = () => [0, 1].map((i) => {
  const [begin, end] = shownRange(i);
  return end - begin;
});

tell({
  'charts of both scenarios are equally wide in time': async () => {
    const [first, second] = widths();
    expect(near(first / second, 1, 1e-3), `${first} s and ${second} s`);
  },
  'zooming one zooms the other': async () => {
    const [before] = widths();
    buttons('+', 0).click();
    await frames();
    const [first, second] = widths();
    expect(near(first / before, 0.5, 0.02), `${before} s became ${first} s`);
    expect(near(second / before, 0.5, 0.02), `the other: ${second} s`);
  },
  'or not': async () => {
    tickBox('same time scale in all charts').click();
    const before = widths();
    buttons('+', 1).click();
    await frames();
    const after = widths();
    expect(near(after[0] / before[0], 1, 1e-3), 'the first followed');
    expect(near(after[1] / before[1], 0.5, 0.02), 'the second did not zoom');
  },
});
