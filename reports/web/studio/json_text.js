// JsonText: JSON with comments, perhaps half typed, as nodes with their places in the text.
// SPDX-License-Identifier: Apache-2.0
//
// A node is {kind, start, end}; an object has members [{key, keyStart, value}], an array items, and
// a string or another scalar its value. What is missing at the end of a text is left out.

function scanJson(text) {
  let at = 0;
  const blank = /(?:\s|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))*/y;
  const skip = () => { blank.lastIndex = at; blank.test(text); at = blank.lastIndex; };
  const scalar = /[^\s,:{}[\]"/]+/y;
  const string = /"(?:[^"\\\n]|\\.)*"?/y;
  const take = (pattern) => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return null;
    const found = text.slice(at, pattern.lastIndex);
    at = pattern.lastIndex;
    return found;
  };
  const plain = (written) => {
    try { return JSON.parse(written); } catch { return written.replace(/^"|"$/g, ''); }
  };
  const object = (start) => {
    const node = { kind: 'object', start, members: [] };
    for (at++; ;) {
      skip();
      if (at >= text.length || text[at] === '}') break;
      const keyStart = at;
      const key = take(string);
      if (key === null) { at++; continue; }
      skip();
      const member = { key: plain(key), keyStart, keyEnd: keyStart + key.length, value: null };
      if (text[at] === ':') { at++; member.value = value(); }
      node.members.push(member);
    }
    node.end = Math.min(++at, text.length);
    return node;
  };
  const array = (start) => {
    const node = { kind: 'array', start, items: [] };
    for (at++; ;) {
      skip();
      if (at >= text.length || text[at] === ']') break;
      const item = value();
      if (item) node.items.push(item);
      else at++;
    }
    node.end = Math.min(++at, text.length);
    return node;
  };
  function value() {
    skip();
    const start = at;
    if (text[at] === '{') return object(start);
    if (text[at] === '[') return array(start);
    const written = text[at] === '"' ? take(string) : take(scalar);
    return written === null ? null : { kind: 'scalar', start, end: at, value: plain(written) };
  }
  return value();
}

const childOf = (node, key) => {
  if (!node) return null;
  if (node.kind === 'array') return node.items[Number(key)] || null;
  const member = node.kind === 'object' && node.members.find((one) => one.key === key);
  return (member && member.value) || null;
};

// Returns the node at a dotted path; null if there is none.
function nodeAtPath(text, path) {
  return path.split('.').reduce(childOf, scanJson(text));
}

// Returns the text with the value at `path` replaced, or added to an object that is there; null if
// that takes more than an edit of one place.
function withValue(text, path, value) {
  const node = nodeAtPath(text, path);
  const written = JSON.stringify(value);
  if (node) return text.slice(0, node.start) + written + text.slice(node.end);
  const keys = path.split('.');
  const key = keys.pop();
  const parent = keys.length && nodeAtPath(text, keys.join('.'));
  if (!parent || parent.kind !== 'object' || !parent.members.length) return null;
  const last = parent.members[parent.members.length - 1];
  if (!last.value) return null;
  const lineStart = text.lastIndexOf('\n', last.keyStart) + 1;
  const before = text.slice(lineStart, last.keyStart);
  const gap = /^\s*$/.test(before) ? `\n${before}` : ' ';
  const end = last.value.end;
  return `${text.slice(0, end)},${gap}${JSON.stringify(key)}: ${written}${text.slice(end)}`;
}

// Returns the text without the member at `path`, if there is one.
function withoutMember(text, path) {
  const keys = path.split('.');
  const key = keys.pop();
  const parent = keys.length ? nodeAtPath(text, keys.join('.')) : scanJson(text);
  const i = parent && parent.kind === 'object'
    ? parent.members.findIndex((member) => member.key === key) : -1;
  if (i < 0) return text;
  const { keyStart, keyEnd, value } = parent.members[i];
  const next = parent.members[i + 1];
  if (next) return text.slice(0, keyStart) + text.slice(next.keyStart);
  const before = parent.members[i - 1];
  const from = before ? (before.value ? before.value.end : before.keyEnd) : keyStart;
  return text.slice(0, from) + text.slice(value ? value.end : keyEnd);
}

// Returns `text` with the value of its member `key` as `other` has it.
function withMemberOf(text, key, other) {
  const [own, theirs] = [text, other].map((one) => nodeAtPath(one, key));
  if (!own || !theirs) return other;
  return text.slice(0, own.start) + other.slice(theirs.start, theirs.end) + text.slice(own.end);
}

// Returns where `offset` lies: the keys on the way to it, whether a key is typed there, and the
// object or scalar around it.
function placeAt(text, offset) {
  const keys = [];
  let node = scanJson(text);
  for (;;) {
    if (!node || node.kind === 'scalar') return { keys, node, inKey: false };
    if (node.kind === 'array') {
      const index = node.items.findIndex((item) => item.start <= offset && offset <= item.end);
      if (index < 0) return { keys: keys.concat('0'), node: null, inKey: false };
      keys.push(String(index));
      node = node.items[index];
      continue;
    }
    const member = node.members.filter((one) => one.keyStart < offset).pop();
    if (!member || offset <= member.keyEnd) return { keys, node, inKey: true, member };
    const valueEnd = member.value ? member.value.end : Infinity;
    const colon = text.indexOf(':', member.keyEnd);
    const beyond = offset > valueEnd || colon < 0 || colon >= offset;
    if (beyond) return { keys, node, inKey: true, member: null };
    keys.push(member.key);
    if (!member.value || member.value.start > offset) return { keys, node: null, inKey: false };
    node = member.value;
  }
}
