// Offline: questions go to the engine that the page holds, WebAssembly in workers of its own.
// SPDX-License-Identifier: Apache-2.0

const KEPT_WORKERS = 2; // that wait for the next question; each keeps some 30 MB

const LOST_STATUS = 'No engine.';
const lostWords = ({ message }) => 'This browser cannot run the engine that the page holds ' +
  `(${message}). Your text is kept here. Expected a browser of 2023 or later; interlock simulate ` +
  'answers the same, by the command of "Copy command".';
// A browser says so in these words where memory or the stack of the engine have no more room.
const LACKS_ROOM = /out of memory|allocation|call stack/i;
const endedWords = (reason) => `the engine of this page ended without an answer (${reason}); the ` +
  `next question gets another. ${LACKS_ROOM.test(reason)
    ? 'Expected a smaller scenario, or'
    : 'This is a bug in interlock. Expected an answer; try'} the command of "Copy command"`;

const engineParts = (async () => {
  const packed = (id) => expand(document.getElementById(id).textContent);
  const { script, files } = JSON.parse(new TextDecoder().decode(await packed('engine-files')));
  const program = await WebAssembly.compile(await packed('engine-program'));
  const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  return { address, program, files };
})();
const waitingWorkers = [];

async function freshWorker() {
  const { address, program, files } = await engineParts;
  const worker = new Worker(address);
  const { file, text } = opening;
  worker.postMessage({ open: { program, files, file, text } });
  return worker;
}

// Returns the answer of `worker`, which waits for the next question then; else it is ended.
function answerOf(worker, question, { told, signal }) {
  return new Promise((resolve, reject) => {
    const fail = (error) => { worker.terminate(); reject(error); };
    if (signal && signal.aborted) { fail(signal.reason); return; }
    const give = (settle, value) => {
      if (signal) signal.removeEventListener('abort', stop);
      if (waitingWorkers.length < KEPT_WORKERS) waitingWorkers.push(worker);
      else worker.terminate();
      settle(value);
    };
    function stop() { fail(signal.reason); }
    if (signal) signal.addEventListener('abort', stop);
    worker.onerror = ({ message }) => fail(new Ended(endedWords(message)));
    worker.onmessage = ({ data }) => {
      const said = JSON.parse(data);
      if (said.unable) fail(new EngineLost(said.unable));
      else if (said.lost) fail(new Ended(endedWords(said.lost)));
      else if (said.answer) give(resolve, said.answer);
      else if (said.bug) fail(new Ended(bugWords(said.bug)));
      else if (said.mistakes !== undefined) give(reject, new Mistakes(said.mistakes));
      else if (told) told(said);
    };
    worker.postMessage({ question: JSON.stringify(question) });
  });
}

// For the next question, or for one in the place of this one.
async function keepOneReady() {
  const worker = await freshWorker();
  if (waitingWorkers.length < KEPT_WORKERS) waitingWorkers.push(worker);
  else worker.terminate();
}

// Asks `question`; see the engine of served.js.
const engine = {
  async ask(question, options = {}) {
    try {
      const worker = waitingWorkers.pop() || await freshWorker();
      if (!waitingWorkers.length) keepOneReady();
      return await answerOf(worker, question, options);
    } catch (error) {
      if (error instanceof Mistakes || error instanceof EngineLost || error.name === 'AbortError') {
        throw error;
      }
      throw new EngineLost(String(error.message || error));
    }
  },
};
