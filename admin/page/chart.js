// The chart: what is carried, stacked by rail, device or peer.

import {rate} from '/format.js';

const most = 10; // areas; the rest is one more
// Colors that people who see few colors tell apart, on white and on black.
const colors = ['#4477aa', '#ee9944', '#228833', '#aa3377', '#66bbdd', '#ccaa33', '#7755cc', '#cc5544', '#33998a', '#997755', '#888888'];

export class Chart {
  #root;
  #legend;
  #plot = null;
  #keys = '';
  #width = 0;
  #marks = []; // seconds at which a rail was lost
  #told = 0;

  constructor(root, legend) {
    this.#root = root;
    this.#legend = legend;
  }

  // redo draws anew from scratch: the theme has changed.
  redo() { this.#keys = ''; }

  draw(model, by, direction, marks) {
    if (model.times.length < 2) return;
    this.#marks = marks;
    const groups = this.#groups(model, by, direction);
    const keys = groups.map(g => g.key).join('\n');
    const data = stacked(model.times, groups);
    const width = this.#root.clientWidth;
    if (keys !== this.#keys) {
      this.#keys = keys;
      this.#build(groups, data, width);
    } else {
      if (width !== this.#width) this.#plot.setSize({width, height: 230});
      this.#plot.setData(data);
    }
    this.#width = width;
    this.#tell(groups, model.times.length - 1);
  }

  #groups(model, by, direction) {
    const sums = new Map();
    for (const h of model.history.values()) {
      const [key, name] = by(h);
      if (key === null) continue;
      let g = sums.get(key);
      if (!g) sums.set(key, g = {key, name, values: new Array(model.times.length).fill(0), total: 0});
      for (let i = 0; i < g.values.length; i++) {
        const v = (direction !== 'in' ? h.out[i] ?? 0 : 0) + (direction !== 'out' ? h.in[i] ?? 0 : 0);
        g.values[i] += v;
        g.total += v;
      }
    }
    let list = [...sums.values()];
    if (list.length > most) {
      list.sort((a, b) => b.total - a.total);
      const rest = list.splice(most);
      const others = {key: '\uffff', name: `${rest.length} others`, values: new Array(model.times.length).fill(0)};
      for (const g of rest) g.values.forEach((v, i) => { others.values[i] += v; });
      list.sort(byKey);
      list.push(others);
      return list;
    }
    return list.sort(byKey);
  }

  #build(groups, data, width) {
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue('--quiet').trim(), edge = style.getPropertyValue('--edge').trim();
    const resolved = c => { // light-dark() is not for canvas
      const probe = document.createElement('span');
      probe.style.color = c;
      document.body.append(probe);
      const value = getComputedStyle(probe).color;
      probe.remove();
      return value;
    };
    const ink = resolved(text), grid = resolved(edge), bad = resolved(style.getPropertyValue('--bad').trim());
    const axis = {stroke: ink, grid: {stroke: grid, width: 1}, ticks: {stroke: grid}, font: '12px system-ui, sans-serif'};
    const count = groups.length;
    // The uppermost sum is drawn first, so that the lower ones lie over it.
    this.#plot = new uPlot({
      width, height: 230, legend: {show: false}, cursor: {show: false}, select: {show: false}, padding: [8, 8, 0, 0],
      scales: {y: {range: (_, low, high) => [0, Math.max(high * 1.08, 1000)]}},
      axes: [axis, {...axis, size: 82, values: (_, ticks) => ticks.map(rate)}],
      series: [{}, ...groups.map((_, i) => {
        const color = colors[(count - 1 - i) % colors.length];
        return {stroke: color, fill: color, width: 0, points: {show: false}};
      })],
      hooks: {draw: [u => this.#drawMarks(u, bad)]},
    }, data, this.#root);
  }

  #drawMarks(u, color) {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.strokeStyle = color;
    ctx.setLineDash([4, 4]);
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const at of this.#marks) {
      if (at < u.scales.x.min || at > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(at, 'x', true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  #tell(groups, last) {
    while (this.#legend.children.length > groups.length) this.#legend.lastChild.remove();
    groups.forEach((g, i) => {
      let item = this.#legend.children[i];
      if (!item) {
        item = document.createElement('li');
        item.append(document.createElement('i'), document.createTextNode(''));
        this.#legend.append(item);
      }
      item.firstChild.style.background = colors[i % colors.length];
      item.lastChild.data = `${g.name}  ${rate(g.values[last])}`;
    });
    if (Date.now() - this.#told > 5000) {
      this.#told = Date.now();
      this.#root.setAttribute('aria-label', 'Bandwidth over the last two minutes; now ' +
        (groups.map(g => `${g.name} ${rate(g.values[last])}`).join(', ') || 'nothing'));
    }
  }
}

const byKey = (a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0;

// stacked gives the sums from the uppermost down.
function stacked(times, groups) {
  const sums = [];
  let below = new Array(times.length).fill(0);
  for (const g of groups) {
    below = below.map((v, i) => v + g.values[i]);
    sums.unshift(below);
  }
  return [times, ...sums];
}
