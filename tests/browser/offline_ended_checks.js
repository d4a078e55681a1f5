// Offline: an engine that ends while it computes, as when memory runs out.
// SPDX-License-Identifier: Apache-2.0
const postMessage = Worker.prototype.postMessage;
const ending = (lost) => function tellIt(message) {
  if (message.open) postMessage.call(this, message);
  else setTimeout(() => this.onmessage({ data: JSON.stringify({ lost }) }));
};

tell({
  'the first answer comes': () => studioCalm(),
  'the reason is said, and the last numbers stay': async () => {
    Worker.prototype.postMessage = ending('RangeError: out of memory');
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
    const words = find('#trouble').textContent;
    expect(words.includes('without an answer (RangeError: out of memory)'), words);
    expect(find('#status').textContent === 'No answer.', find('#status').textContent);
    expect(stepTime(), 'the numbers are gone');
  },
  'explain says it, too': () => explainSays('without an answer'),
  'the next question is answered': async () => {
    Worker.prototype.postMessage = postMessage;
    await change(() => mirror().replaceRange(' ', { line: 0, ch: 0 }));
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
});
