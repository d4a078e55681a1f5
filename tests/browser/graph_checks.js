// Graph checks: ops chosen by hand and by keys, and the critical path.
// SPDX-License-Identifier: Apache-2.0
const chosen = () => document.querySelector('.selection').textContent;

tell({
  'a click chooses an op, and says what it waited for': async () => {
    buttons('One step').click();
    await frames();
    const [canvas] = canvases();
    const before = picture(canvas);
    for (let x = 300; x < 1100 && !/began when/.test(chosen()); x += 15) click(canvas, x, 40);
    await frames();
    expect(/^device 1: [A-Z], .*began when .*after .*\.$/.test(chosen()), chosen());
    expect(picture(canvas) !== before, 'nothing is marked in the picture');
  },
  'going back from cause to cause ends at the start of the run': async () => {
    const [canvas] = canvases();
    let steps = 0;
    for (let last = ''; chosen() !== last && steps < 5000; steps++) {
      last = chosen();
      press(canvas, '<');
    }
    expect(steps > 3 && steps < 5000, `${steps} steps`);
    expect(/nothing in this picture came before it/.test(chosen()), chosen());
  },
  'keys go on to the next op and to other devices': async () => {
    const [canvas] = canvases();
    press(canvas, 'Escape');
    expect(/^Click an op/.test(chosen()), chosen());
    press(canvas, 'Enter');
    expect(/^device 0: /.test(chosen()), chosen());
    const first = chosen();
    press(canvas, '.');
    expect(chosen() !== first, 'the full stop does not go on');
    press(canvas, ',');
    expect(chosen() === first, 'the comma does not go back');
    press(canvas, 'ArrowDown');
    expect(/^device 1: /.test(chosen()), chosen());
    press(canvas, 'Escape');
  },
  'the critical path is shown and hidden': async () => {
    await frames();
    const [canvas] = canvases();
    const before = picture(canvas);
    tickBox('critical path').click();
    await frames();
    expect(picture(canvas) !== before, 'nothing changes');
    tickBox('critical path').click();
    await frames();
    expect(picture(canvas) === before, 'it does not go away');
  },
});
