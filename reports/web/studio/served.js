// Served: questions go to the server that sent the page.
// SPDX-License-Identifier: Apache-2.0

const LOST_STATUS = 'No server.';
const lostWords = () => 'The studio\'s server has ended. Your text is kept here: start interlock ' +
  'studio again, and open its new address; the link of this page\'s "Copy link" carries the ' +
  'scenario over.';
const ENDED_WORDS = 'the process that computed this ended without an answer, as when memory ' +
  'runs out; the others go on. Expected a smaller scenario';

// Asks `question`, {ask: 'simulate', text, ...}; see cli/studio/studio_answers.h. `told` hears
// {done, of}; `signal` gives the question up. Returns the answer. Throws: Mistakes, EngineLost, or
// the signal's AbortError.
const engine = {
  async ask(question, { told, signal } = {}) {
    let reader;
    try {
      const body = JSON.stringify(question);
      const response = await fetch('ask', { method: 'POST', body, signal });
      if (!response.ok) throw new Mistakes(await response.text());
      reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      return await lastAnswer(reader, told);
    } catch (error) {
      if (error instanceof Mistakes || error.name === 'AbortError') throw error;
      throw new EngineLost(String(error.message || error));
    }
  },
};

async function lastAnswer(reader, told) {
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value || '')).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const said = line && JSON.parse(line);
      if (!said) continue;
      if (said.answer) return said.answer;
      if (said.bug) throw new Ended(bugWords(said.bug));
      if (said.mistakes !== undefined) throw new Mistakes(said.mistakes);
      if (told) told(said);
    }
    if (done) throw new Ended(ENDED_WORDS);
  }
}
