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
  'the text can still be edited and saved': studioSaves,
  'explain says it, too': () => explainSays('server has ended'),
});
