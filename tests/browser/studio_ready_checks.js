// Studio: the first answer is there.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the first answer comes': () => studioCalm(),
  'the step time stands at the top': () => {
    expect(/Step time\s*[\d.]+ m?s/.test(find('#headlines').textContent), 'there is none');
  },
  'charts are drawn': () => {
    expect(document.querySelectorAll('#panel-step canvas').length === 3, 'not three charts');
  },
});
