// Choosing: a box, a line, a parameter's path or a search, and what is lit then.

/** Adds `select`, `path`, `fold`, `pickLine`, `showItem`, `searchFor` and `unchoose` to a view. */
function choosable(view) {
  const { films } = view;

  Object.assign(view, {
    select(item, i = view.chosen?.pane ?? 0) {
      view.stop();
      const same = view.chosen?.pane === i && view.chosen.item === item;
      unchoose();
      if (item >= 0 && !same) {
        view.chosen = { pane: i, item };
        view.panes[i].selected = item;
        pickOps(i, view.panes[i].index.of(item).ops);
        view.say(sayBox(view.panes[i], { item, look: view.panes[i].scene.looks[item], about: view.panes[i].index.of(item) }));
      }
      view.draw();
    },
    selectOp(op) {
      const i = view.chosen?.pane ?? view.leader();
      showItem(i, view.panes[i].index.itemOfOp[op]);
    },
    selectNode(node) {
      const i = view.chosen?.pane ?? view.leader();
      showItem(i, view.panes[i].index.itemOfNode[node]);
    },
    path(node, i = view.chosen?.pane ?? view.leader()) {
      const nodes = pathTo(films[i], node);
      light(i, nodes.map((each) => view.panes[i].index.itemOfNode[each]));
      const name = films[i].nodes[node].parameter || "the leaf";
      view.note(nodes.length
        ? `The path by which a gradient reaches ${name}: ${nodes.length} ${nodes.length === 1 ? "node" : "nodes"} from the result.`
        : `No path leads from the result to ${name}: it gets no gradient.`);
      view.draw();
    },
    fold(item, i = view.chosen?.pane ?? 0) {
      const pane = view.panes[i];
      const wanted = new Set(pane.open);
      if (wanted.has(item)) wanted.delete(item);
      else wanted.add(item);
      pane.arrange(wanted, item);
      view.say(`${pane.scene.looks[item].title} ${wanted.has(item) ? "unfolded" : "folded"}`);
      view.draw();
    },
    unchoose, pickLine, showItem, searchFor,
  });

  function unchoose() {
    view.chosen = null;
    for (const pane of view.panes) pane.selected = -1;
    view.source.choose(new Set());
    light(-1, null);
    view.note("");
  }

  /** Lights items of one pane, or none. */
  function light(i, items) {
    view.panes.forEach((pane, each) => {
      pane.lit = items && each === i ? new Set(items.filter((item) => item >= 0)) : null;
      pane.relight();
      pane.draw();
    });
  }

  function pickOps(i, ops) {
    const keys_ = new Set();
    for (const op of ops.length > 400 ? [] : ops) {
      const { site } = films[i].ops[op];
      if (site) keys_.add(`${site.file}\n${site.line}`);
    }
    view.source.choose(keys_);
  }

  function pickLine(key) {
    view.stop();
    unchoose();
    if (key) {
      const [file, line] = key.split("\n");
      view.source.choose(new Set([key]));
      let count = 0;
      view.panes.forEach((pane, i) => {
        const ops = opsOfLine(films[i], file, Number(line));
        count += ops.length;
        pane.lit = new Set(ops.map((op) => pane.index.itemOfOp[op]).filter((item) => item >= 0));
        pane.relight();
        const [first] = pane.lit;
        if (first !== undefined) pane.reveal(first);
      });
      view.note(`Line ${line} called ${count} ${count === 1 ? "operation" : "operations"}.`);
    }
    view.draw();
  }

  /** Unfolds what hides an item, selects it and brings it in sight. */
  function showItem(i, item) {
    if (item < 0 || item === undefined) return;
    const pane = view.panes[i];
    const wanted = new Set(pane.open);
    for (let up = pane.scene.parents[item]; up > 0; up = pane.scene.parents[up]) wanted.add(up);
    if (wanted.size !== pane.open.size) pane.arrange(wanted, pane.set.stand[item]);
    unchoose();
    pane.focus = item;
    view.select(item, i);
    pane.reveal(item);
  }

  /** Lights what matches; says how much that is. */
  function searchFor(query) {
    unchoose();
    view.hits = [];
    view.hit = -1;
    view.panes.forEach((pane, i) => {
      const found = view.shows === "ops"
        ? findOps(films[i], query).map((op) => pane.index.itemOfOp[op])
        : findNodes(films[i], query).map((node) => pane.index.itemOfNode[node]);
      for (const item of new Set(found)) if (item >= 0) view.hits.push([i, item]);
      pane.lit = query.trim() ? new Set(found.filter((item) => item >= 0)) : null;
      pane.relight();
    });
    const says = query.trim() ? `${view.hits.length} found` : "";
    view.say(says);
    if (view.hits.length) view.panes[view.hits[0][0]].reveal(view.hits[0][1]);
    view.draw();
    return says;
  }
}
