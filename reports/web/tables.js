// Tables: rows in the order of any column, rows that hold some words, copies for other programs.
// SPDX-License-Identifier: Apache-2.0

const SIZES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

// Returns the number that `text` begins with, "12.3k" or "71.2 %"; NaN: none.
function leadingNumber(text) {
  const found = /^[^0-9.-]*(-?[0-9.]+(?:e[-+]?\d+)?)([kMGT]?)/.exec(text);
  return found ? Number(found[1]) * (SIZES[found[2]] || 1) : NaN;
}

// Puts the rows of `table` in the order of column `index`: words upwards, numbers in the direction
// that `down` says. Cells without a number come last.
function sortRows(table, index, numbers, down) {
  const key = (row) => {
    const text = row.cells[index].textContent.trim();
    return numbers ? leadingNumber(text) : text;
  };
  const compare = (a, b) => {
    const [first, second] = [key(a), key(b)];
    if (!numbers) return first.localeCompare(second, 'en', { numeric: true }) * (down ? -1 : 1);
    if (Number.isNaN(first) || Number.isNaN(second)) return isNaN(first) - isNaN(second);
    return down ? second - first : first - second;
  };
  const [body] = table.tBodies;
  body.append(...[...body.rows].sort(compare));
}

// Makes the heads of `table` buttons that sort its rows; a second press turns the order round.
function addSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    const sort = element('button', { type: 'button', title: 'Sort by this column' },
      ...head.childNodes);
    sort.addEventListener('click', () => {
      const numbers = head.classList.contains('number');
      const before = head.getAttribute('aria-sort');
      const down = before ? before === 'ascending' : numbers;
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      sortRows(table, index, numbers, down);
    });
    head.append(sort);
  });
}

// Returns the rows of `table` that are shown, the heads first, each a list of texts.
function shownRows(table) {
  const head = [...table.tHead.rows[0].cells].map((cell) => {
    const unit = cell.querySelector('small');
    const name = cell.textContent.slice(0, unit ? -unit.textContent.length : undefined);
    return unit ? `${name} (${unit.textContent})` : name;
  });
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return [head, ...rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim()))];
}

function csvOf(rows) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => `${row.map(quoted).join(',')}\n`).join('');
}

const LATEX = { // the last line: other signs in LaTeX's first encoding
  '\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}',
  '×': '$\\times$', '–': '--',
  '|': '\\textbar{}', '<': '\\textless{}', '>': '\\textgreater{}',
};

function latexOf(rows, numbers) {
  const plain = (text) => text.replace(/[\\~^×–|<>&%$#_{}]/g,
    (letter) => LATEX[letter] || `\\${letter}`);
  const line = (row) => `${row.map(plain).join(' & ')} \\\\\n`;
  const columns = numbers.map((number) => (number ? 'r' : 'l')).join('');
  return `\\begin{tabular}{${columns}}\n\\hline\n${line(rows[0])}\\hline\n` +
    `${rows.slice(1).map(line).join('')}\\hline\n\\end{tabular}\n`;
}

// Puts `text` on the clipboard; where the browser does not let us, into a field to copy it from.
async function copyText(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    place.replaceChildren('Copied.');
  } catch {
    const field = element('textarea', { value: text, readOnly: true, rows: 6 });
    field.setAttribute('aria-label', 'The table as text: copy it from here');
    place.replaceChildren(field);
    field.select();
  }
}

// Adds, above `table`, a field that leaves only rows with all its words, and buttons that copy
// them.
function addTableTools(table) {
  const told = element('span', { className: 'note' });
  told.setAttribute('aria-live', 'polite');
  const rows = [...table.tBodies[0].rows];
  const filter = element('input', { type: 'search', placeholder: 'rows with these words' });
  filter.setAttribute('aria-label', 'Show only rows with these words');
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const left = rows.filter((row) => !row.hidden).length;
    told.replaceChildren(left < rows.length ? `${left} of ${rows.length} rows` : '');
  });
  const numbers = [...table.tHead.rows[0].cells].map((head) => head.classList.contains('number'));
  table.parentElement.before(element('div', { className: 'tools' }, filter,
    button('Copy as CSV', 'The rows shown, with commas',
      () => copyText(csvOf(shownRows(table)), told)),
    button('Copy as LaTeX', 'The rows shown, as a tabular',
      () => copyText(latexOf(shownRows(table), numbers), told)), told));
}

function startTables() {
  for (const table of document.querySelectorAll('.scroll table:not(.heat)')) {
    if (table.matches('.comparison, .sizing')) addTableTools(table);
    if (table.tBodies[0].rows.length > 1) addSorting(table);
  }
}
