// What the page knows: the newest snapshot, rates from the difference to the one before, and a short history for the chart.

const kept = 241; // samples: two minutes
const maxKeys = 4096; // rails whose history is kept

const railKey = (peer, rail) => peer + '|' + rail;

export class Model {
  node = null;
  rates = null;
  times = []; // seconds, as the chart wants them
  history = new Map(); // rail key → {peer, rail, local, out: [], in: []}, as long as times
  #before = null;
  #lastEvent = 0;
  fresh = []; // events that came with the newest snapshot

  take(node) {
    const before = this.#before;
    const at = Date.parse(node.at) / 1000;
    const same = before && before.incarnation === node.incarnation;
    const seconds = same ? at - Date.parse(before.at) / 1000 : 0;
    if (!same) this.#reset();
    this.node = node;
    this.rates = seconds > 0 ? this.#rates(before, node, seconds) : null;
    if (this.rates) this.#remember(at);
    this.fresh = node.events.filter(e => e.sequence > this.#lastEvent);
    if (node.events.length) this.#lastEvent = node.events[node.events.length - 1].sequence;
    this.#before = node;
  }

  #reset() {
    this.times = [];
    this.history.clear();
    this.#lastEvent = 0;
  }

  #rates(before, node, seconds) {
    const diff = (a, b) => Math.max(0, a - b) / seconds;
    const t = node.totals, b = before.totals;
    const rails = new Map();
    const old = new Map();
    for (const e of before.endpoints) for (const r of e.rails) old.set(railKey(e.peer, r.rail), r);
    for (const e of node.endpoints) {
      for (const r of e.rails) {
        const k = railKey(e.peer, r.rail), was = old.get(k);
        rails.set(k, was ? {out: diff(r.bytes_out, was.bytes_out), in: diff(r.bytes_in, was.bytes_in)} : {out: 0, in: 0});
      }
    }
    const since = name => recent(t[name], b[name]);
    return {
      rails, out: diff(t.bytes_out, b.bytes_out), in: diff(t.bytes_in, b.bytes_in),
      sent: diff(t.messages_sent, b.messages_sent), received: diff(t.messages_received, b.messages_received),
      operations: diff(t.operations_completed, b.operations_completed),
      puts: since('put_times'), gets: since('get_times'), messages: since('message_times'),
    };
  }

  // rail gives what a rail carries now, in bytes a second.
  rail(peer, rail) {
    return this.rates?.rails.get(railKey(peer, rail)) ?? {out: 0, in: 0};
  }

  #remember(at) {
    this.times.push(at);
    const n = this.times.length;
    for (const e of this.node.endpoints) {
      for (const r of e.rails) {
        const k = railKey(e.peer, r.rail);
        let h = this.history.get(k);
        if (!h) {
          if (this.history.size >= maxKeys) continue;
          h = {peer: e.peer, name: e.name, rail: r.rail, out: new Array(n - 1).fill(0), in: new Array(n - 1).fill(0)};
          this.history.set(k, h);
        }
        h.local = r.local;
        const now = this.rail(e.peer, r.rail);
        h.out.push(now.out);
        h.in.push(now.in);
      }
    }
    for (const [k, h] of this.history) {
      while (h.out.length < n) { // its rail is gone
        h.out.push(0);
        h.in.push(0);
      }
      if (n > kept) {
        h.out.shift();
        h.in.shift();
        if (!h.out.some(v => v > 0) && !h.in.some(v => v > 0) && !this.rates.rails.has(k)) this.history.delete(k);
      }
    }
    if (n > kept) this.times.shift();
  }
}

// recent gives the quantiles, in microseconds, of what was timed between two snapshots; null: nothing was.
function recent(now, before) {
  let counts = now.buckets ?? [];
  if (before.buckets?.length === counts.length && counts.every((n, i) => n >= before.buckets[i])) {
    counts = counts.map((n, i) => n - before.buckets[i]);
  }
  const total = counts.reduce((a, b) => a + b, 0);
  if (total === 0) return null;
  const quantile = q => {
    let seen = 0;
    for (let i = 0; i < counts.length; i++) {
      seen += counts[i];
      if (counts[i] > 0 && seen >= q * total) return 2 ** i;
    }
    return 2 ** (counts.length - 1);
  };
  return {total, p50: quantile(0.5), p99: quantile(0.99)};
}

export const works = r => r.state === 'up' || r.state === 'probation';

// troubled orders peers: those with rails that do not work first, then by address.
export function ordered(endpoints, find) {
  const wanted = find.trim().toLowerCase();
  const has = e => !wanted || [e.peer, e.name, ...e.rails.flatMap(r => [r.local, r.remote])].some(s => s.toLowerCase().includes(wanted));
  const broken = e => e.rails.some(r => !works(r)) ? 0 : 1;
  return endpoints.filter(has).sort((a, b) => broken(a) - broken(b) || (a.peer < b.peer ? -1 : 1));
}
