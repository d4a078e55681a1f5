// Engine: the one door through which the page asks. Here a server answers.
// SPDX-License-Identifier: Apache-2.0

// Mistakes of the user's, as sentences.
class Mistakes extends Error {}
// There is no engine any more.
class EngineLost extends Error {}

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
      if (said.mistakes !== undefined) throw new Mistakes(said.mistakes);
      if (told) told(said);
    }
    if (done) {
      throw new Mistakes('the process that computed this ended without an answer, as when memory ' +
        'runs out; the others go on. Expected a smaller scenario');
    }
  }
}

// Asks one question after another of a kind, always the newest: a newer one takes the place of the
// one that waits, and gives up the one under way if that has taken longer than `patience` ms.
function newestOnly(run, patience) {
  let waiting = null;
  let under = null;
  const begin = async (question) => {
    const control = new AbortController();
    under = { control, since: performance.now() };
    try {
      await run(question, control.signal);
    } finally {
      under = null;
      const next = waiting;
      waiting = null;
      if (next) begin(next.question);
    }
  };
  return {
    ask(question) {
      if (!under) return begin(question);
      waiting = { question };
      const left = Math.max(0, patience - (performance.now() - under.since));
      const { control } = under;
      setTimeout(() => {
        if (waiting && under && under.control === control) control.abort();
      }, left);
      return undefined;
    },
    cancel() {
      waiting = null;
      if (under) under.control.abort();
    },
    busy: () => under !== null,
  };
}
