// Arithmetic a byte across, arithmetic a second up, both by powers of ten; a circle for each step.
function rooflinePart(root) {
  const chart = new Chart('Roofline: arithmetic a byte across, arithmetic a second up', 440, draw);
  chart.left = 76;
  chart.zoom = chart.move = () => {};
  let points = [];
  chart.hit = (px, py) => {
    let best = null, near = 14 * 14;
    for (const point of points) {
      const far = (point.x - px) ** 2 + (point.y - py) ** 2;
      if (far < Math.max(near, point.r * point.r)) { near = far; best = point; }
    }
    if (!best) return null;
    const { step } = best;
    return { step: step.index, tip: () => `${step.name}\n${seconds(step.time)}\n${rate(step.flops, step.time, 'FLOP/s')} · ${significant(step.flops / step.bytes, 3)} FLOP a byte` + (step.share > 0 ? `\n${percent(step.share, 1)} of the roofline` : '') };
  };
  function draw(context) {
    const run = page.run, most = run.ceilings;
    const steps = run.steps.filter((s) => s.flops > 0 && s.bytes > 0 && s.time > 0);
    points = [];
    if (steps.length === 0) {
      context.fillStyle = css('--soft');
      context.fillText('No step has arithmetic that was counted and timed.', 20, 40);
      return;
    }
    const xs = steps.map((s) => s.flops / s.bytes), ys = steps.map((s) => s.flops / s.time);
    if (most.flops_per_s > 0) ys.push(most.flops_per_s);
    const range = (list) => [Math.floor(Math.log10(list.reduce((a, b) => Math.min(a, b)))), Math.ceil(Math.log10(list.reduce((a, b) => Math.max(a, b))) + 0.05)];
    const [x0, x1] = range(xs), [y0, y1] = range(ys);
    const bottom = chart.height - 34, top = 14, right = chart.width - 14;
    const x = (v) => chart.left + (Math.log10(v) - x0) / Math.max(x1 - x0, 1) * (right - chart.left);
    const y = (v) => bottom - (Math.log10(v) - y0) / Math.max(y1 - y0, 1) * (bottom - top);
    context.strokeStyle = css('--grid');
    context.fillStyle = css('--soft');
    for (let p = x0; p <= x1; ++p) {
      context.beginPath(); context.moveTo(x(10 ** p), top); context.lineTo(x(10 ** p), bottom); context.stroke();
      context.textAlign = 'center';
      context.fillText(significant(10 ** p, 1), Math.min(x(10 ** p), right - 8), bottom + 15);
    }
    context.fillText('FLOP a byte', (chart.left + right) / 2, bottom + 30);
    context.textAlign = 'right';
    for (let p = y0; p <= y1; ++p) {
      context.beginPath(); context.moveTo(chart.left, y(10 ** p)); context.lineTo(right, y(10 ** p)); context.stroke();
      context.fillText(count(10 ** p, ''), chart.left - 6, y(10 ** p) + 4);
    }
    context.textAlign = 'left';
    const roof = (bandwidth, label) => {
      if (!(bandwidth > 0 && most.flops_per_s > 0)) return;
      const ridge = most.flops_per_s / bandwidth;
      const lo = 10 ** x0, hi = 10 ** x1;
      context.strokeStyle = css('--mark');
      context.beginPath();
      context.save();
      context.rect(chart.left, top, right - chart.left, bottom - top);
      context.clip();
      context.beginPath();
      context.moveTo(x(lo), y(lo * bandwidth));
      context.lineTo(x(Math.min(ridge, hi)), y(Math.min(ridge, hi) * bandwidth));
      if (ridge < hi) context.lineTo(x(hi), y(most.flops_per_s));
      context.stroke();
      context.restore();
      const at = Math.max(lo, 10 ** y0 / bandwidth * 1.5);
      context.fillStyle = css('--mark');
      context.fillText(label + ' ' + count(bandwidth, 'B/s'), clamp(x(at) + 8, chart.left + 6, right - 150), clamp(y(at * bandwidth) - 8, top + 12, bottom - 6));
    };
    roof(most.bytes_per_s, 'memory');
    roof(most.cache_bytes_per_s, 'caches');
    if (most.flops_per_s > 0) {
      context.fillStyle = css('--mark');
      context.textAlign = 'right';
      context.fillText('peak ' + count(most.flops_per_s, 'FLOP/s'), right - 4, y(most.flops_per_s) - 6);
      context.textAlign = 'left';
    }
    const longest = steps.reduce((m, s) => Math.max(m, s.time), 0);
    for (const step of [...steps].sort((a, b) => b.time - a.time)) {
      const point = { step, x: x(step.flops / step.bytes), y: y(step.flops / step.time), r: 3 + 13 * Math.sqrt(step.time / longest) };
      points.push(point);
      context.globalAlpha = page.isFaded(step.index) ? 0.12 : 0.72;
      context.fillStyle = colourOf(step.op);
      context.beginPath();
      context.arc(point.x, point.y, point.r, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = step.index === page.chosen ? css('--ink') : css('--panel');
      context.lineWidth = step.index === page.chosen ? 2.5 : 1;
      context.stroke();
      context.lineWidth = 1;
    }
    points.reverse();
  }
  const note = el('p', { class: 'note' });
  const describe = () => {
    note.textContent = page.run.ceilings.flops_per_s > 0
      ? `The nearer a step is to the line above it the less there is to gain. All steps together could not take less than ${seconds(page.run.least)}, ${percent(page.run.least, page.run.total)} of what they take. Steps above the line do with fewer operations than their definition has, as Winograd's convolutions. Circles are as large as the time they stand for.`
      : 'No ceilings of the machine are in this profile: `tenon doctor` measures them. Circles are as large as the time they stand for.';
  };
  describe();
  root.append(chart.canvas, note);
  chart.ask();
  return { chart, points: () => points.length, update(what) { if (what === 'run') describe(); chart.ask(); } };
}
