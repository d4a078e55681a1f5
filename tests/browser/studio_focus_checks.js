// Studio: notes where the focus goes.
// SPDX-License-Identifier: Apache-2.0
tell({
  'the first answer comes': () => studioCalm(),
  'the focus is noted': () => {
    window.visited = [];
    // Once the key is up, the style is settled; while the focus still moves it may not be.
    addEventListener('keyup', () => {
      const target = document.activeElement;
      if (target === document.body) return;  // behind the last stop
      const { outlineStyle } = getComputedStyle(target);
      const seen = outlineStyle !== 'none' || target.closest('.CodeMirror') !== null;
      window.visited.push({ name: target.id || target.textContent || target.tagName, seen,
        editor: target.closest('.CodeMirror') !== null, canvas: target.tagName === 'CANVAS' });
    }, true);
  },
  'nothing has the focus yet': () => expect(document.activeElement === document.body, 'it has'),
});
