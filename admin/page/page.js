// The page of a node: snapshots come as server-sent events, and are drawn. Nothing runs while the page is hidden.
//
// A panel of the application is a module at /panel/NAME.js whose default export has
//   title                          a heading
//   mount(root, act)               builds its part; act(command) sends a command, and throws what the program says against it
//   update(state, node)            draws its state, from the snapshot's panels
//   railAction(endpoint, rail)     optional: what a press on a rail does, {label, run}; null: nothing

import {Model, ordered, works} from '/model.js';
import {Picture} from '/picture.js';
import {Chart} from '/chart.js';
import {Table, say, stateCell, meterCell} from '/table.js';
import {bytes, rate, perSecond, count, micros, millis, span, clock} from '/format.js';
import names from '/panels.js';

const $ = id => document.getElementById(id);
const railsShown = 64; // at a time: so many stay readable, and cheap to draw
const peersShown = 12;

const model = new Model();
const picture = new Picture($('picture'));
const chart = new Chart($('chart'), $('legend'));
const panels = [];
let first = 0; // of the peers that are shown
let shown = [];

const tables = {
  rails: new Table($('rails'), 'The rails that the picture shows', [
    {name: 'Peer', cell: r => r.endpoint.name}, {name: 'Rail', number: true, cell: r => String(r.rail)},
    {name: 'State', draw: (td, r) => stateCell(td, r.state, r.reason)}, {name: 'Out', number: true, cell: r => rate(model.rail(r.endpoint.peer, r.rail).out)},
    {name: 'In', number: true, cell: r => rate(model.rail(r.endpoint.peer, r.rail).in)},
    {name: 'Round trip', number: true, cell: r => micros(r.round_trip_us)}, {name: 'In flight', number: true, cell: r => bytes(r.in_flight_bytes)},
    {name: 'Able to', number: true, cell: r => r.rate_bytes_per_s ? rate(r.rate_bytes_per_s) : '–'}, {name: 'Weight', number: true, cell: r => Math.round(100 * r.weight) + ' %'},
    {name: 'Generation', number: true, cell: r => count(r.generation)}, {name: 'Lost', number: true, cell: r => count(r.restarts)},
    {name: 'For', number: true, cell: r => span(r.since_ms)}, {name: 'Local', cell: r => r.local}, {name: 'Remote', cell: r => r.remote},
    {name: 'Why', wide: true, cell: r => r.reason ?? ''},
  ]),
  peers: new Table($('peers'), 'The peers that the picture shows', [
    {name: 'Peer', cell: e => e.name}, {name: 'Address', cell: e => e.peer},
    {name: 'Rails', number: true, cell: e => `${e.rails.filter(works).length} of ${e.rails.length}`},
    {name: 'Window in use', draw: (td, e) => meterCell(td, e.under_way_bytes / (e.window_bytes || 1), `${bytes(e.under_way_bytes)} of ${bytes(e.window_bytes)}`)},
    {name: 'Found it full', number: true, cell: e => count(e.window_full)}, {name: 'Open', number: true, cell: e => count(e.operations_open)},
    {name: 'Completed', number: true, cell: e => count(e.operations_completed)}, {name: 'Sent', number: true, cell: e => count(e.messages_sent)},
    {name: 'Received', number: true, cell: e => count(e.messages_received)},
  ]),
  failovers: new Table($('failovers'), 'Rails that were lost, the newest first', [
    {name: 'At', cell: f => clock(f.at)}, {name: 'Rail', number: true, cell: f => String(f.rail)}, {name: 'Peer', cell: f => f.peer},
    {name: 'Gap', number: true, cell: f => f.gap_ms === null ? (f.ended ? '–' : 'open') : millis(f.gap_ms)},
    {name: 'Rerouted', number: true, cell: f => bytes(f.rerouted_bytes)},
    {name: 'Away', number: true, cell: f => f.outage_ms === null ? (f.ended ? 'ended' : 'still') : millis(f.outage_ms)},
    {name: 'Local', cell: f => f.local}, {name: 'Remote', cell: f => f.remote}, {name: 'Why', wide: true, cell: f => f.cause},
  ]),
  events: new Table($('events'), 'What has happened, the newest first', [
    {name: 'At', cell: e => clock(e.at)}, {name: 'Event', cell: e => e.kind}, {name: 'Peer', cell: e => e.peer ?? ''},
    {name: 'Rail', number: true, cell: e => e.generation ? String(e.rail) : ''}, {name: 'Devices', cell: e => [e.local, e.remote].filter(Boolean).join(' → ')},
    {name: 'Why', wide: true, cell: e => e.cause ?? ''},
  ]),
};

const tiles = new Map();
function tile(name, value, more) {
  let t = tiles.get(name);
  if (!t) {
    const root = document.createElement('div');
    root.className = 'tile';
    root.dataset.tile = name;
    t = ['what', 'value', 'more'].map(c => {
      const e = document.createElement('div');
      e.className = c;
      root.append(e);
      return e;
    });
    t[0].textContent = name;
    $('tiles').append(root);
    tiles.set(name, t);
  }
  say(t[1], value);
  say(t[2], more);
}

function drawTiles() {
  const r = model.rates, n = model.node, t = n.totals;
  const latency = q => q ? `half within ${micros(q.p50)}, 99 % within ${micros(q.p99)}` : 'none ended just now';
  tile('Carried out', r ? rate(r.out) : '–', bytes(t.bytes_out) + ' so far');
  tile('Carried in', r ? rate(r.in) : '–', bytes(t.bytes_in) + ' so far');
  tile('Messages sent', r ? perSecond(r.sent) : '–', latency(r?.messages));
  tile('Messages received', r ? perSecond(r.received) : '–', count(t.messages_received) + ' so far');
  tile('Puts', r?.puts && r ? perSecond(r.puts.total * 1000 / Math.max(1, model.interval ?? 500)) : '0 /s', latency(r?.puts));
  tile('Gets', r?.gets ? perSecond(r.gets.total * 1000 / Math.max(1, model.interval ?? 500)) : '0 /s', latency(r?.gets));
  const open = n.endpoints.reduce((a, e) => a + e.operations_open, 0);
  tile('Operations open', count(open), `${count(t.operations_canceled)} canceled, ${count(t.operations_refused)} refused`);
  tile('Regions', count(n.regions.live), `of ${count(n.regions.limit)}`);
}

function drawHead() {
  const n = model.node;
  say($('node-name'), n.name);
  say($('node-facts'), `${n.address} · version ${n.version} · up for ${span(Date.parse(n.at) - Date.parse(n.started))}`);
  const rails = n.endpoints.flatMap(e => e.rails), well = rails.filter(works).length;
  say($('health'), `${n.endpoints.length} peer${n.endpoints.length === 1 ? '' : 's'}, ${well} of ${rails.length} rails work`);
  document.title = `${well}/${rails.length} rails · ${n.name} · Railyard`;
}

// choosePeers picks the peers that are drawn: a page of them.
function choosePeers() {
  const all = ordered(model.node.endpoints, $('find').value);
  first = Math.max(0, Math.min(first, all.length - 1));
  shown = [];
  let rails = 0;
  for (const e of all.slice(first, first + peersShown)) {
    if (shown.length && rails + e.rails.length > railsShown) break;
    shown.push(e);
    rails += e.rails.length;
  }
  $('before').disabled = first === 0;
  $('after').disabled = first + shown.length >= all.length;
  say($('where'), all.length ? `${first + 1} to ${first + shown.length} of ${all.length}` : 'none');
  document.querySelector('.pager').hidden = all.length <= shown.length && first === 0;
}

function drawChart() {
  let by = $('group').value;
  const names = new Set(shown.map(e => e.peer));
  if (!by) by = model.history.size <= 10 ? 'rail' : model.node.endpoints.length <= 10 ? 'peer' : 'local';
  const several = model.node.endpoints.length > 1;
  const group = {
    rail: h => names.has(h.peer) ? [`${h.peer} ${String(h.rail).padStart(3, '0')}`, several ? `rail ${h.rail} to ${h.name}` : `rail ${h.rail}`] : [null, ''],
    local: h => { const device = h.local.replace(/:\d+$/, ''); return [device, device]; },
    peer: h => [h.peer, h.name],
  }[by];
  chart.draw(model, group, $('direction').value, model.node.failovers.map(f => Date.parse(f.at) / 1000));
}

function drawPanels() {
  for (const p of panels) {
    const state = model.node.panels?.[p.name];
    if (state) p.panel.update(state, model.node);
  }
}

function draw() {
  const began = performance.now();
  choosePeers();
  drawHead();
  drawPanels();
  drawTiles();
  picture.draw(model.node, shown, (e, r) => model.rail(e.peer, r.rail));
  drawChart();
  tables.rails.draw(shown.flatMap(e => e.rails.map(r => ({...r, endpoint: e}))), r => r.endpoint.peer + '|' + r.rail, 'No rails yet.');
  tables.peers.draw(shown, e => e.peer, 'No peers yet.');
  const failovers = [...model.node.failovers].reverse();
  tables.failovers.draw(failovers, f => `${f.at}|${f.peer}|${f.rail}|${f.generation}`, 'No rail has been lost.');
  tables.events.draw([...model.node.events].reverse(), e => String(e.sequence), 'Nothing has happened yet.');
  const news = model.fresh.filter(e => ['RailDown', 'RailRejoined', 'EndpointDown', 'EndpointUp'].includes(e.kind)).slice(-4);
  if (news.length) say($('news'), news.map(e => `${e.kind} ${e.peer} rail ${e.rail} ${e.cause ?? ''}`).join('. '));
  document.documentElement.dataset.drawMs = (performance.now() - began).toFixed(1);
  document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
}

let asked = false;
function redraw() {
  if (asked || !model.node) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    draw();
  });
}

// The stream. The browser tries again by itself, but for an answer that is no stream.
let stream = null, retry = 0;
function link(kind, text) {
  $('link').className = 'badge ' + kind;
  say($('link'), text);
}

function open() {
  clearTimeout(retry);
  if (stream || document.hidden) return;
  stream = new EventSource('/api/stream');
  stream.onmessage = event => {
    const node = JSON.parse(event.data), before = model.node;
    model.interval = before ? Date.parse(node.at) - Date.parse(before.at) : 500;
    model.take(node);
    link('good', 'live');
    redraw();
  };
  stream.onerror = () => {
    link('bad', 'no connection, trying again');
    if (stream?.readyState === EventSource.CLOSED) {
      close();
      retry = setTimeout(open, 3000);
    }
  };
}

function close() {
  stream?.close();
  stream = null;
}

document.addEventListener('visibilitychange', () => document.hidden ? close() : open());
$('before').onclick = () => { first = Math.max(0, first - peersShown); redraw(); };
$('after').onclick = () => { first += shown.length; redraw(); };
$('find').oninput = () => { first = 0; redraw(); };
$('direction').onchange = $('group').onchange = redraw;
new ResizeObserver(redraw).observe($('picture'));

const theme = $('theme');
function applyTheme() {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
  chart.redo();
  redraw();
}
theme.value = localStorage.getItem('theme') ?? '';
theme.onchange = () => {
  localStorage.setItem('theme', theme.value);
  applyTheme();
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
applyTheme();

function actionOf(e, r) {
  for (const p of panels) {
    const a = p.panel.railAction?.(e, r);
    if (a) return a;
  }
  return null;
}
picture.describe = (e, r) => actionOf(e, r)?.label ?? 'Press to find it in the table.';
picture.onRail = (e, r) => {
  picture.choose(e.peer, r.rail);
  const action = actionOf(e, r);
  if (action) action.run();
  else tables.rails.choose(e.peer + '|' + r.rail);
};

for (const name of names) {
  const panel = await import(`/panel/${name}.js`).then(m => m.default, error => { console.error(error); return null; });
  if (!panel) continue;
  const root = document.createElement('section');
  root.className = 'card';
  root.setAttribute('aria-label', panel.title);
  $('panels').append(root);
  panel.mount(root, async command => {
    const answer = await fetch('/panel/' + name, {method: 'POST', body: command});
    if (!answer.ok) throw new Error((await answer.text()).trim());
  });
  panels.push({name, panel});
}
if (panels.some(p => p.panel.railAction)) say($('picture-hint'), 'Press a cable to cut it, and again to heal it. Trouble comes first.');
open();
