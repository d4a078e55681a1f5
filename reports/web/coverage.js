// Coverage: ops too many to draw one by one; each pixel column shows the mixture that it holds.
// SPDX-License-Identifier: Apache-2.0

// Returns the colours of every kind of op as numbers: plain ones first, then pale, then dim ones.
function paints(kinds, lane) {
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const idle = rgb(lane);
  const plain = kinds.map((kind) => rgb(kind.colour));
  const mixed = (part) => plain.map((colour) => {
    return colour.map((c, i) => Math.round(part * c + (1 - part) * idle[i]));
  });
  const colours = [...plain, ...mixed(0.5), ...mixed(0.22)];
  return {
    idle,
    kinds: kinds.length,
    colours,
    styles: colours.map((colour) => `rgb(${colour})`),
    inks: kinds.map((kind) => kind.ink),
  };
}

// Numbers of the paints of all ops of a scenario.
function paintsOfOps({ ops, palette }) {
  return Uint8Array.from(ops, (op) => op.kind + (op.pale ? palette.kinds.length : 0));
}

// Returns the paint of op `i`; the dim paint of its kind if it is not on `path`.
function paintOf(paint, palette, path, i) {
  return path && !path[i] ? 2 * palette.kinds + paint % palette.kinds : paint;
}

let shares = new Float32Array(0); // kept from picture to picture

function emptyShares(size) {
  if (shares.length < size) shares = new Float32Array(size);
  shares.fill(0, 0, size);
  return shares;
}

// Draws ops [first, last) of `device`; `path` marks those on the critical path, if it is shown.
function drawCoverage(pen, device, [first, last], { top, bar, scenario, palette, path }) {
  const columns = Math.max(1, Math.round(pen.width * pen.ratio));
  const colours = palette.colours.length;
  const covered = emptyShares(columns * colours);
  const { start, end, op } = device;
  const { paintByOp } = scenario;
  const scale = columns / (pen.end - pen.begin);
  for (let i = first; i < last; i++) {
    const paint = paintOf(paintByOp[op[i]], palette, path, i);
    const from = Math.max(0, (start[i] - pen.begin) * scale);
    const to = Math.min(columns, (end[i] - pen.begin) * scale);
    const column = Math.floor(from);
    if (to <= column + 1) { // the usual case
      if (to > from) covered[column * colours + paint] += to - from;
      continue;
    }
    covered[column * colours + paint] += column + 1 - from;
    for (let c = column + 1; c < to; c++) covered[c * colours + paint] += Math.min(1, to - c);
  }
  paintColumns(pen, covered, columns, { top, bar, palette });
}

let scratchCanvas = null; // likewise

function scratchOf(columns) {
  if (!scratchCanvas || scratchCanvas.width !== columns) {
    scratchCanvas = new OffscreenCanvas(columns, 1);
    scratchCanvas.getContext('2d', { willReadFrequently: true });
  }
  return scratchCanvas;
}

function paintColumns(pen, covered, columns, { top, bar, palette }) {
  const strip = new ImageData(columns, 1);
  const { colours, idle } = palette;
  for (let column = 0; column < columns; column++) {
    let rest = 1;
    let [red, green, blue] = [0, 0, 0];
    for (let paint = 0; paint < colours.length; paint++) {
      const part = covered[column * colours.length + paint];
      if (part === 0) continue;
      rest -= part;
      red += part * colours[paint][0];
      green += part * colours[paint][1];
      blue += part * colours[paint][2];
    }
    rest = Math.max(0, rest);
    strip.data[4 * column] = red + rest * idle[0];
    strip.data[4 * column + 1] = green + rest * idle[1];
    strip.data[4 * column + 2] = blue + rest * idle[2];
    strip.data[4 * column + 3] = 255;
  }
  const scratch = scratchOf(columns);
  scratch.getContext('2d').putImageData(strip, 0, 0);
  pen.context.imageSmoothingEnabled = false;
  pen.context.drawImage(scratch, pen.left, top, pen.width, bar);
}
