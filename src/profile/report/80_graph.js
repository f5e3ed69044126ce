// Steps and what flows between them, from top to bottom. Neighbours whose names begin alike (up to a dot or slash) are
// boxes that open and close, and so are neighbours where there are very many: a box holds steps that run one after the
// other, so that arrows lead down.
function graphPart(root) {
  const svgNode = (tag, attrs, ...children) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attrs)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const wanted = 48, bucket = 24;
  let tree = null;
  const open = new Set();

  function build() {
    tree = grouped('', '', page.run.steps.map((s) => s.index), 0);
    open.clear();
    open.add('');
    // Opens what is largest until there is enough to see.
    for (;;) {
      const items = visible();
      const next = items.filter((i) => i.children.length > 0).sort((a, b) => b.steps.length - a.steps.length)[0];
      if (!next || items.length + next.children.length > wanted) break;
      open.add(next.key);
    }
  }
  const partsOf = (k) => page.run.steps[k].value.split(/[./]/).filter(Boolean);
  function grouped(key, name, steps, depth) {
    const node = { key, name, steps, children: [] };
    for (let from = 0; from < steps.length;) {
      const parts = partsOf(steps[from]);
      let to = from + 1;
      if (parts.length > depth + 1) while (to < steps.length && partsOf(steps[to]).length > depth + 1 && partsOf(steps[to])[depth] === parts[depth]) ++to;
      if (to - from > 1) node.children.push(grouped(key + '/' + from, parts.slice(0, depth + 1).join('.'), steps.slice(from, to), depth + 1));
      else node.children.push({ key: key + '/' + from, name: page.run.steps[steps[from]].name, steps: [steps[from]], children: [] });
      from = to;
    }
    if (node.children.length === 1 && node.children[0].children.length > 0) node.children = node.children[0].children;
    while (node.children.length > wanted) {
      const size = Math.max(2, Math.min(bucket, Math.ceil(Math.sqrt(node.children.length)))), some = [];
      for (let k = 0; k < node.children.length; k += size) {
        const children = node.children.slice(k, k + size), all = children.flatMap((c) => c.steps);
        some.push(children.length === 1 ? children[0] : { key: key + '~' + node.children.length + '/' + k, name: `steps ${all[0]} to ${all[all.length - 1]}`, steps: all, children });
      }
      node.children = some;
    }
    return node;
  }
  function visible() {
    const list = [];
    const walk = (node) => {
      if (node.children.length === 0 || !open.has(node.key)) { list.push(node); return; }
      for (const child of node.children) walk(child);
    };
    walk(tree);
    return list.sort((a, b) => a.steps[0] - b.steps[0]);
  }

  const place = el('div', { class: 'scroll' });
  place.style.maxHeight = '75vh';
  place.style.overflow = 'auto';
  const note = el('span');
  function draw() {
    const run = page.run, items = visible();
    const owner = new Map();
    items.forEach((item, k) => item.steps.forEach((step) => owner.set(step, k)));
    const edges = new Set();
    for (const step of run.steps) {
      for (const from of step.after) {
        const a = owner.get(from), b = owner.get(step.index);
        if (a !== undefined && b !== undefined && a !== b) edges.add(a + ',' + b);
      }
    }
    const pairs = [...edges].map((e) => e.split(',').map(Number));
    const layer = new Array(items.length).fill(0);
    for (const [a, b] of [...pairs].sort((x, y) => x[0] - y[0])) if (a < b) layer[b] = Math.max(layer[b], layer[a] + 1);
    // Once more in order, as the longest way counts.
    const into = new Map();
    for (const [a, b] of pairs) if (a < b) into.set(b, [...(into.get(b) || []), a]);
    for (let k = 0; k < items.length; ++k) layer[k] = (into.get(k) || []).reduce((most, a) => Math.max(most, layer[a] + 1), 0);
    const rows = [];
    layer.forEach((l, k) => (rows[l] = rows[l] || []).push(k));
    const wide = 204, tall = 46, gapX = 18, gapY = 34;
    const columns = rows.reduce((most, row) => Math.max(most, row.length), 1);
    const width = Math.max(columns * (wide + gapX) + gapX, 260), height = rows.length * (tall + gapY) + gapY;
    const centre = [];
    rows.forEach((row, l) => row.forEach((k, n) => { centre[k] = { x: width / 2 + (n - (row.length - 1) / 2) * (wide + gapX), y: gapY + l * (tall + gapY) }; }));
    const longest = items.reduce((most, item) => Math.max(most, item.steps.reduce((s, k) => s + run.steps[k].time, 0)), 0);
    const svg = svgNode('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Graph of the steps' });
    for (const [a, b] of pairs) {
      const p = centre[a], q = centre[b], y0 = p.y + tall, y1 = q.y, bend = Math.max(20, Math.abs(y1 - y0) / 3);
      svg.append(svgNode('path', { d: `M${p.x} ${y0} C${p.x} ${y0 + bend} ${q.x} ${y1 - bend} ${q.x} ${y1}`, fill: 'none', stroke: css('--line'), 'stroke-width': 1.3 }));
    }
    items.forEach((item, k) => {
      const time = item.steps.reduce((s, n) => s + run.steps[n].time, 0), isGroup = item.children.length > 0;
      const isChosen = item.steps.includes(page.chosen), isFaded = page.matches !== null && !item.steps.some((n) => page.matches.has(n));
      const box = svgNode('g', { transform: `translate(${centre[k].x - wide / 2} ${centre[k].y})`, tabindex: 0, role: 'button', opacity: isFaded ? 0.25 : 1, 'data-steps': item.steps.length });
      box.style.cursor = 'pointer';
      const hot = longest > 0 ? time / longest : 0;
      box.append(svgNode('rect', { width: wide, height: tall, rx: isGroup ? 10 : 5, fill: css('--panel'), stroke: isChosen ? css('--ink') : colourOf(run.steps[item.steps[0]].op), 'stroke-width': isChosen ? 2.5 : isGroup ? 2 : 1.2 }));
      box.append(svgNode('rect', { y: tall - 5, width: Math.max(wide * hot, 1), height: 4, rx: 2, fill: css('--hot'), opacity: 0.75 }));
      const text = (y, words, attrs) => { const t = svgNode('text', { x: 8, y, 'font-size': 12, fill: css('--ink'), ...attrs }); t.textContent = words.length > 27 ? words.slice(0, 26) + '…' : words; box.append(t); };
      text(17, (isGroup ? '▸ ' : '') + (item.name || 'all'), { 'font-weight': 600 });
      text(33, isGroup ? `${item.steps.length} steps · ${seconds(time)} · ${percent(time, run.total)}` : `${seconds(time)} · ${run.steps[item.steps[0]].op}`, { fill: css('--soft'), 'font-size': 11.5 });
      const act = () => { if (isGroup) { open.add(item.key); draw(); } else page.choose(item.steps[0]); };
      box.addEventListener('click', act);
      box.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); act(); } });
      box.append(svgNode('title', {}, document.createTextNode(item.name)));
      svg.append(box);
    });
    place.replaceChildren(svg);
    place.scrollLeft = (width - place.clientWidth) / 2;
    note.textContent = `${items.length} boxes of ${run.steps.length} steps. Click a box with ▸ to open it.`;
  }
  function closeAll() { open.clear(); open.add(''); draw(); }
  function openAll() { const walk = (node) => { open.add(node.key); for (const child of node.children) walk(child); }; walk(tree); draw(); }
  root.append(el('div', { class: 'tools' }, el('button', { text: 'Close all', onclick: closeAll }), el('button', { text: 'Open all', onclick: openAll }), el('button', { text: 'As at first', onclick: () => { build(); draw(); } }), note), place);
  build();
  draw();
  return { update(what) { if (what === 'run') build(); draw(); } };
}
