// Figures as people read them. All units are decimal: 1 MB is 10^6 bytes.

const steps = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

function scaled(n, unit) {
  for (const [size, prefix] of steps) {
    if (n >= size) {
      const v = n / size;
      return (v >= 100 ? v.toFixed(0) : v.toFixed(1)) + ' ' + prefix + unit;
    }
  }
  return Math.round(n) + (unit ? ' ' + unit : '');
}

export const bytes = n => scaled(n, 'B');
export const rate = n => scaled(n, 'B/s');
export const perSecond = n => scaled(n, '/s');
export const count = n => Number(n).toLocaleString('en');

// micros writes a time that is given in microseconds.
export function micros(us) {
  if (us < 1000) return Math.round(us) + ' µs';
  return millis(us / 1000);
}

export function millis(ms) {
  if (ms < 10) return ms.toFixed(1) + ' ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  return span(ms);
}

// span writes a longer time, given in milliseconds.
export function span(ms) {
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 120) return Math.round(s) + ' s';
  if (s < 7200) return Math.round(s / 60) + ' min';
  if (s < 48 * 3600) return Math.round(s / 3600) + ' h';
  return Math.round(s / 86400) + ' days';
}

export const clock = at => new Date(at).toLocaleTimeString('en-GB');
