// Studio: the server is gone.
// SPDX-License-Identifier: Apache-2.0
tell({
  'a change says that the server has ended': async () => {
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
    expect(find('#trouble').textContent.includes('server has ended'), find('#trouble').textContent);
    expect(find('#status').textContent === 'No server.', find('#status').textContent);
  },
  'the text and the last numbers stay': () => {
    expect(scenarioText().includes('"resnet-50"') && stepTime(), 'they are gone');
  },
  'the text can still be edited and saved': async () => {
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
    expect(find('#panel-explain .alarm').textContent.includes('server has ended'), 'other words');
  },
});
