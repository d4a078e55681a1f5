// Picture checks: an op is chosen, so that the picture shows what it waited for.
// SPDX-License-Identifier: Apache-2.0
const chosen = () => document.querySelector('.selection').textContent;

tell({
  'an op is chosen that waited for its message': async () => {
    const [canvas] = canvases();
    for (let x = 500; x < 900 && !/waited .* after message/.test(chosen()); x += 5) {
      click(canvas, x, 12);
    }
    expect(/waited .* after message/.test(chosen()), chosen());
    await frames();
  },
});
