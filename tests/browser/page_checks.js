// Page checks: one scenario, moved and zoomed by buttons, keys, wheel and hand.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the plus button halves the stretch': async () => {
    buttons('Measured').click();
    await frames();
    const [begin, end] = shownRange();
    buttons('+').click();
    await frames();
    const [from, to] = shownRange();
    expect(near((to - from) / (end - begin), 0.5, 0.02), `${end - begin} s became ${to - from} s`);
  },
  'dragging moves the picture along': async () => {
    const [canvas] = canvases();
    const [begin, end] = shownRange();
    pointer(canvas, 'pointerdown', 600, 20);
    pointer(canvas, 'pointermove', 500, 20, { buttons: 1 });
    pointer(canvas, 'pointerup', 500, 20);
    await frames();
    const [from] = shownRange();
    const moved = 100 * (end - begin) / (canvas.clientWidth - 104 - 12);
    expect(near(from - begin, moved, 0.05 * moved), `moved by ${from - begin} s, not ${moved} s`);
  },
  'the wheel zooms only a chart that was chosen': async () => {
    const [canvas] = canvases();
    const turn = () => canvas.dispatchEvent(new WheelEvent('wheel', {
      deltaY: 60, bubbles: true, cancelable: true, clientX: 600, clientY: 300,
    }));
    const before = shownRange();
    expect(turn(), 'the page could not be scrolled');
    await frames();
    expect(near(shownRange()[1], before[1], 1e-9), 'the wheel zoomed a chart by the way');
    canvas.focus();
    expect(!turn(), 'the wheel scrolled the page');
    await frames();
    expect(shownRange()[1] > before[1], 'the wheel did not zoom out');
  },
  'keys move and zoom': async () => {
    const [canvas] = canvases();
    const [begin, end] = shownRange();
    press(canvas, 'ArrowRight');
    await frames();
    expect(near(shownRange()[0] - begin, (end - begin) / 8, 0.01 * (end - begin)), 'no eighth');
    press(canvas, '0');
    await frames();
    const all = shownRange();
    press(canvas, '+');
    await frames();
    const [from, to] = shownRange();
    expect(near((all[1] - all[0]) / (to - from), 1.5, 0.02), 'plus does not zoom');
  },
  'all charts show the same stretch': async () => {
    buttons('One step').click();
    await frames();
    const before = canvases().map(picture);
    buttons('▶').click();
    await frames();
    canvases().forEach((canvas, i) => {
      expect(picture(canvas) !== before[i], `chart ${i} did not follow`);
    });
  },
  'pointing at an op tells what it is': async () => {
    buttons('One step').click();
    await frames();
    const lines = [];
    for (let x = 110; x < 1100; x += 10) lines.push(...tooltipAt(canvases()[0], x, 10));
    expect(lines.some((line) => /^device 0: F, forward/.test(line)), lines.slice(0, 6).join('; '));
    expect(lines.some((line) => /^takes [0-9.]+ (us|ms|s)$/.test(line)), 'no duration');
  },
  'pointing at memory lists its classes in units': async () => {
    const lines = tooltipAt(canvases()[2], 600, 20);
    expect(/^device 0 at .*: [0-9.]+ [KMG]iB$/.test(lines[0]), lines.join('; '));
    expect(lines.length > 1, 'no classes');
  },
  'messages can be taken away': async () => {
    const [canvas] = canvases();
    const height = canvas.clientHeight;
    tickBox('messages').click();
    await frames();
    expect(canvas.clientHeight < height, 'their lanes are still there');
    tickBox('messages').click();
    await frames();
    expect(canvas.clientHeight === height, 'their lanes do not come back');
  },
});
