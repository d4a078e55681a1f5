// Studio: what Tab came by.
// SPDX-License-Identifier: Apache-2.0
tell({
  'Tab comes by every control': () => {
    const names = window.visited.map((one) => one.name);
    for (const name of ['Pin', 'Copy link', 'Copy command', 'download', 'choose-model',
      'choose-machine', 'choose-strategy', 'choose-schedule', 'count-cluster.devices',
      'count-training.global_batch_size', 'slide-training.micro_batches',
      'slide-cluster.port.bandwidth', 'slide-cluster.port.latency', 'tab-step']) {
      expect(names.includes(name), `not by ${name}, but by ${names.join(', ')}`);
    }
  },
  'Tab comes by the editor, the charts, and leaves both': () => {
    const editor = window.visited.findIndex((one) => one.editor);
    const canvas = window.visited.findIndex((one) => one.canvas);
    expect(editor >= 0 && canvas >= 0, 'not by both');
    expect(window.visited.length > Math.max(editor, canvas) + 1, 'it stays there');
  },
  'the focus is seen everywhere': () => {
    const unseen = window.visited.filter((one) => !one.seen).map((one) => one.name);
    expect(unseen.length === 0, `unseen at ${unseen.join(', ')}`);
  },
  'tabs are chosen by arrows': async () => {
    find('#tab-step').focus();
    press(find('#tab-step'), 'ArrowRight');
    expect(document.activeElement.id === 'tab-explain' && !find('#panel-explain').hidden, 'not so');
    press(find('#tab-explain'), 'ArrowLeft');
    expect(!find('#panel-step').hidden, 'the way back is shut');
  },
});
