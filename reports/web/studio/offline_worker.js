// OfflineWorker: a worker of the offline page, which holds the engine and answers one by one.
// SPDX-License-Identifier: Apache-2.0
//
// Emscripten's script, which defines makeEngine, stands before this one. In the place of an answer
// it says {unable} if the engine cannot be opened, and {lost} if it ended while it computed: the
// mistakes of ours that the engine itself tells are {bug}.
'use strict';

// A scenario lies in a folder so deep that what it names by "../" has a place, too.
const HERE = '/here/and/on/this/page/lies/what/was/opened';

const said = (line) => postMessage(line);

// Returns a promise of Emscripten's module, which runs `program`.
function makeOpen(program) {
  return new Promise((resolve, reject) => {
    makeEngine({
      said,
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(program, imports)
          .then((instance) => done(instance, program)).catch(reject);
        return {};
      },
      print() {},
      printErr() {},
    }).then(resolve, reject);
  });
}

async function openEngine({ program, files, file, text }) {
  const engine = await makeOpen(program);
  engine.FS.mkdirTree(HERE);
  engine.FS.chdir(HERE);
  for (const [path, contents] of Object.entries(files)) {
    const folder = path.replace(/[^/]*$/, '');
    if (folder) engine.FS.mkdirTree(folder.startsWith('/') ? folder : `${HERE}/${folder}`);
    engine.FS.writeFile(path, contents);
  }
  const withTexts = (run, texts) => {
    const places = texts.map((one) => engine.allocateUTF8(one));
    run(...places);
    places.forEach((place) => engine._free(place));
  };
  withTexts(engine._interlock_open, [file, text]);
  return (question) => withTexts(engine._interlock_answer, [question]);
}

let opened = null;
onmessage = async ({ data }) => {
  if (data.open) {
    opened = openEngine(data.open);
    opened.catch(() => {}); // said when a question comes
    return;
  }
  let answer;
  try {
    answer = await opened;
  } catch (error) {
    said(JSON.stringify({ unable: String(error) }));
    return;
  }
  try {
    answer(data.question);
  } catch (error) {
    said(JSON.stringify({ lost: String(error) }));
  }
};
