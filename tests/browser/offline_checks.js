// Offline: the page is a file, and its engine answers inside it.
// SPDX-License-Identifier: Apache-2.0
// As if typed: setValue alone is how the page itself changes the text.
const typeText = (text) => change(() => {
  mirror().setValue(text);
  mirror().replaceRange(' ', { line: 0, ch: 999 });
});

tell({
  'the first answer comes': () => studioCalm(),
  'the page is a file': () => expect(location.protocol === 'file:', location.href),
  'SimGrid is refused in a sentence': async () => {
    await change(() => mirror().replaceRange('"simulate": {"engine": "simgrid"}, ',
      mirror().posFromIndex(scenarioText().indexOf('"name"'))));
    expect(find('#trouble').textContent.includes('a page has no SimGrid'),
      find('#trouble').textContent);
    await change(() => mirror().undo());
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
  'files are refused in a sentence': async () => {
    const before = scenarioText();
    await typeText(before.replace(/"model": ?"[^"]*"/,
      '"model": "/interlock/models/zoo/gpt2.json"'));
    expect(/is a file, and the studio reads none but those/.test(find('#trouble').textContent),
      find('#trouble').textContent);
    await typeText(before);
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
  'a search goes on while numbers are asked for, and is given up': async () => {
    find('#tab-search').click();
    const search = find('#panel-search');
    studioButton('Search', search).click();
    await until(() => !studioButton('Cancel', search).hidden);
    studioButton('Cancel', search).click();
    await until(() => search.textContent.includes('Cancelled.'));
    find('#tab-step').click();
    await enter('[id="slide-training.micro_batches"]', '4');
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
});
