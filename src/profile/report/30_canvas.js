// A drawing that can be zoomed and moved along x, redrawn at most once a frame.
class Chart {
  constructor(label, height, draw) {
    this.canvas = el('canvas', { tabindex: '0', role: 'img', 'aria-label': label });
    this.canvas.style.height = height + 'px';
    this.height = height;
    this.draw = draw;
    this.hits = null;
    this.view = [0, 1];
    this.limits = [0, 1];
    this.asked = false;
    this.listen();
    this.observer = new ResizeObserver(() => this.ask());
    this.observer.observe(this.canvas);
  }
  setHeight(height) { this.height = height; this.canvas.style.height = height + 'px'; this.ask(); }
  setLimits(lo, hi) { this.limits = [lo, hi]; this.view = [lo, hi]; this.ask(); }
  // Asked for each thing that is drawn: measured once for a drawing.
  get width() { return this.size || this.canvas.clientWidth; }
  x(value) { return this.left + (value - this.view[0]) / (this.view[1] - this.view[0]) * (this.width - this.left - 8); }
  value(x) { return this.view[0] + (x - this.left) / Math.max(this.width - this.left - 8, 1) * (this.view[1] - this.view[0]); }
  left = 8;

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.redraw(); });
  }
  redraw() {
    const ratio = devicePixelRatio || 1, width = this.size = this.canvas.clientWidth;
    if (width === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const context = this.canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    context.font = '12px system-ui, sans-serif';
    this.draw(context, this);
  }
  zoom(factor, at) {
    const [lo, hi] = this.view, span = this.limits[1] - this.limits[0];
    const wide = clamp((hi - lo) * factor, span / 5e5, span);
    const centre = at === undefined ? (lo + hi) / 2 : at;
    const from = clamp(centre - (centre - lo) / (hi - lo) * wide, this.limits[0], this.limits[1] - wide);
    this.view = [from, from + wide];
    this.ask();
  }
  move(share) {
    const wide = this.view[1] - this.view[0];
    const from = clamp(this.view[0] + share * wide, this.limits[0], this.limits[1] - wide);
    this.view = [from, from + wide];
    this.ask();
  }
  reset() { this.view = [...this.limits]; this.ask(); }
  show(lo, hi) {
    const room = Math.max((hi - lo) * 4, (this.limits[1] - this.limits[0]) / 5e5);
    if (lo >= this.view[0] && hi <= this.view[1] && (hi - lo) > (this.view[1] - this.view[0]) / 200) { this.ask(); return; }
    const wide = clamp(room, 0, this.limits[1] - this.limits[0]);
    const from = clamp((lo + hi) / 2 - wide / 2, this.limits[0], this.limits[1] - wide);
    this.view = [from, from + wide];
    this.ask();
  }

  listen() {
    const canvas = this.canvas;
    let dragged = null;
    canvas.addEventListener('wheel', (event) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        this.move((event.deltaX || event.deltaY) / 1000);
      } else if (event.ctrlKey || event.altKey || event.metaKey || document.activeElement === canvas) {
        event.preventDefault();
        this.zoom(Math.exp(event.deltaY / 400), this.value(event.offsetX));
      }
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => { dragged = { x: event.offsetX, view: [...this.view], far: false }; });
    canvas.addEventListener('pointermove', (event) => {
      if (dragged && event.buttons) {
        const shift = event.offsetX - dragged.x;
        if (!dragged.far && Math.abs(shift) > 4) { dragged.far = true; canvas.setPointerCapture(event.pointerId); }
        if (dragged.far) {
          const wide = dragged.view[1] - dragged.view[0];
          const from = clamp(dragged.view[0] - shift / Math.max(this.width - this.left - 8, 1) * wide, this.limits[0], this.limits[1] - wide);
          this.view = [from, from + wide];
          this.ask();
        }
        return;
      }
      const hit = this.hit(event.offsetX, event.offsetY);
      if (hit && hit.tip) showTip(hit.tip(), event.clientX, event.clientY); else hideTip();
      canvas.style.cursor = hit && hit.step !== undefined ? 'pointer' : 'default';
    });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('pointerup', (event) => {
      const was = dragged;
      dragged = null;
      if (was && was.far) return;
      const hit = this.hit(event.offsetX, event.offsetY);
      if (hit && hit.step !== undefined) page.choose(hit.step);
    });
    canvas.addEventListener('dblclick', (event) => this.zoom(0.4, this.value(event.offsetX)));
    canvas.addEventListener('keydown', (event) => {
      const act = { ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15), ArrowUp: () => this.zoom(0.7), ArrowDown: () => this.zoom(1.4) }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
  }
}

// Round numbers for an axis.
function ticksBetween(lo, hi, wanted) {
  const rough = (hi - lo) / Math.max(wanted, 1), size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= rough) || size * 10;
  const list = [];
  for (let at = Math.ceil(lo / step) * step; at <= hi; at += step) list.push(at);
  return list;
}
function byteTicks(most, wanted) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(most / Math.max(wanted, 1))));
  const list = [];
  for (let at = 0; at <= most; at += step) list.push(at);
  return list;
}
function timeAxis(context, chart, y) {
  context.fillStyle = css('--soft');
  context.strokeStyle = css('--grid');
  context.textAlign = 'center';
  for (const at of ticksBetween(chart.view[0], chart.view[1], chart.width / 110)) {
    const x = chart.x(at);
    context.beginPath();
    context.moveTo(x, y + 4);
    context.lineTo(x, chart.height);
    context.stroke();
    context.fillText(seconds(at), clamp(x, 30, chart.width - 30), y);
  }
  context.textAlign = 'left';
}
