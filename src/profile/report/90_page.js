function barRows(rows, total) {
  const longest = rows.reduce((m, r) => Math.max(m, r.time), 0) || 1;
  return el('div', { class: 'bars' }, rows.flatMap((r) => {
    const fill = el('i');
    fill.style.width = 100 * r.time / longest + '%';
    fill.style.background = colourOf(r.op);
    return [el('span', { class: 'name', title: r.key, text: r.key }), el('span', { class: 'bar' }, fill),
      el('span', { class: 'value', text: `${seconds(r.time)} · ${percent(r.time, total)}` + (r.flops > 0 ? ` · ${rate(r.flops, r.time, 'FLOP/s')}` : '') })];
  }));
}

function summaryPart(root) {
  function build() {
    const run = page.run;
    const card = (value, what) => el('div', { class: 'card' }, el('b', { text: value }), el('span', { text: what }));
    const cards = [];
    if (run.runs > 1) cards.push(card(seconds(run.run_seconds.median), `a run, median of ${run.runs} (p10 ${seconds(run.run_seconds.p10)}, p90 ${seconds(run.run_seconds.p90)})`));
    cards.push(card(seconds(run.total), run.lanes.some((l) => l.is_device) ? 'on the device, all steps' : 'all steps'));
    if (run.first_run_seconds > 0) cards.push(card(seconds(run.first_run_seconds), 'the first run'));
    cards.push(card(String(run.steps.length), 'steps'), card(count(run.flops, 'FLOP'), `arithmetic, ${rate(run.flops, run.total, 'FLOP/s')}`), card(bytes(run.moved), `moved, ${rate(run.moved, run.total, 'B/s')}`));
    if (run.least > 0) cards.push(card(percent(run.least, run.total), 'of the roofline'));
    if (run.arena_bytes) cards.push(card(bytes(run.arena_bytes), `arena; ${bytes(run.live.bytes[run.live.peak] || 0)} alive at the peak`));
    if (run.constant_bytes) cards.push(card(bytes(run.constant_bytes), 'constants'));
    if (run.scratch_bytes) cards.push(card(bytes(run.scratch_bytes), 'scratch of all threads'));
    const facts = [['network', run.name], ['ran on', run.device], ['compiled for', run.target], ['threads', String(run.thread_count)], ['warm-up runs', String(run.warm_up_runs)],
      ['total device time', run.deviceTotal > 0 ? `${Number(run.deviceTotal.toPrecision(6))} s, of the last run` : ''],
      ...run.symbols.map((s) => ['symbol ' + s.name, String(s.value)])].filter(([, v]) => v);
    const hotspots = [...run.steps].sort((a, b) => b.time - a.time).slice(0, 10).map((s) => ({ key: s.name, op: s.op, time: s.time, flops: s.flops }));
    root.replaceChildren(el('div', { class: 'cards' }, cards), el('dl', {}, facts.flatMap(([k, v]) => [el('dt', { text: k }), el('dd', { text: v })])),
      ...run.notes.map((note) => el('p', { class: 'note', text: note })),
      el('h2', { text: 'By operator' }), barRows(run.grouped((s) => s.op).slice(0, 14), run.total),
      el('h2', { text: 'The longest steps' }), barRows(hotspots, run.total));
  }
  build();
  return { update(what) { if (what === 'run' || what === 'theme') build(); } };
}

function showDetail() {
  const panel = byId('detail'), run = page.run, step = run.steps[page.chosen];
  if (!step) { panel.replaceChildren(); return; }
  const rows = [];
  const row = (name, value, mono) => { if (value !== '' && value !== null && value !== undefined) rows.push(el('dt', { text: name }), el('dd', { class: mono ? 'mono' : null, text: value })); };
  row('step', `${step.index} of ${run.steps.length}, ${step.kind}`);
  row('operator', step.op);
  row('source', step.source, true);
  row('makes', step.value, true);
  row('kernel', step.kernel, true);
  row('chosen', step.candidate);
  row('last run', `${seconds(step.last)}, ${percent(step.last, run.lastTotal)}`);
  if (run.runs > 1) row('median', `${seconds(step.seconds.median)} (p10 ${seconds(step.seconds.p10)}, p90 ${seconds(step.seconds.p90)})`);
  row('arithmetic', step.flops ? `${count(step.flops, 'FLOP')}, ${rate(step.flops, step.time, 'FLOP/s')}` : '');
  row('moved', step.bytes ? `${bytes(step.bytes)}, ${rate(step.bytes, step.time, 'B/s')}` : '');
  row('of roofline', step.share > 0 ? `${percent(step.share, 1)} (at least ${seconds(step.least)})` : '');
  row('MegEngine counts', step.computation !== null || step.memory !== null ? `${step.computation === null ? 'no computation' : count(step.computation, 'FLO')}, ${step.memory === null ? '–' : bytes(step.memory)}` : '');
  if (step.counters) row('counted', `${count(step.counters.cycles)} cycles, ${count(step.counters.instructions)} instructions, ${count(step.counters.cache_misses)} cache misses`);
  const spansOf = (spans) => spans.slice(0, 8).map((s) => `${run.lanes[s[0]].name}: ${seconds(s[1])} + ${seconds(s[3] - s[1])}`).join('; ') + (spans.length > 8 ? '; …' : '');
  row('device', spansOf(step.device));
  row('host', spansOf(step.host));
  const buffers = (title, ids) => (ids.length === 0 ? null : [el('h3', { text: title }), el('ul', {}, ids.map((id) => { const b = run.buffers[id]; return el('li', { class: 'mono', text: `${b.name}: ${typeText(b)}, ${bytes(b.bytes)}, ${b.place}` + (b.place === 'arena' ? ` at ${b.offset}` : '') }); }))]);
  const remarks = (title, list) => (list.length === 0 ? null : [el('h3', { text: title }), el('dl', {}, list.slice(0, 60).flatMap((r) => [el('dt', { text: r.who }), el('dd', { text: r.text })]))]);
  const links = (title, ids) => (ids.length === 0 ? null : [el('h3', { text: title }), el('div', { class: 'tools' }, ids.slice(0, 12).map((id) => el('button', { text: run.steps[id].name, onclick: () => page.choose(id) })))]);
  const readers = run.steps.filter((s) => s.after.includes(step.index)).map((s) => s.index);
  panel.replaceChildren(...[
    el('button', { class: 'close', title: 'Close (Esc)', text: '×', onclick: () => page.choose(-1) }),
    el('h2', { text: step.name }), el('dl', {}, rows),
    step.members.length ? [el('h3', { text: 'Made of' }), el('p', { class: 'mono', text: step.members.join(', ') })] : null,
    remarks('Why this kernel', step.why), buffers('Reads', step.reads), buffers('Writes', step.writes),
    links('Comes behind', step.after), links('Read by', readers), remarks('What passes said', step.remarks)].flat().filter(Boolean));
  panel.scrollTop = 0;
}

function start() {
  page.runs = JSON.parse(byId('data').textContent).map((profile) => new Run(profile));
  byId('title').textContent = page.runs.map((run) => run.name || 'a network').join('  ⇄  ');
  const parts = [['summary', 'Summary', summaryPart], ['timeline', 'Timeline', timelinePart], ['memory', 'Memory', memoryPart], ['roofline', 'Roofline', rooflinePart],
    ['steps', 'Steps', stepsPart], ['graph', 'Graph', graphPart], ['passes', 'Passes', passesPart]];
  if (page.runs.length > 1) parts.splice(1, 0, ['compare', 'A and B', comparePart]);
  const made = new Map();
  const tabs = byId('tabs'), main = byId('main');
  function open(name) {
    page.part = name;
    for (const tab of tabs.children) tab.setAttribute('aria-selected', String(tab.dataset.part === name));
    for (const [key, part] of made) part.root.hidden = key !== name;
    if (!made.has(name)) {
      const root = el('section', { id: 'part-' + name });
      main.append(root);
      made.set(name, { root, ...parts.find((p) => p[0] === name)[2](root) });
    } else {
      made.get(name).update('shown');
    }
    hideTip();
  }
  for (const [name, title] of parts) tabs.append(el('button', { role: 'tab', 'data-part': name, text: title, onclick: () => open(name) }));
  page.listeners.push((what) => {
    if (what === 'chosen' || what === 'run') showDetail();
    if (what === 'search') byId('found').textContent = page.matches === null ? '' : `${page.matches.size} found`;
    const part = made.get(page.part);
    if (part) part.update(what);
    // Others are told when they are looked at again.
    if (what === 'run' || what === 'theme' || what === 'search') for (const [key, other] of made) if (key !== page.part) other.update(what);
  });
  byId('search').addEventListener('input', (event) => page.search(event.target.value));
  byId('search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && page.matches && page.matches.size) next(1);
    if (event.key === 'Escape') { event.target.value = ''; page.search(''); event.target.blur(); }
  });
  function next(direction) {
    const list = page.matches === null ? page.run.steps.map((s) => s.index) : [...page.matches].sort((a, b) => a - b);
    if (list.length === 0) return;
    const at = list.indexOf(page.chosen);
    page.choose(list[(at + direction + list.length) % list.length]);
  }
  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  const setTheme = (theme) => { document.documentElement.dataset.theme = theme; forgetColours(); page.changed('theme'); };
  setTheme(prefersDark.matches ? 'dark' : 'light');
  prefersDark.addEventListener('change', (event) => setTheme(event.matches ? 'dark' : 'light'));
  byId('theme').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
  const switcher = byId('run-switch');
  if (page.runs.length > 1) {
    switcher.hidden = false;
    const label = () => { switcher.textContent = page.at === 0 ? 'Shows A' : 'Shows B'; };
    label();
    switcher.addEventListener('click', () => { page.at = 1 - page.at; page.chosen = -1; label(); page.search(page.query); page.changed('run'); });
  }
  document.addEventListener('keydown', (event) => {
    if (event.target.tagName === 'INPUT' || event.target.tagName === 'SELECT' || event.ctrlKey || event.metaKey || event.altKey) return;
    const chart = made.get(page.part) && made.get(page.part).chart;
    const act = {
      '/': () => byId('search').focus(), Escape: () => page.choose(-1), n: () => next(1), p: () => next(-1), t: () => byId('theme').click(),
      '+': () => chart && chart.zoom(0.6), '=': () => chart && chart.zoom(0.6), '-': () => chart && chart.zoom(1.6), '0': () => chart && chart.reset && chart.reset(),
      ArrowLeft: () => chart && chart.move(-0.15), ArrowRight: () => chart && chart.move(0.15),
    }[event.key] || (event.key >= '1' && event.key <= String(parts.length) ? () => open(parts[Number(event.key) - 1][0]) : null);
    if (act) { act(); event.preventDefault(); }
  });
  open('summary');
  // For tests, and for whoever wants to ask the page something.
  window.tenon = { page, open, parts: made };
}

start();
