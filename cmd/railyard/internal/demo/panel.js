// The demo's part of the page: what was promised, and hands to break it with.

import {count, millis, span} from '/format.js';

const promises = [
  ['lost', 'messages lost', s => s.lost], ['doubled', 'doubled', s => s.counters.doubled],
  ['reordered', 'reordered', s => s.counters.reordered], ['corrupted', 'corrupted', s => s.counters.corrupted],
  ['late', 'late writes', s => s.counters.late_writes], ['errors', 'errors seen', s => s.counters.endpoint_errors],
];
const faults = [
  ['blackhole', 'black hole: nothing passes, nobody is told'], ['reset', 'reset: both ends are told'],
  ['oneway to-target', 'one way: nothing reaches node b'], ['oneway to-source', 'one way: nothing reaches node a'],
  ['refuse', 'refuse: what is connected stays, nothing new'],
];

let state = null;
let act = async () => {};
let parts = {};

function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

async function press(command) {
  try {
    await act(command);
    say(parts.answer, '');
  } catch (error) {
    say(parts.answer, error.message);
  }
}

function toggle(cable) {
  press(cable.fault ? `heal ${cable.rail}` : `cut ${cable.rail} ${parts.fault.value}`);
}

function slider(id, label, unit, send) {
  const value = make('output', {for: id});
  const input = make('input', {type: 'range', id, min: 0, step: 1});
  let moved = 0;
  input.addEventListener('input', () => {
    moved = Date.now();
    say(value, unit(input.valueAsNumber));
  });
  input.addEventListener('change', send);
  return {
    root: make('div', {class: 'field'}, make('label', {for: id}, label + ' ', value), input), input,
    show(now, most) {
      if (Date.now() - moved < 1500) return; // whoever holds it decides
      if (Number(input.max) !== most) input.max = most;
      if (input.valueAsNumber !== now) input.value = now;
      say(value, unit(now));
    },
  };
}

function cableButton(cable) {
  const b = make('button', {type: 'button', 'data-cable': cable.rail, onclick: () => toggle(state.cables[cable.rail])});
  parts.cables.append(b);
  return b;
}

export default {
  title: 'The demo: cut what you like',

  mount(root, send) {
    act = send;
    parts = {promises: new Map(), buttons: []};
    const tiles = make('div', {class: 'promises'});
    for (const [key, label] of promises) {
      const value = make('b', {'data-promise': key}, '–');
      const tile = make('div', {class: 'promise'}, value, label);
      parts.promises.set(key, {tile, value});
      tiles.append(tile);
    }
    parts.load = make('p', {class: 'quiet'});
    parts.fault = make('select', {id: 'fault'}, ...faults.map(([value, text]) => make('option', {value}, text)));
    parts.cables = make('div', {class: 'cables', role: 'group', 'aria-label': 'Cables'});
    parts.all = make('button', {type: 'button', onclick: () => press(`cut all ${parts.fault.value}`)}, 'Cut all');
    parts.heal = make('button', {type: 'button', onclick: () => press('heal all')}, 'Heal all');
    parts.flap = make('button', {type: 'button', onclick: () => press('flap 0 10 300ms')}, 'Let cable 0 flap');
    parts.answer = make('p', {class: 'quiet', role: 'alert'});
    const pace = () => press(`pace ${parts.messages.input.value} ${Number(parts.puts.input.value) || 0 ? parts.puts.input.value + 'MB/s' : 0}`);
    parts.messages = slider('pace-messages', 'Messages', n => count(n) + ' /s', pace);
    parts.puts = slider('pace-puts', 'Puts', n => n + ' MB/s', pace);
    parts.records = make('ul', {class: 'quiet', 'aria-label': 'Cuts so far'});
    root.append(
      make('div', {class: 'head'}, make('h2', {}, 'What was promised, and what has come of it'), parts.load), tiles,
      make('div', {class: 'controls'},
        make('div', {class: 'field'}, make('label', {for: 'fault'}, 'A cut is a'), parts.fault,
          make('div', {class: 'cables'}, parts.all, parts.heal, parts.flap)),
        make('div', {class: 'field'}, make('span', {}, 'Cables (or press one in the picture)'), parts.cables, parts.answer),
        make('div', {class: 'field'}, parts.messages.root, parts.puts.root)),
      parts.records);
  },

  update(next) {
    state = next;
    for (const [key, , value] of promises) {
      const p = parts.promises.get(key), n = value(state);
      say(p.value, count(n));
      p.tile.classList.toggle('broken', n > 0);
    }
    const c = state.counters;
    say(parts.load, `${count(c.delivered)} of ${count(c.sent)} messages are there; ${count(c.completed)} of ${count(c.puts)} puts completed, ` +
      `${count(c.canceled)} canceled, ${count(c.revoked)} revoked; for ${span(1000 * state.seconds)}`);
    state.cables.forEach((cable, i) => {
      const b = parts.buttons[i] ??= cableButton(cable);
      b.setAttribute('aria-pressed', cable.fault ? 'true' : 'false');
      say(b, cable.fault ? `Heal ${i} (${cable.fault})` : `Cut ${i}`);
    });
    parts.messages.show(Math.round(state.pace.messages_per_s), state.pace.max_messages_per_s);
    parts.puts.show(Math.round(state.pace.puts_bytes_per_s / 1e6), state.pace.max_puts_bytes_per_s / 1e6);
    const records = state.records.slice(-5).reverse().map(r => `Cable ${r.rail}, ${r.cut}: noticed ${after(r.detected_ms)}, ` +
      `worst standstill ${millis(r.gap_ms)}, back ${after(r.rejoin_ms)} of its heal`);
    if (parts.records.dataset.shown !== records.join('\n')) {
      parts.records.dataset.shown = records.join('\n');
      parts.records.replaceChildren(...records.map(text => make('li', {}, text)));
    }
  },

  railAction(endpoint, rail) {
    const cable = state?.cables.find(c => [c.address, c.target].some(a => a === rail.local || a === rail.remote));
    if (!cable) return null;
    return {label: cable.fault ? 'Press to heal its cable.' : 'Press to cut its cable.', run: () => toggle(cable)};
  },
};

const after = ms => ms === null ? 'never' : 'within ' + millis(ms);
