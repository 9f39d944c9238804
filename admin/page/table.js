// Tables whose rows are kept from one snapshot to the next: only what has changed is written.

export class Table {
  #body;
  #rows = new Map();
  #columns;

  // Columns are {name, number, wide, cell: row → text, or an element's maker}.
  constructor(table, caption, columns) {
    this.#columns = columns;
    const title = table.createCaption();
    title.className = 'hidden';
    title.textContent = caption;
    const head = table.createTHead().insertRow();
    for (const c of columns) {
      const th = document.createElement('th');
      th.scope = 'col';
      th.textContent = c.name;
      if (c.number) th.className = 'number';
      head.append(th);
    }
    this.#body = table.createTBody();
  }

  draw(rows, keyOf, empty) {
    const seen = new Set();
    let next = this.#body.firstChild;
    for (const row of rows) {
      const key = keyOf(row);
      seen.add(key);
      let tr = this.#rows.get(key);
      if (!tr) {
        tr = this.#make();
        this.#rows.set(key, tr);
      }
      if (tr === next) next = next.nextSibling;
      else this.#body.insertBefore(tr, next);
      this.#columns.forEach((c, i) => c.draw ? c.draw(tr.cells[i], row) : say(tr.cells[i], c.cell(row)));
    }
    for (const [key, tr] of this.#rows) if (!seen.has(key)) { tr.remove(); this.#rows.delete(key); }
    this.#none(rows.length === 0, empty);
  }

  #make() {
    const tr = document.createElement('tr');
    for (const c of this.#columns) {
      const td = tr.insertCell();
      td.className = c.number ? 'number' : c.wide ? 'wide' : '';
    }
    return tr;
  }

  #none(is, text) {
    if (is && !this.#body.firstChild) {
      const td = this.#body.insertRow().insertCell();
      td.colSpan = this.#columns.length;
      td.className = 'quiet';
      td.textContent = text;
      this.#rows.set('', this.#body.firstChild);
    }
  }

  // choose marks a row, and brings it into sight.
  choose(key) {
    for (const [k, tr] of this.#rows) tr.classList.toggle('chosen', k === key);
    this.#rows.get(key)?.scrollIntoView({block: 'nearest'});
  }
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// stateCell shows a rail's state in its color.
export function stateCell(td, state, reason) {
  let s = td.firstChild;
  if (!s) td.append(s = document.createElement('span'));
  const kind = 'state ' + state;
  if (s.className !== kind) s.className = kind;
  say(s, state);
  if (s.title !== (reason ?? '')) s.title = reason ?? '';
}

// meterCell shows how full something is.
export function meterCell(td, part, text) {
  let m = td.firstChild;
  if (!m) {
    td.append(m = document.createElement('span'), document.createTextNode(''));
    m.className = 'meter';
    m.append(document.createElement('span'));
  }
  m.firstChild.style.width = Math.round(100 * Math.min(1, part)) + '%';
  if (td.lastChild.data !== ' ' + text) td.lastChild.data = ' ' + text;
}
