// Engine: the one door through which the page asks; served.js and offline.js are behind it.
// SPDX-License-Identifier: Apache-2.0

// Mistakes of the user's, as sentences.
class Mistakes extends Error {}
// There is no engine any more.
class EngineLost extends Error {}

const MEMORY_WORDS = 'the process that computed this ended without an answer, as when memory ' +
  'runs out; the others go on. Expected a smaller scenario';

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
