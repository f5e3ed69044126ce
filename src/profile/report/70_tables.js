// A table whose columns sort; long ones are filled as they are scrolled to.
function sortedTable(columns, rows, options) {
  const order = { column: options.sort || 0, down: options.down !== false, rows: [...rows] };
  const body = el('tbody'), heads = [];
  const limit = 400;
  function fill() {
    const column = columns[order.column], sign = order.down ? -1 : 1;
    order.rows.sort((a, b) => {
      const x = column.value(a), y = column.value(b);
      if (typeof x === 'string' || typeof y === 'string') return sign * String(x).localeCompare(String(y));
      return (Number.isFinite(x) ? 0 : 1) - (Number.isFinite(y) ? 0 : 1) || sign * (x - y);
    });
    heads.forEach((head, k) => (k === order.column ? head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending') : head.removeAttribute('aria-sort')));
    body.replaceChildren();
    more(limit);
  }
  function more(wanted) {
    const shown = options.filter ? order.rows.filter(options.filter) : order.rows;
    const from = body.children.length;
    for (const row of shown.slice(from, from + wanted)) {
      const line = el('tr', { tabindex: '-1', 'data-step': options.step ? options.step(row) : null },
        columns.map((c) => el('td', { class: [c.right ? 'right' : '', c.mono ? 'mono' : '', c.wide ? 'wide' : ''].join(' ').trim() || null, title: c.wide ? c.value(row) : null, text: c.text ? c.text(row) : c.value(row) })));
      if (options.step) line.addEventListener('click', () => page.choose(options.step(row)));
      body.append(line);
    }
    mark();
    rest.textContent = body.children.length < shown.length ? `${shown.length - body.children.length} more` : '';
    rest.hidden = body.children.length >= shown.length;
  }
  function mark() {
    if (!options.step) return;
    for (const line of body.children) line.classList.toggle('chosen', page.chosen >= 0 && Number(line.dataset.step) === page.chosen);
  }
  const rest = el('button', { hidden: true, onclick: () => more(1000) });
  const head = el('tr', {}, columns.map((c, k) => {
    const cell = el('th', { class: c.right ? 'right' : null, tabindex: '0', scope: 'col', title: 'Sort by this', text: c.title,
      onclick: () => { order.down = order.column === k ? !order.down : c.right === true; order.column = k; fill(); },
      onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); cell.click(); } } });
    heads.push(cell);
    return cell;
  }));
  fill();
  return { node: el('div', {}, el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, head), body)), rest), fill, mark };
}

function stepsPart(root) {
  const choice = el('select', { 'aria-label': 'Rows' }, [['step', 'By node'], ['op', 'By operator'], ['shapes', 'By operator and shapes'], ['kernel', 'By kernel']].map(([value, text]) => el('option', { value, text })));
  const place = el('div');
  let table = null;
  const right = true, mono = true;
  function build() {
    const run = page.run, total = run.total;
    const common = [
      { title: 'time', right, value: (r) => r.time, text: (r) => seconds(r.time) },
      { title: 'share', right, value: (r) => r.time / total, text: (r) => percent(r.time, total) },
    ];
    const rates = [
      { title: 'FLOP', right, value: (r) => r.flops, text: (r) => (r.flops ? count(r.flops, '') : '–') },
      { title: 'FLOP/s', right, value: (r) => (r.flops > 0 ? r.flops / r.time : NaN), text: (r) => rate(r.flops, r.time, '') },
      { title: 'B/s', right, value: (r) => (r.bytes > 0 ? r.bytes / r.time : NaN), text: (r) => rate(r.bytes, r.time, '') },
      { title: 'of roofline', right, value: (r) => (r.least > 0 ? r.least / r.time : NaN), text: (r) => (r.least > 0 ? percent(r.least, r.time) : '–') },
    ];
    if (choice.value === 'step') {
      const counted = run.steps.some((s) => s.counters) ? [
        { title: 'instr/cycle', right, value: (s) => (s.counters && s.counters.cycles ? s.counters.instructions / s.counters.cycles : NaN), text: (s) => (s.counters && s.counters.cycles ? significant(s.counters.instructions / s.counters.cycles, 3) : '–') },
        { title: 'cache misses', right, value: (s) => (s.counters ? s.counters.cache_misses : NaN), text: (s) => (s.counters ? count(s.counters.cache_misses) : '–') }] : [];
      table = sortedTable([
        { title: '#', right, value: (s) => s.index }, { title: 'name', mono, value: (s) => s.name }, { title: 'kernel', value: (s) => s.candidate },
        ...common,
        { title: 'p10', right, value: (s) => s.seconds.p10, text: (s) => seconds(s.seconds.p10) }, { title: 'p90', right, value: (s) => s.seconds.p90, text: (s) => seconds(s.seconds.p90) },
        { title: 'last', right, value: (s) => s.last, text: (s) => seconds(s.last) },
        ...rates, ...counted, { title: 'shapes', mono, wide: true, value: (s) => run.shapesOf(s) },
      ], run.steps, { sort: 3, step: (s) => s.index, filter: (s) => !page.isFaded(s.index) });
    } else {
      const key = { op: (s) => s.op, shapes: (s) => s.op + '  ' + run.shapesOf(s), kernel: (s) => s.op + '  ' + s.candidate }[choice.value];
      table = sortedTable([{ title: choice.selectedOptions[0].text.slice(3), mono, wide: true, value: (g) => g.key }, { title: 'steps', right, value: (g) => g.steps.length }, ...common, ...rates],
        run.grouped(key), { sort: 2, step: (g) => g.steps[0], filter: (g) => g.steps.some((k) => !page.isFaded(k)) });
    }
    place.replaceChildren(table.node);
  }
  choice.addEventListener('change', build);
  root.append(el('div', { class: 'tools' }, choice, el('span', { text: 'Click a title to sort, a row for all that is known of the step.' })), place);
  build();
  return {
    update(what) {
      if (what === 'chosen') {
        table.mark();
        const line = place.querySelector('tr.chosen');
        if (line) line.scrollIntoView({ block: 'nearest' });
      } else build();
    },
  };
}

function comparePart(root) {
  const [a, b] = page.runs;
  const right = true, mono = true;
  const join = (keyOf) => {
    const rows = new Map();
    const put = (run, side) => {
      const seen = new Map();
      for (const step of run.steps) {
        let key = keyOf(step);
        let shown = key;
        if (keyOf === byValue) { const n = (seen.get(key) || 0) + 1; seen.set(key, n); shown = step.name + (n > 1 ? ' #' + n : ''); key += ' #' + n; }
        let row = rows.get(key);
        if (!row) rows.set(key, row = { key: shown, a: 0, b: 0, kernelA: '', kernelB: '', stepA: -1, stepB: -1 });
        row[side] += step.time;
        row['kernel' + side.toUpperCase()] = step.candidate;
        row['step' + side.toUpperCase()] = step.index;
      }
    };
    put(a, 'a');
    put(b, 'b');
    return [...rows.values()];
  };
  const byValue = (s) => s.value;
  const columns = (last) => [
    { title: '', mono, value: (r) => r.key }, { title: 'A', right, value: (r) => r.a, text: (r) => seconds(r.a) }, { title: 'B', right, value: (r) => r.b, text: (r) => seconds(r.b) },
    { title: 'change', right, value: (r) => Math.abs(r.b - r.a), text: (r) => (r.b > r.a ? '+' : '') + seconds(r.b - r.a) },
    { title: 'B / A', right, value: (r) => (r.a > 0 ? r.b / r.a : Infinity), text: (r) => (r.a === 0 ? 'new' : r.b === 0 ? 'gone' : significant(r.b / r.a, 4)) }, ...last];
  const card = (what, x, y, text) => el('div', { class: 'card ' + (y < x * 0.98 ? 'better' : y > x * 1.02 ? 'worse' : '') }, el('b', { text: text(x) + ' → ' + text(y) }), el('span', { text: what + (x > 0 ? ', ' + significant(y / x, 4) + ' times' : '') }));
  root.append(
    el('p', { class: 'note', text: `A is ${a.name} (${a.device || a.origin}), B is ${b.name} (${b.device || b.origin}).` }),
    el('div', { class: 'cards' }, card('all steps', a.total, b.total, seconds), card('a run, median', a.run_seconds.median, b.run_seconds.median, seconds),
      card('steps', a.steps.length, b.steps.length, String), card('arena', a.arena_bytes, b.arena_bytes, bytes), card('bytes moved', a.moved, b.moved, bytes)),
    el('h2', { text: 'By operator' }), sortedTable(columns([]), join((s) => s.op), { sort: 3 }).node,
    el('h2', { text: 'By node' }), sortedTable(columns([{ title: 'kernel', value: (r) => (r.kernelA === r.kernelB ? r.kernelA : (r.kernelA || '(none)') + ' → ' + (r.kernelB || '(none)')) }]), join(byValue),
      { sort: 3, step: (r) => (page.at === 0 ? r.stepA : r.stepB) }).node);
  return { update() {} };
}
