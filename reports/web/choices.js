// Choices: which of several pictures in the page is shown, and which of their curves.
// SPDX-License-Identifier: Apache-2.0

// Adds "Measure: [choice]" above the parts of `place`, of which one is shown at a time.
function addChoice(place) {
  const parts = [...place.children];
  const show = () => parts.forEach((part, i) => { part.hidden = i !== Number(select.value); });
  const names = parts.map((part, i) => element('option', { value: String(i) }, part.dataset.name));
  const select = element('select', { onchange: show }, ...names);
  const label = element('label', {}, `${place.dataset.words}: `, select);
  place.before(element('p', { className: 'tools' }, label));
  show();
}

// Adds boxes to the legend of `figure` that switch its curves on and off.
function addCurveBoxes(figure) {
  const panels = [...figure.querySelectorAll('.panels svg')];
  const curves = panels.map((panel) => [...panel.querySelectorAll('.curve')]);
  if (!curves[0].length) return;
  figure.querySelectorAll('.legend li').forEach((entry, i) => {
    const onchange = () => curves.forEach((ofPanel) => {
      ofPanel[i].style.display = box.checked ? '' : 'none';
    });
    const box = element('input', { type: 'checkbox', checked: true, onchange });
    entry.replaceChildren(element('label', {}, box, ...entry.childNodes));
  });
}

function startChoices() {
  document.querySelectorAll('.choices').forEach(addChoice);
  document.querySelectorAll('.picture').forEach(addCurveBoxes);
}
