// The picture: this node on the left, peers on the right, each rail a cable between them. Elements are kept from one snapshot to the
// next, so that focus and animations stay.

import {rate, micros} from '/format.js';

const space = 'http://www.w3.org/2000/svg';
const rowHeight = 34, pad = 12, gap = 14;
const marks = {up: '●', probation: '◐', suspect: '?', down: '✕', connecting: '…'};

function make(name, attributes = {}, parent) {
  const e = document.createElementNS(space, name);
  set(e, attributes);
  parent?.append(e);
  return e;
}

function set(e, attributes) {
  for (const [k, v] of Object.entries(attributes)) {
    if (e.getAttribute(k) !== String(v)) e.setAttribute(k, v);
  }
}

function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function clip(text, width) {
  const most = Math.max(3, Math.floor(width / 7.2));
  return text.length > most ? text.slice(0, most - 1) + '…' : text;
}

export class Picture {
  #root;
  #svg;
  #home;
  #peers = new Map();
  #rails = new Map();
  onRail = () => {}; // (endpoint, rail)
  describe = () => ''; // what a press on a rail does, in words; '' where it shows the rail

  constructor(root) {
    this.#root = root;
    this.#svg = make('svg', {role: 'group', 'aria-label': 'Rails between this node and its peers'}, root);
    this.#home = this.#box();
  }

  #box() {
    const g = make('g', {'aria-hidden': 'true'}, this.#svg);
    return {g, rect: make('rect', {class: 'box', rx: 8}, g), name: make('text', {}, g), more: make('text', {class: 'small'}, g)};
  }

  draw(node, shown, rateOf) {
    const width = Math.max(300, this.#root.clientWidth), narrow = width < 620;
    const side = narrow ? 84 : Math.min(210, width * .2);
    let y = 4;
    const seenPeers = new Set(), seenRails = new Set();
    let fastest = 1;
    for (const e of shown) for (const r of e.rails) fastest = Math.max(fastest, rateOf(e, r).out + rateOf(e, r).in);
    for (const e of shown) {
      seenPeers.add(e.peer);
      const height = Math.max(1, e.rails.length) * rowHeight + pad;
      let b = this.#peers.get(e.peer);
      if (!b) this.#peers.set(e.peer, b = this.#box());
      this.#place(b, {x: width - side - 1, y, width: side, height}, e.name, e.name === e.peer ? '' : e.peer);
      e.rails.forEach((r, i) => {
        const key = e.peer + '|' + r.rail;
        seenRails.add(key);
        const line = {x1: side + 1, x2: width - side - 1, y: y + pad / 2 + (i + .5) * rowHeight, narrow, fastest};
        this.#rail(key, e, r, rateOf(e, r), line, shown.length <= 8);
      });
      y += height + gap;
    }
    for (const [k, b] of this.#peers) if (!seenPeers.has(k)) { b.g.remove(); this.#peers.delete(k); }
    for (const [k, b] of this.#rails) if (!seenRails.has(k)) { b.g.remove(); this.#rails.delete(k); }
    const height = Math.max(y - gap + 4, 60);
    this.#place(this.#home, {x: 1, y: 4, width: side, height: height - 8}, node.name, node.name === node.address ? '' : node.address);
    set(this.#svg, {viewBox: `0 0 ${width} ${height}`, height});
  }

  #place(b, at, name, more) {
    set(b.rect, at);
    const middle = at.y + at.height / 2 + 4;
    set(b.name, {x: at.x + 10, y: more ? middle - 8 : middle});
    say(b.name, clip(name, at.width - 16));
    set(b.more, {x: at.x + 10, y: middle + 9});
    say(b.more, clip(more, at.width - 16));
  }

  #rail(key, e, r, now, at, mayMove) {
    let b = this.#rails.get(key);
    if (!b) {
      const g = make('g', {tabindex: 0, role: 'button'}, this.#svg);
      b = {g, hit: make('rect', {class: 'hit', rx: 6}, g), line: make('path', {class: 'line'}, g), flow: make('path', {class: 'flow'}, g),
        local: make('text', {class: 'small'}, g), remote: make('text', {class: 'small', 'text-anchor': 'end'}, g),
        plate: make('rect', {class: 'plate', rx: 6}, g), mark: make('text', {class: 'mark', 'text-anchor': 'middle'}, g),
        label: make('text', {'text-anchor': 'middle'}, g)};
      g.addEventListener('click', () => this.onRail(b.endpoint, b.rail));
      g.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          this.onRail(b.endpoint, b.rail);
        }
      });
      this.#rails.set(key, b);
    }
    b.endpoint = e;
    b.rail = r;
    const total = now.out + now.in, flows = mayMove && total > 1000 && (r.state === 'up' || r.state === 'probation');
    set(b.g, {class: `rail ${r.state}${flows ? ' moving' : ''}`, 'data-rail': r.rail, 'data-state': r.state,
      'aria-label': `Rail ${r.rail} to ${e.name}: ${r.state}, ${rate(total)}, round trip ${micros(r.round_trip_us)}. ${this.describe(e, r)}`});
    set(b.hit, {x: at.x1 + 2, y: at.y - rowHeight / 2 + 1, width: at.x2 - at.x1 - 4, height: rowHeight - 2});
    const d = `M${at.x1} ${at.y}H${at.x2}`;
    set(b.line, {d, 'stroke-width': (2.5 + 5 * Math.sqrt(total / at.fastest)).toFixed(1)});
    set(b.flow, {d, visibility: flows ? 'visible' : 'hidden'});
    const text = at.narrow ? `${r.rail} · ${r.state === 'up' ? rate(total) : r.state}`
      : `rail ${r.rail} · ${r.state === 'up' ? rate(total) : r.state} · ${micros(r.round_trip_us)}`;
    const middle = (at.x1 + at.x2) / 2, half = text.length * 3.3 + 16;
    set(b.plate, {x: middle - half, y: at.y - 11, width: 2 * half, height: 22});
    set(b.mark, {x: middle - half + 10, y: at.y + 5});
    say(b.mark, marks[r.state] ?? '');
    set(b.label, {x: middle + 8, y: at.y + 5});
    say(b.label, text);
    const room = middle - half - at.x1 - 10;
    for (const [t, x, name] of [[b.local, at.x1 + 6, r.local], [b.remote, at.x2 - 6, r.remote]]) {
      set(t, {x, y: at.y - 6});
      say(t, room > 60 ? clip(name, room) : '');
    }
  }

  choose(peer, rail) {
    for (const [k, b] of this.#rails) b.g.classList.toggle('chosen', k === peer + '|' + rail);
  }
}
