// Checks: what the scripts of this folder look and act with.
// SPDX-License-Identifier: Apache-2.0

const found = [];

// Runs `act`; what it throws is what is wrong.
async function check(name, act) {
  let wrong = '';
  try {
    await act();
  } catch (error) {
    wrong = String(error.message || error).replace(/\s+/g, ' ');
  }
  found.push(`${name}\t${wrong}`);
}

function expect(holds, words) {
  if (!holds) throw new Error(words);
}

const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
const frames = async () => { await frame(); await frame(); };

// Ends what hangs, before Chromium's caller gives up; a busy machine does not take so long.
const LONGEST_WAIT = 20 * 60 * 1000; // ms
const LONGEST_LATER_WAIT = 10 * 1000; // after one that came to nothing
let hasHung = false;

// Waits until `holds` returns true. Throws: what it waited for.
async function until(holds) {
  const since = performance.now();
  while (!holds()) {
    if (performance.now() - since > (hasHung ? LONGEST_LATER_WAIT : LONGEST_WAIT)) {
      hasHung = true;
      throw new Error(`waited in vain for ${holds}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function whenReady() {
  await until(() => document.documentElement.dataset.ready);
  await frames();
}

// The canvases of scenario number `i`: timeline, utilisation, memory.
const sections = () => [...document.querySelectorAll('section')];
const canvases = (i = 0) => [...sections()[i].querySelectorAll('canvas')];
const buttons = (words, i = 0) => [...sections()[i].querySelectorAll('button')]
  .find((button) => button.textContent === words);
const tickBox = (words) => [...document.querySelectorAll('label')]
  .find((label) => label.textContent.trim() === words).querySelector('input');

// A number that tells two pictures apart.
function picture(canvas) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum = (sum * 31 + data[i]) >>> 0;
  return sum;
}

function pointer(canvas, type, x, y, more = {}) {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(type, {
    bubbles: true, pointerId: 1, pointerType: 'mouse', clientX: box.left + x,
    clientY: box.top + y, ...more,
  }));
}

function press(canvas, key) {
  canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
}

function click(canvas, x, y) {
  pointer(canvas, 'pointerdown', x, y);
  pointer(canvas, 'pointerup', x, y);
}

// The lines that show beside a pointer at x, y.
function tooltipAt(canvas, x, y) {
  pointer(canvas, 'pointermove', x, y);
  const box = document.querySelector('.tooltip');
  return box && !box.hidden ? [...box.children].map((line) => line.textContent) : [];
}

const UNITS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const seconds = (words) => {
  const [number, unit] = words.split(' ');
  return Number(number) * UNITS[unit];
};

// The stretch that the utilisation chart of scenario `i` shows, in seconds, from its tooltips.
function shownRange(i = 0) {
  const chart = canvases(i)[1];
  const right = chart.clientWidth - 14;
  const left = (innerWidth < 600 ? 58 : 104) + 2;
  const first = tooltipAt(chart, left, 10)[1].split(' to ')[0];
  const last = tooltipAt(chart, right, 10)[1].split(' to ')[1];
  return [seconds(first), seconds(last)];
}

const near = (a, b, allowed) => Math.abs(a - b) <= allowed;

async function tell(checks) {
  await check('the page becomes ready', whenReady);
  for (const [name, act] of Object.entries(checks)) await check(name, act);
  await check('the console stays silent', () => {
    expect(window.complaints.length === 0, window.complaints.join('; '));
  });
  await check('nothing is asked of the network', () => {
    // A served page may ask its own engine; one that is a file holds it.
    const asked = performance.getEntriesByType('resource').map((entry) => entry.name)
      .filter((name) => !name.startsWith('blob:'))
      .filter((name) => location.protocol === 'file:' || name !== new URL('ask', location).href);
    expect(asked.length === 0, asked.join(', '));
  });
  return found.join('\n');
}

// The studio's page.
const find = (selector) => document.querySelector(selector);
const mirror = () => find('.CodeMirror').CodeMirror;
const scenarioText = () => mirror().getValue();
const stepTime = () => /Step time\s*([\d.]+ \w+)/.exec(find('#headlines').textContent)[1];
// Waits until the answer to the last change is shown.
async function studioCalm() {
  const told = document.documentElement.dataset;
  await until(() => told.ready && told.answered === told.version);
  await frames();
}
async function change(act) {
  const { version } = document.documentElement.dataset;
  await act();
  await until(() => document.documentElement.dataset.version !== version);
  await studioCalm();
}
const enter = (selector, value) => change(() => {
  const control = find(selector);
  control.value = value;
  const type = control.tagName === 'SELECT' ? 'change' : 'input';
  control.dispatchEvent(new Event(type, { bubbles: true }));
});
const studioButton = (words, place = document) =>
  [...place.querySelectorAll('button')].find((one) => one.textContent === words);

// Checks of a page that has no answer any more, whatever the reason.
async function studioSaves() {
  const names = [];
  HTMLAnchorElement.prototype.click = function note() { names.push(this.download); };
  const select = find('#download');
  select.value = 'scenario';
  select.dispatchEvent(new Event('change'));
  await until(() => names.length);
}
async function explainSays(words) {
  find('#tab-explain').click();
  studioButton('Explain', find('#panel-explain')).click();
  await until(() => !find('#panel-explain .alarm').hidden);
  const said = find('#panel-explain .alarm').textContent;
  expect(said.includes(words), said);
}
