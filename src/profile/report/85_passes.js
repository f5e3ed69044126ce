function passesPart(root) {
  function build() {
    const run = page.run;
    root.replaceChildren();
    if (run.passes.length === 0) {
      root.append(el('p', { class: 'note', text: 'This profile says nothing about passes.' }));
      return;
    }
    const most = run.passes.reduce((m, p) => Math.max(m, p.nodes_before, p.nodes_after), 1);
    root.append(el('p', { class: 'note', text: `${run.passes[0].nodes_before} nodes went in, ${run.passes[run.passes.length - 1].nodes_after} came out, in ${seconds(run.passes.reduce((s, p) => s + p.milliseconds, 0) / 1e3)}. Open a pass for what it said about single values.` }));
    for (const pass of run.passes) {
      const bar = el('span', { class: 'bar' }), fill = el('i');
      fill.style.width = 100 * pass.nodes_after / most + '%';
      fill.style.background = css('--mark');
      bar.append(fill);
      const box = el('details', {}, el('summary', {}, el('span', { class: 'bars' }, el('span', { class: 'name' }, el('b', { text: pass.pass })), bar, el('span', { class: 'value', text: `${pass.nodes_before} → ${pass.nodes_after} nodes · ${significant(pass.milliseconds, 3)} ms` })), el('div', { class: 'note', text: pass.change })));
      box.addEventListener('toggle', () => {
        if (!box.open || box.dataset.filled) return;
        box.dataset.filled = '1';
        if (pass.remarks.length === 0) box.append(el('p', { class: 'note', text: 'It said nothing about single values.' }));
        else box.append(sortedTable([{ title: 'value', mono: true, value: (r) => r.who }, { title: 'what it said', wide: true, value: (r) => r.text }], pass.remarks, { sort: 0, down: false }).node);
      });
      root.append(box);
    }
  }
  build();
  return { update(what) { if (what === 'run') build(); } };
}
