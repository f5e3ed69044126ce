// Time across, addresses up: a rectangle for each buffer.
function memoryPart(root) {
  const chart = new Chart('Memory map: time across, addresses up, a rectangle for each buffer', 420, draw);
  chart.left = 76;
  chart.hit = hit;
  let boxes = [];
  const list = el('div');
  const said = el('p', { class: 'note', id: 'memory-note' });

  function marked(run) {
    const number = (making) => run.arena.filter((b) => b.making === making).length;
    const again = number('again'), back = number('back');
    return (again ? ` ${again} were made again (hatched upwards).` : '') + (back ? ` ${back} were put aside and brought back (hatched downwards).` : '');
  }
  function prepare() {
    const run = page.run;
    // Steps of equal width where nothing was timed.
    const isTimed = run.end > 0;
    chart.setLimits(0, isTimed ? run.end : Math.max(run.steps.length, 1));
    boxes = run.arena.map((buffer) => ({
      buffer,
      from: isTimed ? run.startOf(buffer.first_step) : buffer.first_step,
      to: isTimed ? run.endOf(buffer.last_step) : buffer.last_step + 1,
      low: run.arenaBase[buffer.arena] + buffer.offset,
    }));
    const peak = run.live.bytes[run.live.peak] || 0;
    said.textContent = `${boxes.length} buffers in ${bytes(run.arena_bytes)}` + (run.touched_bytes ? `, of which a run writes to ${bytes(run.touched_bytes)}` : '') +
      (peak ? `; at most ${bytes(peak)} are alive, at step ${run.live.peak}, ${run.steps[run.live.peak].name}` : '') +
      (run.budget_bytes ? `; the budget is ${bytes(run.budget_bytes)}` : '') + '.' + marked(run);
    list.replaceChildren();
    if (!peak) return;
    const alive = run.aliveAt(run.live.peak);
    list.append(el('h2', { text: 'Alive at the peak' }), el('div', { class: 'bars' }, alive.slice(0, 12).flatMap((b) => [
      el('span', { class: 'name', title: b.name, text: b.name }),
      el('span', { class: 'bar' }, (() => { const i = el('i'); i.style.width = 100 * b.bytes / alive[0].bytes + '%'; i.style.background = css('--mark'); return i; })()),
      el('span', { class: 'value', text: bytes(b.bytes) + ' · steps ' + b.first_step + '–' + b.last_step }),
    ])));
  }
  const top = 10, bottom = () => chart.height - 26;
  const high = () => Math.max(page.run.addressEnd, page.run.budget_bytes, 1);
  const y = (address) => bottom() - address / high() * (bottom() - top);

  function draw(context) {
    const run = page.run;
    context.strokeStyle = css('--grid');
    context.fillStyle = css('--soft');
    context.textAlign = 'right';
    for (const at of byteTicks(high(), 8)) {
      context.beginPath();
      context.moveTo(chart.left, y(at));
      context.lineTo(chart.width - 8, y(at));
      context.stroke();
      context.fillText(bytes(at), chart.left - 6, y(at) + 4);
    }
    context.textAlign = 'left';
    chart.drawn = 0;
    for (const box of boxes) {
      const from = Math.max(chart.x(box.from), chart.left), to = Math.min(chart.x(box.to), chart.width - 8);
      if (to < chart.left || from > chart.width - 8) continue;
      const maker = run.steps[box.buffer.first_step];
      const isChosen = page.chosen >= 0 && (run.steps[page.chosen].reads.concat(run.steps[page.chosen].writes)).some((id) => run.buffers[id] === box.buffer);
      context.globalAlpha = maker && page.isFaded(maker.index) && !isChosen ? 0.2 : 0.85;
      context.fillStyle = maker ? colourOf(maker.op) : css('--mark');
      const low = y(box.low), tall = Math.max(low - y(box.low + box.buffer.bytes), 0.8);
      context.fillRect(from, low - tall, Math.max(to - from, 0.8), tall);
      context.globalAlpha = 1;
      context.strokeStyle = isChosen ? css('--ink') : css('--panel');
      context.lineWidth = isChosen ? 2 : 0.7;
      if (tall > 3 && to - from > 3 || isChosen) context.strokeRect(from, low - tall, Math.max(to - from, 0.8), tall);
      context.lineWidth = 1;
      if (box.buffer.making !== 'made') hatch(context, from, low - tall, Math.max(to - from, 0.8), tall, box.buffer.making === 'back');
      if (tall > 14 && to - from > 70) {
        context.fillStyle = isDark() ? '#f4f6f7' : '#10161a';
        context.save();
        context.beginPath();
        context.rect(from, low - tall, to - from - 3, tall);
        context.clip();
        context.fillText(box.buffer.name, from + 4, low - tall / 2 + 4);
        context.restore();
      }
      ++chart.drawn;
    }
    line(context, run.arena_bytes, css('--soft'), 'arena ' + bytes(run.arena_bytes));
    if (run.budget_bytes) line(context, run.budget_bytes, css('--hot'), 'budget ' + bytes(run.budget_bytes));
    if (run.live.bytes[run.live.peak]) {
      const x = chart.x(run.end > 0 ? run.startOf(run.live.peak) : run.live.peak);
      if (x >= chart.left) {
        context.strokeStyle = css('--hot');
        context.setLineDash([4, 3]);
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, bottom());
        context.stroke();
        context.setLineDash([]);
        context.fillStyle = css('--hot');
        context.fillText('peak', clamp(x + 4, chart.left, chart.width - 40), top + 10);
      }
    }
    context.fillStyle = css('--soft');
    context.textAlign = 'center';
    for (const at of ticksBetween(chart.view[0], chart.view[1], chart.width / 110)) context.fillText(run.end > 0 ? seconds(at) : 'step ' + at, clamp(chart.x(at), 40, chart.width - 30), chart.height - 8);
    context.textAlign = 'left';
  }
  // What a budget costs: made again is hatched one way, brought back from where it was put aside the other.
  function hatch(context, x, y, wide, tall, isBack) {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, tall);
    context.clip();
    context.strokeStyle = css('--ink');
    context.globalAlpha = 0.55;
    context.beginPath();
    for (let at = -tall; at < wide; at += 7) {
      context.moveTo(x + at, isBack ? y : y + tall);
      context.lineTo(x + at + tall, isBack ? y + tall : y);
    }
    context.stroke();
    context.restore();
  }
  function line(context, address, colour, text) {
    context.strokeStyle = colour;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(chart.left, y(address));
    context.lineTo(chart.width - 8, y(address));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour;
    context.textAlign = 'right';
    context.fillText(text, chart.width - 12, y(address) + 14);
    context.textAlign = 'left';
  }
  function hit(px, py) {
    const time = chart.value(px), address = (bottom() - py) / (bottom() - top) * high();
    const box = boxes.find((b) => b.from <= time && time <= b.to && b.low <= address && address <= b.low + b.buffer.bytes);
    if (!box) return null;
    const b = box.buffer;
    const how = { made: '', again: '\nmade again', back: '\nbrought back from where it was put aside' }[b.making];
    return { step: b.first_step, tip: () => `${b.name}\n${typeText(b)} · ${bytes(b.bytes)}\nat ${b.offset}, steps ${b.first_step} to ${b.last_step}${how}` };
  }
  root.append(said, el('div', { class: 'tools' },
    el('button', { text: '+', onclick: () => chart.zoom(0.5) }), el('button', { text: '−', onclick: () => chart.zoom(2) }), el('button', { text: 'All', onclick: () => chart.reset() }),
    el('span', { text: 'Click a buffer for the step that makes it.' })), chart.canvas, list);
  prepare();
  return { chart, boxes: () => boxes.length, update(what) { if (what === 'run') prepare(); chart.ask(); } };
}
