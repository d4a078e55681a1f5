// AskOffline: puts questions to the engine of an offline page, without a browser.
// SPDX-License-Identifier: Apache-2.0
//
// node ask_offline.js PAGE reads questions, a line of JSON each, and prints the last line of each
// answer. It takes engine and files out of the page as the page does.
'use strict';

const fs = require('fs');
const vm = require('vm');
const zlib = require('zlib');

const page = fs.readFileSync(process.argv[2], 'utf8');
const element = (mark) => new RegExp(`<script [^>]*${mark}[^>]*>([^<]*)</script>`).exec(page)[1];
const unpacked = (id) => zlib.inflateSync(Buffer.from(element(`id="${id}"`), 'base64'));

async function main() {
  const { script, files } = JSON.parse(unpacked('engine-files').toString('utf8'));
  const program = await WebAssembly.compile(unpacked('engine-program'));
  const { file, text } = JSON.parse(element('type="application/studio\\+json"'));
  let last = '';
  let said = null;
  const world = {
    postMessage(line) {
      last = line;
      if (said && !('done' in JSON.parse(line))) said();
    },
    WebAssembly, TextDecoder, console, URL, performance, setTimeout,
    crypto: require('crypto').webcrypto,
    location: { href: 'file:///page.html' },
    importScripts() {},
  };
  world.self = world;
  vm.createContext(world);
  vm.runInContext(script, world);
  world.onmessage({ data: { open: { program, files, file, text } } });
  for (const question of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
    const answered = new Promise((resolve) => { said = resolve; });
    world.onmessage({ data: { question } });
    await answered;
    fs.writeSync(1, `${last}\n`);
  }
}

main();
