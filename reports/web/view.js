// View: the stretch of time that all charts of a scenario show, and what moves it.
// SPDX-License-Identifier: Apache-2.0

const LEAST_RANGE = 1e-9; // seconds

// Returns a view of `limits`, the whole excerpt, which it never leaves by more than its own width.
function makeView(limits, initial) {
  const listeners = [];
  const view = { begin: initial[0], end: initial[1], limits };
  view.onChange = (listener) => listeners.push(listener);
  view.show = (begin, end, quiet) => {
    const length = Math.max(limits[1] - limits[0], LEAST_RANGE);
    const range = Math.min(Math.max(end - begin, LEAST_RANGE), view.most || length);
    const slack = Math.max(0, range - length) + 0.05 * range;
    const from = Math.max(limits[0] - slack, Math.min(begin, limits[1] + slack - range));
    view.begin = from;
    view.end = from + range;
    for (const listener of listeners) listener(view, quiet);
  };
  view.pan = (seconds) => view.show(view.begin + seconds, view.end + seconds);
  view.zoom = (factor, centre) => {
    view.show(centre - (centre - view.begin) * factor, centre + (view.end - centre) * factor);
  };
  return view;
}

// Keeps the views of several scenarios at one width and at one distance from the beginning of
// each one's measured window, while `enabled()`.
function linkViews(scenarios, enabled) {
  const most = Math.max(...scenarios.map((s) => s.range[1] - s.range[0]));
  for (const scenario of scenarios) {
    scenario.view.most = most;
    scenario.view.onChange((view, quiet) => {
      if (quiet || !enabled()) return;
      for (const other of scenarios) {
        if (other === scenario) continue;
        const begin = other.window[0] + view.begin - scenario.window[0];
        other.view.show(begin, begin + view.end - view.begin, true);
      }
    });
  }
}

const STILL = 4; // pixels that a click may move

// Lets drag, pinch, wheel and keys on `canvas` move `view`. `plot` gives the left edge and the
// width of the drawing, in pixels; `choose` is told of clicks, if there is one.
function moveByHand(canvas, view, plot, choose) {
  const pointers = new Map();
  let moved = 0;
  const timeAt = (x) => view.begin + (x - plot().left) / plot().width * (view.end - view.begin);
  const perPixel = () => (view.end - view.begin) / plot().width;
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.max(10, Math.abs(a - b));
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
    moved = pointers.size > 1 ? Infinity : 0;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = pointers.get(event.pointerId);
    const spreadBefore = pointers.size === 2 ? spread() : 0;
    pointers.set(event.pointerId, event.offsetX);
    moved += Math.abs(before - event.offsetX);
    if (pointers.size === 1) view.pan((before - event.offsetX) * perPixel());
    if (pointers.size !== 2) return;
    const [a, b] = [...pointers.values()];
    view.zoom(spreadBefore / spread(), timeAt((a + b) / 2));
  });
  for (const end of ['pointerup', 'pointercancel']) {
    canvas.addEventListener(end, (event) => {
      const clicked = pointers.delete(event.pointerId) && end === 'pointerup' && moved < STILL;
      if (clicked && choose) choose(event.offsetX, event.offsetY);
    });
  }
  canvas.addEventListener('wheel', (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    // A wheel that scrolls the page must not be caught. A pinch on a touch pad comes with ctrlKey.
    const meant = event.ctrlKey || event.metaKey || document.activeElement === canvas;
    if (!sideways && !meant) return;
    event.preventDefault();
    if (sideways) view.pan((event.deltaX || event.deltaY) * perPixel());
    else {
      const turn = Math.max(-60, Math.min(60, event.deltaY));
      view.zoom(Math.exp(turn * 0.004), timeAt(event.offsetX));
    }
  }, { passive: false });
  canvas.addEventListener('keydown', (event) => moveByKey(event, view));
}

function moveByKey(event, view) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const range = view.end - view.begin;
  const centre = (view.begin + view.end) / 2;
  const moves = {
    ArrowLeft: () => view.pan(-range / 8),
    ArrowRight: () => view.pan(range / 8),
    '+': () => view.zoom(1 / 1.5, centre),
    '=': () => view.zoom(1 / 1.5, centre),
    '-': () => view.zoom(1.5, centre),
    Home: () => view.show(view.limits[0], view.limits[0] + range),
    End: () => view.show(view.limits[1] - range, view.limits[1]),
    0: () => view.show(...view.limits),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
}
