// OfflineWorker: a worker of the offline page, which holds the engine and answers one by one.
// SPDX-License-Identifier: Apache-2.0
//
// Emscripten's script, which defines makeEngine, stands before this one.
'use strict';

// A scenario lies in a folder so deep that what it names by "../" has a place, too.
const HERE = '/here/and/on/this/page/lies/what/was/opened';

const said = (line) => postMessage(line);

async function openEngine({ program, files, file, text }) {
  const engine = await makeEngine({
    said,
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(program, imports).then((instance) => done(instance, program));
      return {};
    },
    print() {},
    printErr() {},
  });
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

let answer = null;
onmessage = async ({ data }) => {
  try {
    if (data.open) answer = openEngine(data.open);
    else (await answer)(data.question);
  } catch (error) {
    said(JSON.stringify({ lost: String(error) }));
  }
};
