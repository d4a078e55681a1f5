// Roam: one tab stop for many marks, words beside the one that is pointed at, and ways to sections.
// SPDX-License-Identifier: Apache-2.0

let tip = null;

// Shows `lines` near `box`, a rectangle in the window.
function showTip(lines, box) {
  if (!tip) document.body.append(tip = element('div', { className: 'tooltip' }));
  tip.replaceChildren(...lines.map((line) => element('div', {}, line)));
  tip.hidden = false;
  const own = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth; // without the scroll bar
  const left = Math.min(box.right + 8, room - own.width - 6);
  const below = box.bottom + own.height + 8 <= innerHeight;
  const top = below ? box.bottom + 8 : box.top - own.height - 8;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  if (tip) tip.hidden = true;
}

// `marks` inside `container`, which is made anew with them. `step(i, key)` is the mark that a key
// leads to from mark i, `describe(i)` gives lines of text, `choose(i)` is for a click, Enter or the
// space bar.
function roam(container, marks, { step, describe, choose }) {
  const indices = new Map(marks.map((mark, i) => [mark, i]));
  const at = (event) => {
    for (let node = event.target; node && node !== container; node = node.parentNode) {
      if (indices.has(node)) return indices.get(node);
    }
    return -1;
  };
  const show = (i) => showTip(describe(i), marks[i].getBoundingClientRect());
  let stop = 0;
  const setStop = (i) => {
    marks[stop].setAttribute('tabindex', '-1');
    stop = i;
    marks[stop].setAttribute('tabindex', '0');
  };
  marks.forEach((mark) => mark.setAttribute('tabindex', '-1'));
  if (marks.length) setStop(0);
  const on = (name, act) => container.addEventListener(name, (event) => {
    if (at(event) >= 0) act(at(event), event);
  });
  on('pointerover', show);
  on('pointerout', hideTip);
  on('click', (i) => choose(i));
  on('focusin', (i) => { setStop(i); show(i); });
  on('focusout', hideTip);
  on('keydown', (i, event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') return hideTip();
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      return choose(i);
    }
    const next = step(i, event.key);
    if (next === undefined || !marks[next]) return;
    event.preventDefault();
    marks[next].focus();
  });
}

// To the section of result `index`, if it has one.
function goToSection(index) {
  const section = document.getElementById(`scenario-${index}`);
  if (!section) return;
  hideTip();
  section.scrollIntoView();
  section.focus({ preventScroll: true });
}

// "Metric: [choice]"; `onchange` is called after every choice. Returns {node, value()}, a number.
function choice(words, names, chosen, onchange) {
  const select = element('select', { onchange });
  names.forEach((name, i) => select.append(element('option', { value: String(i) }, name)));
  select.value = String(chosen);
  return {
    node: element('label', {}, `${words}: `, select),
    value: () => Number(select.value),
    set: (value) => { select.value = String(value); },
  };
}
