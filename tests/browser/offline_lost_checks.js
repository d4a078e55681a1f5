// Offline: the engine that the page holds cannot be started.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the reason is said, and what to do': async () => {
    await studioCalm();
    const words = find('#trouble').textContent;
    expect(words.includes('cannot run the engine that the page holds ('), words);
    expect(words.includes('Copy command') && !words.includes('server'), words);
    expect(find('#status').textContent === 'No engine.', find('#status').textContent);
  },
  'the text is there, and is edited': async () => {
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
    expect(scenarioText().includes('"resnet-50"'), scenarioText());
  },
  'the scenario is saved': studioSaves,
  'explain says it, too': () => explainSays('cannot run'),
});
