// Lanes of threads and streams over time, with the bytes alive beneath.
function timelinePart(root) {
  const laneHeight = 30, axisHeight = 22, curveHeight = 70;
  const chart = new Chart('Timeline of the last run: lanes of threads and streams', 200, draw);
  chart.left = 92;
  chart.hit = hit;
  let lanes = [];

  function lanesOf(run, prefix) {
    const made = run.lanes.map((lane, k) => ({ name: prefix + lane.name, isDevice: lane.is_device, run, spans: [], at: k }));
    for (const step of run.steps) {
      for (const [lane, start, kern, end] of [...step.device, ...step.host]) made[lane].spans.push({ step, start, kern, end });
    }
    for (const lane of made) lane.spans.sort((a, b) => a.start - b.start);
    return made.filter((lane) => lane.spans.length > 0);
  }
  function prepare() {
    const run = page.run;
    lanes = lanesOf(run, page.other ? (page.at === 0 ? 'A ' : 'B ') : '');
    if (page.other) lanes.push(...lanesOf(page.other, page.at === 0 ? 'B ' : 'A ').filter((lane) => lane.isDevice));
    chart.setHeight(axisHeight + lanes.length * laneHeight + curveHeight + 16);
    chart.setLimits(0, Math.max(run.end, page.other ? page.other.end : 0) || 1);
  }
  // The first span that ends behind a time: spans of a lane do not overlap.
  function firstAfter(spans, time) {
    let lo = 0, hi = spans.length;
    while (lo < hi) {
      const middle = (lo + hi) >> 1;
      if (spans[middle].end < time) lo = middle + 1; else hi = middle;
    }
    return lo;
  }
  function draw(context) {
    timeAxis(context, chart, 14);
    lanes.forEach((lane, row) => drawLane(context, lane, axisHeight + row * laneHeight));
    drawCurve(context, axisHeight + lanes.length * laneHeight + 8);
  }
  function drawLane(context, lane, top) {
    context.fillStyle = css('--soft');
    context.textAlign = 'right';
    context.fillText(lane.name.length > 14 ? lane.name.slice(0, 13) + '…' : lane.name, chart.left - 8, top + 19);
    context.textAlign = 'left';
    const right = chart.view[1], isShown = lane.run === page.run, shade = css('--shade'), ink = css('--ink');
    const [left, perSecond] = [chart.view[0], (chart.width - chart.left - 8) / (chart.view[1] - chart.view[0])];
    const x = (time) => chart.left + (time - left) * perSecond;
    let covered = -1;  // pixels are drawn once, however many steps lie in one
    for (let k = firstAfter(lane.spans, chart.view[0]); k < lane.spans.length && lane.spans[k].start <= right; ++k) {
      const { step, start, kern, end } = lane.spans[k];
      const from = Math.max(x(lane.isDevice ? start : kern), chart.left), to = Math.min(x(end), chart.width - 8);
      const width = Math.max(to - from, 0.6);
      const isChosen = isShown && step.index === page.chosen;
      if (from + width <= covered && !isChosen) continue;
      covered = Math.max(covered, width < 1 ? from + 0.6 : 0);
      const isFaded = isShown && page.isFaded(step.index);
      context.globalAlpha = isFaded ? 0.16 : isShown ? 1 : 0.6;
      context.fillStyle = colourOf(step.op);
      context.fillRect(from, top + 2, width, laneHeight - 5);
      if (width > 3 && lane.isDevice && kern > start) {
        context.fillStyle = shade;
        context.fillRect(from, top + 2, Math.min(x(kern), to) - from, laneHeight - 5);
      }
      if (isChosen) {
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.strokeRect(from - 1, top + 1, width + 2, laneHeight - 3);
        context.lineWidth = 1;
      }
      if (width > 46) {
        context.fillStyle = isDark() ? '#f4f6f7' : '#10161a';
        context.save();
        context.beginPath();
        context.rect(from, top, width - 3, laneHeight);
        context.clip();
        context.fillText(step.name, from + 4, top + 19);
        context.restore();
      }
      context.globalAlpha = 1;
    }
  }
  function drawCurve(context, top) {
    const run = page.run, most = Math.max(run.live.bytes[run.live.peak] || 0, 1);
    if (run.arena.length === 0) return;
    context.fillStyle = css('--soft');
    context.textAlign = 'right';
    context.fillText('alive', chart.left - 8, top + 12);
    context.fillText(bytes(most), chart.left - 8, top + 28);
    context.textAlign = 'left';
    context.fillStyle = css('--mark');
    context.globalAlpha = 0.35;
    let last = -1;
    for (let k = 0; k < run.steps.length; ++k) {
      const from = Math.max(chart.x(run.startOf(k)), chart.left), to = Math.min(chart.x(k + 1 < run.steps.length ? run.startOf(k + 1) : run.end), chart.width - 8);
      if (to <= chart.left || from >= chart.width - 8 || to <= last) continue;
      last = Math.max(to, from + 0.6);
      const high = run.live.bytes[k] / most * (curveHeight - 14);
      context.fillRect(from, top + curveHeight - 14 - high, Math.max(to - from, 0.6), high);
    }
    context.globalAlpha = 1;
  }
  function hit(x, y) {
    const row = Math.floor((y - axisHeight) / laneHeight), lane = lanes[row];
    if (!lane || y < axisHeight || x < chart.left) return null;
    const time = chart.value(x), slack = (chart.view[1] - chart.view[0]) / chart.width;
    const span = lane.spans[firstAfter(lane.spans, time - slack)];
    if (!span || span.start > time + slack) return null;
    const tip = () => `${span.step.name}\n${seconds(span.end - span.start)} · waited ${seconds(span.kern - span.start)}\n${span.step.candidate}`;
    return lane.run === page.run ? { step: span.step.index, tip } : { tip };
  }
  const button = (text, title, act) => el('button', { title, onclick: act, text });
  root.append(
    el('div', { class: 'tools' },
      button('+', 'Zoom in', () => chart.zoom(0.5)), button('−', 'Zoom out', () => chart.zoom(2)), button('All', 'The whole run', () => chart.reset()),
      el('span', { text: 'Drag to move, wheel over the focused chart or Ctrl-wheel to zoom, click a step.' })),
    chart.canvas,
    el('p', { class: 'note', text: 'The run shown is the last one; a step begins where the one before it ended. On the stream, its pale part is the time until the first thread began.' }));
  prepare();
  return {
    chart,
    update(what) {
      if (what === 'run') prepare();
      if (what === 'chosen' && page.chosen >= 0) chart.show(page.run.startOf(page.chosen), page.run.endOf(page.chosen));
      chart.ask();
    },
  };
}
