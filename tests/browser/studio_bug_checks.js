// Studio: the process that answers finds a mistake of interlock's own.
// SPDX-License-Identifier: Apache-2.0
const { fetch } = window;
const oneSpace = () => mirror().replaceRange(' ', { line: 0, ch: 0 });

tell({
  'the first answer comes': () => studioCalm(),
  'it is told in its own words, and the last numbers stay': async () => {
    const bug = 'this is a bug in interlock: a stage has modules';
    window.fetch = async () => new Response(`${JSON.stringify({ bug })}\n`);
    await change(oneSpace);
    const words = find('#trouble').textContent;
    expect(words.includes(bug) && !words.includes('memory'), words);
    expect(find('#status').textContent === 'No answer.', find('#status').textContent);
    expect(stepTime(), 'the numbers are gone');
  },
  'the next question is answered': async () => {
    window.fetch = fetch;
    await change(oneSpace);
    expect(find('#trouble').hidden, find('#trouble').textContent);
  },
});
