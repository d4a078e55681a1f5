// Editor: the scenario as text, with mistakes at their lines and completion from the schema.
// SPDX-License-Identifier: Apache-2.0

// Returns the schemas that `schema` may be, references followed.
function branches(schema, whole) {
  if (!schema) return [];
  if (schema.$ref) return branches(whole.definitions[schema.$ref.split('/').pop()], whole);
  const parts = [].concat(schema.anyOf || [], schema.oneOf || [], schema.allOf || []);
  const below = parts.flatMap((part) => branches(part, whole));
  return schema.properties || schema.items || schema.enum || schema.examples || !parts.length
    ? [schema, ...below] : below;
}

// Returns the schemas of the value at `keys`. Of objects with a "kind", those that it allows.
function schemasAt(whole, keys, text) {
  let found = branches(whole, whole);
  keys.forEach((key, i) => {
    const kind = nodeAtPath(text, keys.slice(0, i).concat('kind').join('.'));
    const fits = ({ properties }) => {
      const allowed = properties && properties.kind && branches(properties.kind, whole)[0].enum;
      return !kind || !allowed || allowed.includes(kind.value);
    };
    found = found.filter(fits).flatMap((one) => {
      if (one.items) return branches(one.items, whole);
      const below = one.properties && one.properties[key];
      return branches(below || (typeof one.additionalProperties === 'object' &&
        one.additionalProperties), whole);
    });
  });
  return found;
}

const offersOf = (schema, whole) => branches(schema, whole)
  .flatMap((one) => [].concat(one.const ?? [], one.enum || [], one.examples || [],
    one.type === 'boolean' ? [true, false] : []));

function completionsAt(whole, text, offset) {
  const place = placeAt(text, offset);
  const found = schemasAt(whole, place.keys, text);
  if (!place.inKey) {
    const offers = new Set(found.flatMap((one) => offersOf(one, whole))
      .concat(found.flatMap((one) => ('default' in one ? [one.default] : []))));
    const node = place.node && place.node.kind === 'scalar' ? place.node : null;
    const [from, to] = node ? [node.start, node.end] : [offset, offset];
    return { from, to, typed: node ? String(node.value) : '', list: [...offers]
      .filter((offer) => typeof offer !== 'object')
      .map((offer) => ({ text: JSON.stringify(offer), name: String(offer) })) };
  }
  const there = new Set(place.node.members.map((member) => member.key));
  const { member } = place;
  if (member) there.delete(member.key);
  const keys = new Map();
  for (const { properties } of found) {
    for (const [key, { description }] of Object.entries(properties || {})) {
      if (!there.has(key)) keys.set(key, description);
    }
  }
  const [from, to] = member ? [member.keyStart, member.keyEnd] : [offset, offset];
  const colon = member && member.value ? '' : ': ';
  return { from, to, typed: member ? member.key : '', list: [...keys].map(([key, meaning]) => ({
    text: JSON.stringify(key) + colon, name: key, meaning })) };
}

// Returns the mistakes in `text` of an engine as [{line, words}], lines from 0; a mistake without
// a line is on the first.
function mistakesIn(text) {
  return text.split('\n').filter(Boolean).map((words) => {
    const found = /^.*?:(\d+): ([^]*)$/.exec(words);
    return found ? { line: Number(found[1]) - 1, words: found[2] } : { line: 0, words };
  });
}

// Puts an editor into `place`. `changed` hears of every change that a person makes.
function makeEditor(place, text, schema, changed) {
  let mistakes = [];
  const hint = (mirror) => {
    const { from, to, typed, list } = completionsAt(schema, mirror.getValue(),
      mirror.indexFromPos(mirror.getCursor()));
    const near = list.filter((one) => one.name.toLowerCase().includes(typed.toLowerCase()));
    return {
      from: mirror.posFromIndex(from),
      to: mirror.posFromIndex(to),
      list: (near.length ? near : list).map((one) => ({
        text: one.text,
        render: (item) => item.append(one.name,
          element('small', {}, one.meaning ? ` ${one.meaning}` : '')),
      })),
    };
  };
  const mirror = CodeMirror(place, {
    value: text,
    mode: { name: 'javascript', json: true },
    lineNumbers: true,
    lineWrapping: true,
    matchBrackets: true,
    autoCloseBrackets: true,
    gutters: ['CodeMirror-lint-markers', 'CodeMirror-linenumbers'],
    lint: {
      lintOnChange: false,
      getAnnotations: (whole, options, cm) => mistakes.map(({ line, words }) => {
        const at = Math.max(0, Math.min(line, cm.lastLine()));
        const written = cm.getLine(at);
        return { from: CodeMirror.Pos(at, written.search(/\S|$/)),
          to: CodeMirror.Pos(at, written.length), message: words, severity: 'error' };
      }),
    },
    hintOptions: { hint, completeSingle: false },
    extraKeys: {
      'Ctrl-Space': 'autocomplete',
      // Tab goes on to the next control, as everywhere on the page.
      Tab: false,
      'Shift-Tab': false,
    },
  });
  mirror.getInputField().setAttribute('aria-label',
    'The scenario as JSON. Control and space completes.');
  mirror.on('change', (_, change) => { if (change.origin !== 'setValue') changed(); });
  mirror.on('inputRead', (_, change) => {
    if (/["a-z_]$/.test(change.text.join(''))) mirror.showHint();
  });
  return {
    mirror,
    text: () => mirror.getValue(),
    // Takes a text that the page made: one step to undo, and the cursor stays.
    setText(next) {
      if (next === mirror.getValue()) return;
      const { left, top } = mirror.getScrollInfo();
      const cursor = mirror.getCursor();
      mirror.setValue(next);
      mirror.setCursor(cursor, null, { scroll: false });
      mirror.scrollTo(left, top);
    },
    mark(list) {
      mistakes = list;
      mirror.performLint();
    },
    goTo(line) {
      mirror.focus();
      mirror.setCursor({ line, ch: 0 });
    },
  };
}
