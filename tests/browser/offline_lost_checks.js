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
  'the scenario is saved': async () => {
    const names = [];
    HTMLAnchorElement.prototype.click = function note() { names.push(this.download); };
    const select = find('#download');
    select.value = 'scenario';
    select.dispatchEvent(new Event('change'));
    await until(() => names.length);
  },
  'explain says it, too': async () => {
    find('#tab-explain').click();
    studioButton('Explain', find('#panel-explain')).click();
    await until(() => !find('#panel-explain .alarm').hidden);
    expect(find('#panel-explain .alarm').textContent.includes('cannot run'), 'other words');
  },
});
