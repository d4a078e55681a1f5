// Offline: an engine that ends while it computes, as when memory runs out.
// SPDX-License-Identifier: Apache-2.0
const postMessage = Worker.prototype.postMessage;
const ending = (said) => function tellIt(message) {
  if (message.open) postMessage.call(this, message);
  else setTimeout(() => this.onmessage({ data: JSON.stringify(said) }));
};
const wordsAfter = async (said) => {
  Worker.prototype.postMessage = ending(said);
  await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
  return find('#trouble').textContent;
};

tell({
  'the first answer comes': () => studioCalm(),
  'the reason is said, and the last numbers stay': async () => {
    const words = await wordsAfter({ lost: 'RangeError: out of memory' });
    expect(words.includes('without an answer (RangeError: out of memory)'), words);
    expect(words.includes('a smaller scenario') && !words.includes('bug'), words);
    expect(find('#status').textContent === 'No answer.', find('#status').textContent);
    expect(stepTime(), 'the numbers are gone');
  },
  'explain says it, too': () => explainSays('without an answer'),
  'a trap is told as a bug, not as a lack of memory': async () => {
    for (const trap of ['unreachable', 'memory access out of bounds']) {
      const words = await wordsAfter({ lost: `RuntimeError: ${trap}` });
      expect(words.includes('bug in interlock') && !words.includes('smaller'), words);
    }
  },
  'what should have held is told in its own words': async () => {
    const words = await wordsAfter({ bug: 'this is a bug in interlock: a stage has modules' });
    expect(words.includes('bug in interlock: a stage has modules') && !words.includes('memory'),
      words);
    expect(find('#status').textContent === 'No answer.', find('#status').textContent);
  },
  'the next question is answered': async () => {
    Worker.prototype.postMessage = postMessage;
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
});
