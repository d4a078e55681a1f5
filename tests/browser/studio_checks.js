// Studio checks: every control writes the scenario, and the answer follows.
// SPDX-License-Identifier: Apache-2.0
const replaceInText = (from, to) => change(() => mirror().replaceRange(to,
  mirror().posFromIndex(scenarioText().indexOf(from)),
  mirror().posFromIndex(scenarioText().indexOf(from) + from.length)));

tell({
  'the first answer comes': () => studioCalm(),
  'the text is the file, comments and all': () => {
    expect(scenarioText().startsWith('// Interlocking:'), scenarioText().slice(0, 40));
  },
  'a schedule is chosen, and only its name changes': async () => {
    const before = scenarioText();
    await enter('#choose-schedule', 'auto');
    expect(scenarioText() === before.replace('"eager"', '"auto"'), scenarioText());
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
  'a strategy is chosen': async () => {
    await enter('#choose-strategy', 'interlocking');
    expect(scenarioText().includes('"strategy": "interlocking"'), scenarioText());
  },
  'heads have a slider, which opens the strategy': async () => {
    await enter('[id="slide-training.strategy.n_wise"]', '3');
    await until(() => scenarioText().includes('"n_wise": 3'));
    await studioCalm();
    expect(find('#trouble').hidden, find('#trouble').textContent);
    expect(scenarioText().startsWith('// Interlocking:'), 'the comment is gone');
  },
  'micro-batches slide': async () => {
    await enter('[id="slide-training.micro_batches"]', '8');
    expect(scenarioText().includes('"micro_batches": 8'), scenarioText());
    expect(find('#panel-step').textContent.includes('8 micro-batches'), 'others are simulated');
  },
  'the batch is typed': async () => {
    const before = stepTime();
    await enter('[id="count-training.global_batch_size"]', '512');
    expect(scenarioText().includes('"global_batch_size": 512'), scenarioText());
    expect(stepTime() !== before, 'twice the batch takes as long');
  },
  'a model and a machine are chosen': async () => {
    await enter('#choose-model', 'resnet-101');
    expect(scenarioText().includes('"model": "resnet-101"'), scenarioText());
    await enter('#choose-machine', 'dgx-h100');
    expect(/"machine": ?"dgx-h100"/.test(scenarioText()), scenarioText());
    expect(/"devices": ?4/.test(scenarioText()), 'the number of devices is gone');
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
  'bandwidth, latency and memory slide, and open the machine': async () => {
    const paths = ['cluster.port.bandwidth', 'cluster.port.latency', 'cluster.device.memory'];
    for (const path of paths) {
      const slider = find(`[id="slide-${path}"]`);
      expect(slider, `no slider for ${path}`);
      const was = slider.parentElement.querySelector('.value').textContent;
      await enter(`[id="slide-${path}"]`, '-24');
      const [number, unit] = was.split(' ');
      const half = `${Number((Number(number) / 2).toPrecision(3))} ${unit}`;
      await until(() => scenarioText().includes(`"${half}"`));
      await studioCalm();
    }
    expect(find('#choose-machine').selectedOptions[0].textContent === 'dgx-h100, changed',
      'the machine is not said to be changed');
  },
  'devices and pipeline are typed': async () => {
    await change(() => { mirror().setValue(scenarioText()
      .replace(/"strategy": (?:"\w+"|\{[^}]*\})/, '"strategy": "global"')
      .replace('"auto"', '"1f1b"')); mirror().replaceRange(' ', { line: 0, ch: 999 }); });
    await change(() => enter('[id="count-parallel.pipeline"]', '2'));
    expect(/"pipeline": 2/.test(scenarioText()), scenarioText());
    await enter('[id="count-cluster.devices"]', '2');
    expect(/"devices": 2/.test(scenarioText()), scenarioText());
    expect(find('#trouble').hidden, find('#trouble').textContent);
    expect(find('#panel-step').textContent.includes('2 stages'), 'not two stages');
  },
  'a wrong text is marked at its line, and what stood there stays': async () => {
    const before = stepTime();
    await replaceInText('"1f1b"', '"1f1x"');
    const line = scenarioText().split('\n').findIndex((one) => one.includes('1f1x'));
    const words = find('#trouble').textContent;
    expect(words.includes(`line ${line + 1}`) && words.includes('did you mean "1f1b"'), words);
    expect(mirror().lineInfo(line).gutterMarkers, 'the line has no mark');
    expect(stepTime() === before, 'the numbers are gone');
    await replaceInText('"1f1x"', '"1f1b"');
    expect(find('#trouble').hidden, find('#trouble').textContent);
    await replaceInText('{', '{{');
    expect(find('#trouble').textContent.includes('malformed JSON'), find('#trouble').textContent);
    await replaceInText('{{', '{');
    expect(find('#trouble').hidden && !find('.CodeMirror-lint-marker'), 'the mark stays');
  },
  'names and keys are completed from the schema': async () => {
    const offered = async (from, at) => {
      const index = scenarioText().indexOf(from) + at;
      mirror().focus();
      mirror().setCursor(mirror().posFromIndex(index));
      mirror().showHint();
      await until(() => find('.CodeMirror-hints'));
      const hints = [...document.querySelectorAll('.CodeMirror-hint')];
      const names = hints.map((one) => one.firstChild.data);
      mirror().closeHint();
      return names;
    };
    expect((await offered('"1f1b"', 3)).includes('1f1b'), 'no schedule');
    const keys = await offered('"schedule"', 0);
    expect(keys.includes('recompute') && !keys.includes('strategy'), keys.slice(0, 9).join(' '));
  },
  'a pin is compared with, gone back to, and taken away': async () => {
    const text = scenarioText();
    studioButton('Pin').click();
    await enter('[id="slide-training.micro_batches"]', '16');
    expect(document.querySelectorAll('#pins tbody tr').length === 2, 'not two rows');
    await change(() => find('#pins tbody .link').click());
    expect(scenarioText() === text, 'another text');
    studioButton('×', find('#pins')).click();
    expect(find('#pins').hidden, 'the pin stays');
  },
  'advice is asked for, and a button applies it': async () => {
    find('#tab-explain').click();
    studioButton('Explain', find('#panel-explain')).click();
    await until(() => find('#panel-explain tbody tr') || !find('#panel-explain .alarm').hidden);
    const before = scenarioText();
    await change(() => find('#panel-explain tbody button').click());
    expect(scenarioText() !== before && find('#trouble').hidden, find('#trouble').textContent);
    expect(find('#panel-explain').textContent.includes('before its last change'), 'old advice');
  },
  'a search draws plans; a point of the picture becomes the scenario': async () => {
    find('#tab-search').click();
    studioButton('Search', find('#panel-search')).click();
    await until(() => find('#panel-search tbody tr') || !find('#panel-search .alarm').hidden);
    const points = document.querySelectorAll('#panel-search svg a');
    expect(points.length === document.querySelectorAll('#panel-search tbody tr').length, 'points');
    const before = scenarioText();
    await change(() => points[points.length - 1].dispatchEvent(
      new MouseEvent('click', { bubbles: true, cancelable: true })));
    expect(scenarioText() !== before && find('#trouble').hidden, find('#trouble').textContent);
    await change(() => studioButton('Use', find('#panel-search')).click());
  },
  'a search is given up by its button, and by a change': async () => {
    const search = find('#panel-search');
    studioButton('Search', search).click();
    await until(() => !studioButton('Cancel', search).hidden);
    studioButton('Cancel', search).click();
    await until(() => search.textContent.includes('Cancelled.'));
    studioButton('Search', search).click();
    await enter('[id="slide-training.micro_batches"]', '4');
    await until(() => studioButton('Cancel', search).hidden);
  },
  'sizes are planned': async () => {
    find('#tab-plan').click();
    find('#plan-devices').value = '4';
    find('#plan-tokens').value = '1';
    studioButton('Plan', find('#panel-plan')).click();
    await until(() => !find('#panel-plan .alarm').hidden);
    expect(find('#panel-plan').textContent.includes('samples'),
      find('#panel-plan .alarm').textContent);
    find('#plan-tokens').value = '';
    find('#plan-samples').value = '100M';
    studioButton('Plan', find('#panel-plan')).click();
    await until(() => find('#panel-plan table') ||
      (find('#panel-plan progress').hidden && !find('#panel-plan .alarm').hidden));
    expect(find('#panel-plan table'), find('#panel-plan .alarm').textContent);
    find('#tab-step').click();
  },
  'a link holds the scenario, a command says it': async () => {
    const copied = [];
    Object.defineProperty(navigator, 'clipboard', { configurable: true,
      value: { writeText: async (text) => copied.push(text) } });
    studioButton('Copy link').click();
    await until(() => copied.length === 1);
    studioButton('Copy command').click();
    await until(() => copied.length === 2);
    expect(copied[1].startsWith('interlock simulate - <<\'SCENARIO\'\n') &&
      copied[1].includes(scenarioText().trim()), copied[1]);
    const packedText = copied[0].split('#s=')[1].replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(packedText), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    expect(await new Response(stream).text() === scenarioText(), 'the link holds another text');
  },
  'files are downloaded': async () => {
    const names = [];
    HTMLAnchorElement.prototype.click = function note() { names.push(this.download); };
    for (const what of ['scenario', 'report', 'svg', 'trace', 'result']) {
      const select = find('#download');
      select.value = what;
      select.dispatchEvent(new Event('change'));
      await until(() => names.length && names[names.length - 1].startsWith(
        { svg: 'timeline' }[what] || what));
    }
  },
});
