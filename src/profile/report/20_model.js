// A saved profile with what the parts of the page ask of it.
class Run {
  constructor(profile) {
    Object.assign(this, profile);
    for (const [k, step] of this.steps.entries()) {
      step.index = k;
      const spans = step.device.length ? step.device : step.host;
      step.spans = spans;
      step.last = spans.reduce((sum, s) => sum + s[3] - s[1], 0);
      step.time = step.seconds.median > 0 ? step.seconds.median : step.last;
      step.least = this.leastSeconds(step);
      step.share = step.least > 0 && step.time > 0 ? step.least / step.time : NaN;
    }
    this.total = this.steps.reduce((sum, s) => sum + s.time, 0);
    this.deviceTotal = this.steps.reduce((sum, s) => sum + s.device.reduce((all, span) => all + span[3] - span[1], 0), 0);
    this.lastTotal = this.steps.reduce((sum, s) => sum + s.last, 0);
    this.flops = this.steps.reduce((sum, s) => sum + s.flops, 0);
    this.moved = this.steps.reduce((sum, s) => sum + s.bytes, 0);
    this.least = this.steps.reduce((sum, s) => sum + s.least, 0);
    this.end = this.steps.reduce((most, s) => [...s.device, ...s.host].reduce((m, p) => Math.max(m, p[3]), most), 0);
    this.arena = this.buffers.filter((b) => b.place === 'arena' && b.inside === null && b.bytes > 0);
    this.live = this.liveCurve();
    for (const group of this.grouped((s) => s.op)) hueOf(group.op);
    // Arenas of several parts lie one above the other.
    this.arenaBase = [];
    let next = 0;
    for (const b of this.arena) this.arenaBase[b.arena] = Math.max(this.arenaBase[b.arena] || 0, b.offset + b.bytes);
    this.arenaBase = this.arenaBase.map((size) => { const base = next; next += size || 0; return base; });
    this.addressEnd = Math.max(next, 1);
  }

  leastSeconds(step) {
    const most = this.ceilings;
    const compute = most.flops_per_s > 0 ? step.flops / most.flops_per_s : 0;
    const isCached = most.cache_bytes_per_s > 0 && step.bytes <= most.cache_bytes;
    const bandwidth = isCached ? most.cache_bytes_per_s : most.bytes_per_s;
    return Math.max(compute, bandwidth > 0 ? step.bytes / bandwidth : 0);
  }

  liveCurve() {
    const change = new Float64Array(this.steps.length + 1);
    for (const b of this.arena) {
      if (b.last_step >= this.steps.length || b.first_step > b.last_step) continue;
      change[b.first_step] += b.bytes;
      change[b.last_step + 1] -= b.bytes;
    }
    // A result that takes the place of an operand is counted once with it.
    const ending = new Map(), shared = new Float64Array(this.steps.length);
    for (const b of this.arena) ending.set(b.last_step, [...(ending.get(b.last_step) || []), b]);
    for (const b of this.arena) {
      for (const old of ending.get(b.first_step) || []) {
        if (old.first_step >= b.first_step || old.arena !== b.arena) continue;
        shared[b.first_step] += Math.max(0, Math.min(old.offset + old.bytes, b.offset + b.bytes) - Math.max(old.offset, b.offset));
      }
    }
    const curve = { bytes: [], peak: 0 };
    let alive = 0;
    for (let k = 0; k < this.steps.length; ++k) {
      alive += change[k];
      curve.bytes.push(alive - shared[k]);
      if (curve.bytes[k] > curve.bytes[curve.peak]) curve.peak = k;
    }
    return curve;
  }

  startOf(k) { const s = this.steps[k]; return s && s.spans.length ? s.spans[0][1] : 0; }
  endOf(k) { const s = this.steps[k]; return s && s.spans.length ? s.spans[s.spans.length - 1][3] : 0; }
  aliveAt(k) { return this.arena.filter((b) => b.first_step <= k && k <= b.last_step).sort((a, b) => b.bytes - a.bytes); }

  grouped(keyOf) {
    const groups = new Map();
    for (const step of this.steps) {
      const key = keyOf(step);
      let group = groups.get(key);
      if (!group) groups.set(key, group = { key, op: step.op, steps: [], time: 0, last: 0, flops: 0, bytes: 0, least: 0 });
      group.steps.push(step.index);
      group.time += step.time;
      group.last += step.last;
      group.flops += step.flops;
      group.bytes += step.bytes;
      group.least += step.least;
    }
    return [...groups.values()].sort((a, b) => b.time - a.time);
  }

  shapesOf(step) {
    const list = (ids) => ids.map((id) => typeText(this.buffers[id])).join(' ');
    return list(step.reads) + ' → ' + list(step.writes);
  }
}

// What the page shows now: which run, which step, what is looked for.
const page = {
  runs: [], at: 0, chosen: -1, part: 'summary', query: '', matches: null, listeners: [],
  get run() { return this.runs[this.at]; },
  get other() { return this.runs.length > 1 ? this.runs[1 - this.at] : null; },
  changed(what) { for (const listen of this.listeners) listen(what); },
  choose(index) { this.chosen = index; this.changed('chosen'); },
  search(text) {
    this.query = text;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.matches = words.length === 0 ? null : new Set(this.run.steps.filter((step) => {
      const all = [step.name, step.value, step.op, step.kind, step.source, step.kernel, step.candidate, ...step.members].join(' ').toLowerCase();
      return words.every((word) => all.includes(word));
    }).map((step) => step.index));
    this.changed('search');
  },
  isFaded(index) { return this.matches !== null && !this.matches.has(index); },
};
