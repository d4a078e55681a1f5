// Axis: numbers, units and round ticks.
// SPDX-License-Identifier: Apache-2.0

const TIME_UNITS = [
  ['d', 86400], ['h', 3600], ['min', 60], ['s', 1], ['ms', 1e-3], ['us', 1e-6], ['ns', 1e-9],
];
const BYTE_UNITS = [
  ['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1],
];

// Returns the largest unit in which `value` is at least 1 when rounded to three digits.
function unitFor(value, units) {
  return units.find(([, size]) => Math.abs(value) >= 0.9995 * size) || units[units.length - 1];
}

function threeDigits(number) {
  if (number === 0) return '0';
  if (Math.abs(number) >= 100) return number.toFixed(0);
  return number.toPrecision(3);
}

function formatQuantity(value, units) {
  const [unit, size] = unitFor(value, units);
  return `${threeDigits(value / size)} ${unit}`;
}
const formatSeconds = (value) => formatQuantity(value, TIME_UNITS);
const formatBytes = (value) => formatQuantity(value, BYTE_UNITS);
const formatPercent = (fraction) => `${(100 * fraction).toFixed(1)} %`;

// Returns an instant with enough decimals to tell the ends of `range` seconds apart to a
// thousandth.
function formatInstant(time, range) {
  const [unit, size] = unitFor(Math.max(Math.abs(time), range), TIME_UNITS);
  const decimals = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(range / size))));
  return `${(time / size).toFixed(decimals)} ${unit}`;
}

function roundStep(range, most) {
  const raw = range / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999999);
}

// Returns ticks from `begin` to `end` seconds, [{at, label}], and their unit.
function timeTicks(begin, end, most) {
  const [unit, size] = unitFor(end - begin, TIME_UNITS);
  const step = roundStep((end - begin) / size, most);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(begin / size / step - 1e-9); i * step * size <= end; i++) {
    ticks.push({ at: i * step * size, label: (i * step).toFixed(decimals) });
  }
  return { unit, ticks };
}
