// Engine: the one door through which the page asks; served.js and offline.js are behind it.
// SPDX-License-Identifier: Apache-2.0
//
// Each of them also says in words that the engine is lost: LOST_STATUS, lostWords(error).

// Mistakes of the user's, as sentences.
class Mistakes extends Error {}
// The engine ended before it had an answer; the next question gets another.
class Ended extends Mistakes {}
// Returns sentences for a mistake of interlock's, which `words` tell.
const bugWords = (words) => `${words}. There is no answer; numbers that are shown are of an ` +
  'earlier text';
// There is no engine any more.
class EngineLost extends Error {}

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
