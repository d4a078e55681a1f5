// Studio: the scenario's text, which controls write, an engine answers, and links hold.
// SPDX-License-Identifier: Apache-2.0

const PATIENCE = 300; // ms that an older question may still take when a newer one waits

const byId = (id) => document.getElementById(id);
const opening = JSON.parse(
  document.querySelector('script[type="application/studio+json"]').textContent);

// Packs a text for a link, and unpacks it.
async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  return letters.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
async function unpacked(letters) {
  return new TextDecoder().decode(await expand(letters.replaceAll('-', '+').replaceAll('_', '/')));
}

function say(words) { byId('status').textContent = words; }

function saveAs(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Shows sentences above the answers; none: nothing is wrong.
function showTrouble(lines, goTo) {
  const place = byId('trouble');
  place.hidden = !lines.length;
  place.replaceChildren(...lines.map(({ line, words }) => element('span', {},
    line === undefined ? '' : element('button', { type: 'button', className: 'link',
      onclick: () => goTo(line) }, `line ${line + 1}`), ` ${words}`)));
  document.body.classList.toggle('stale', lines.length > 0);
}

function addTabs(place, panels, views) {
  const tabs = views.map(([id, name]) => {
    const tab = element('button', { type: 'button', id: `tab-${id}`,
      onclick: () => show(id) }, name);
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', `panel-${id}`);
    const panel = element('section', { id: `panel-${id}` });
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', tab.id);
    panels.append(panel);
    return { id, tab, panel };
  });
  function show(chosen) {
    for (const { id, tab, panel } of tabs) {
      const on = id === chosen;
      tab.setAttribute('aria-selected', String(on));
      tab.tabIndex = on ? 0 : -1;
      panel.hidden = !on;
    }
  }
  place.append(...tabs.map(({ tab }) => tab));
  place.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const at = tabs.findIndex(({ tab }) => tab === document.activeElement);
    if (!step || at < 0) return;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    show(next.id);
    next.tab.focus();
  });
  show(views[0][0]);
  return Object.fromEntries(tabs.map(({ id, panel }) => [id, panel]));
}

function addDownloads(place, page) {
  const files = [
    ['scenario', 'Scenario', 'scenario.json', 'application/json'],
    ['report', 'Report', 'report.html', 'text/html'],
    ['svg', 'Timeline as SVG', 'timeline.svg', 'image/svg+xml'],
    ['trace', 'Trace for Perfetto', 'trace.json', 'application/json'],
    ['result', 'Result', 'result.json', 'application/json'],
  ];
  const select = element('select', { id: 'download', onchange: async () => {
    const file = files.find(([what]) => what === select.value);
    select.value = '';
    if (!file) return;
    const [what, , name, type] = file;
    try {
      const text = what === 'scenario' ? page.text()
        : (await engine.ask({ ask: 'write', what, text: page.text() })).file;
      saveAs(name, text, type);
      say(`Downloaded ${name}.`);
    } catch (error) {
      page.fail(error);
    }
  } }, element('option', { value: '' }, 'Download …'),
  ...files.map(([what, words]) => element('option', { value: what }, words)));
  select.setAttribute('aria-label', 'Download a file of this scenario');
  place.append(select);
}

async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    say(words);
  } catch {
    say('The browser lets no page copy here.');
  }
}

// Returns the command that answers the same: the text goes in by standard input, as it stands.
function commandOf(text) {
  return `interlock simulate - <<'SCENARIO'\n${text.trimEnd()}\nSCENARIO\n`;
}

async function start() {
  const { file, schema } = opening;
  const linked = /^#s=(.+)$/.exec(location.hash);
  const first = linked ? await unpacked(linked[1]).catch(() => opening.text) : opening.text;
  const askings = []; // told of every change
  let answer = null;
  let version = 0; // of the text
  let shown = 0; // version whose answer is shown

  const panels = addTabs(byId('tabs'), byId('panels'),
    [['step', 'Step'], ['explain', 'Explain'], ['search', 'Search'], ['plan', 'Plan']]);
  const results = makeResults(byId('headlines'), panels.step);
  byId('scenario').append(element('h2', { title: file }, file.split('/').pop()));
  const editor = makeEditor(byId('scenario'), first, schema, () => changed());
  const page = {
    text: () => editor.text(),
    // Another scenario in the place of this one.
    replace(text) { editor.setText(text); changed(); },
    // Sets "path=VALUE" as --set does, which may open names.
    async apply(settings) {
      const before = version;
      try {
        const { text } = await engine.ask({ ask: 'edit', text: editor.text(), settings });
        // Comments elsewhere stay.
        const keys = new Set(settings.map((setting) => setting.split(/[.=]/)[0]));
        const next = [...keys].reduce((now, key) => withMemberOf(now, key, text), editor.text());
        if (before === version) page.replace(next);
        else page.apply(settings);
      } catch (error) { page.fail(error); }
    },
    fail(error) {
      if (error.name === 'AbortError') return;
      const lost = error instanceof EngineLost;
      const mistakes = lost ? [{ words: lostWords(error) }] : mistakesIn(error.message);
      showTrouble(mistakes, editor.goTo);
      editor.mark(lost ? [] : mistakes);
      document.documentElement.dataset.lost = String(lost);
      say(lost ? LOST_STATUS
        : error instanceof Ended ? 'No answer.' : 'The scenario is wrong.');
    },
  };
  const pins = makePins(byId('pins'), page.replace);

  const asking = newestOnly(async ({ text, number }, signal) => {
    const since = performance.now();
    try {
      const told = await engine.ask({ ask: 'simulate', text }, { signal });
      if (number <= shown) return;
      answer = { ...told, text };
      await results(answer, () => number > shown);
      shown = number;
      pins.show(answer);
      if (number === version) {
        showTrouble([]);
        editor.mark([]);
        update(editor.text(), answer, true);
        delete document.documentElement.dataset.lost;
        say(`${Math.round(performance.now() - since)} ms`);
      }
    } catch (error) {
      if (number === version) page.fail(error);
    } finally {
      document.documentElement.dataset.answered = String(number);
    }
  }, PATIENCE);

  // Settings that take more than an edit in place wait for their turn, the last of each path.
  let pending = null;
  const setAll = async (settings) => {
    const words = settings.map(([path, value]) =>
      `${path}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
    if (pending) { settings.forEach(([path], i) => pending.set(path, words[i])); return; }
    pending = new Map(settings.map(([path], i) => [path, words[i]]));
    while (pending.size) {
      const now = [...pending.values()];
      pending.clear();
      await page.apply(now);
    }
    pending = null;
  };
  const set = (settings) => {
    let text = editor.text();
    for (const [path, value] of settings) {
      const there = nodeAtPath(text, path);
      // Names of machines are opened by the engine; all else is an edit in place.
      const plain = (there && there.kind === 'scalar') || !/^cluster\./.test(path);
      const next = pending || !plain ? null
        : value === null ? withoutMember(text, path) : withValue(text, path, value);
      if (next === null) { setAll(settings); return; }
      text = next;
    }
    editor.setText(text);
    changed();
  };
  const update = addControls(byId('controls'), schema, set);

  function changed() {
    version++;
    document.documentElement.dataset.version = String(version);
    update(editor.text(), answer, false);
    askings.forEach((outdate) => outdate());
    say('…');
    asking.ask({ text: editor.text(), number: version });
  }

  const tools = byId('tools');
  tools.append(
    button('Pin', 'Compare what follows with this scenario',
      () => { pins.add(answer && answer.text); }),
    button('Copy link', 'A link that holds the scenario', async () => {
      const hash = `#s=${await packed(editor.text())}`;
      history.replaceState(null, '', hash);
      copy(location.href, 'Copied the link.');
    }),
    button('Copy command', 'The command that answers the same', () => {
      copy(commandOf(editor.text()), 'Copied the command.');
    }));
  addDownloads(tools, page);
  askings.push(addExplain(panels.explain, page), addSearch(panels.search, page),
    addPlan(panels.plan, page, schema));
  changed();
  document.documentElement.dataset.ready = 'true';
}

start();
