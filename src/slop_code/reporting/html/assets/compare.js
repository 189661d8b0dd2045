// Comparison of runs: its verdict, the checkpoints, and the tests that differ.
"use strict";

slop.start(async (data, main, top) => {
  const { h, fill, hashOf, go, address } = slop;
  let shown = null; // the address when the view was drawn

  const policyOf = (state) => Math.max(0, data.policies.indexOf(state.policy));
  const pairOf = (state) => (data.pairs[Number(state.pair)] ? Number(state.pair) : 0);

  /** The pair in the address, with its verdicts by the policy there. */
  function pairBy(state) {
    const { by_policy: byPolicy, ...pair } = data.pairs[pairOf(state)];
    const { checkpoints, ...verdicts } = byPolicy[policyOf(state)];
    const judged = pair.checkpoints.map((checkpoint, number) => ({ ...checkpoint, ...checkpoints[number] }));
    return { ...pair, ...verdicts, checkpoints: judged };
  }

  function header() {
    const choose = (event) =>
      go({ policy: address().policy, pair: event.target.value === "0" ? null : event.target.value });
    const pairs = data.pairs.map((pair, number) => [number, `${pair.base} → ${pair.other}`]);
    const pair = slop.select(pairs, pairOf(address()), { id: "pair", onchange: choose });
    slop.frame({
      main,
      top,
      data,
      settings: [data.pairs.length > 1 && slop.field("Pair", pair), slop.policyField(data)],
      searchField: () => document.getElementById("filter-text"),
    });
  }

  /** Notes below the verdict. */
  function notes(pair) {
    const only = [pair.base, pair.other].map((side, number) =>
      pair.only[number].length ? `Not compared, only in ${side}: ${pair.only[number].join(", ")}` : null,
    );
    const judge = pair.judge.length
      ? `Rejudged: the same submissions, but these differ: ${pair.judge.join("; ")}`
      : null;
    const lines = [...data.warnings, ...only, judge].filter(Boolean);
    const list = (texts) => h("ul", { class: "notes" }, texts.map((text) => h("li", text)));
    return [list(pair.significance), lines.length > 0 && list(lines), unknown(pair)];
  }

  function unknown(pair) {
    if (!pair.unknown.length) return null;
    const count = pair.unknown.length + pair.unknown_more;
    const more = pair.unknown_more ? `... and ${pair.unknown_more} more` : null;
    const summary = `${count} without a verdict: set apart, neither gained nor lost`;
    return slop.foldedList(summary, pair.unknown, { more });
  }

  function verdict([passed, runs]) {
    if (runs > 1) return h("span", `${passed}/${runs} passed`);
    return slop.badge(slop.verdictLook(runs ? passed > 0 : null));
  }

  function count(number, kind, checkpoint, state) {
    const { problem, name } = checkpoint;
    const { symbol, words } = slop.differing.LOOKS[kind];
    const href = hashOf({ pair: state.pair, policy: state.policy, change: kind, problem, at: name });
    const look = { lost: "broke", gained: "recovered" }[kind];
    return slop.countCell(number, { look, symbol, href, words: ` ${words} at ${problem} ${name}: show them` });
  }

  function row(checkpoint, kinds, tested, state) {
    const { p } = checkpoint;
    const apart = !checkpoint.base[1] || !checkpoint.other[1];
    const unchanged = h("span", { class: "dim" }, apart ? "set apart" : "same");
    return h(
      "tr",
      { class: apart ? "apart" : null },
      h("th", { scope: "row" }, checkpoint.name),
      h("td", verdict(checkpoint.base)),
      h("td", verdict(checkpoint.other)),
      h("td", checkpoint.change ? slop.badge(slop.differing.LOOKS[checkpoint.change]) : unchanged),
      kinds.map((kind) => count(checkpoint.counts[data.changes.indexOf(kind)], kind, checkpoint, state)),
      tested && h("td", { class: "number", title: p && `uncorrected ${p[0]}` }, p?.[1] ?? "–"),
    );
  }

  function checkpoints(pair, state) {
    const kinds = data.changes.filter((kind, number) => ["lost", "gained"].includes(kind) || pair.counts[number]);
    const tested = pair.checkpoints.some(({ p }) => p);
    const heads = ["Checkpoint", pair.base, pair.other, "Change"];
    const figures = kinds.map((kind) => `${kind[0].toUpperCase()}${kind.slice(1)}`);
    if (tested) figures.push("p (Holm)");
    const problems = [...new Set(pair.checkpoints.map(({ problem }) => problem))];
    const body = (problem) => {
      const head = h("th", { scope: "rowgroup", colspan: heads.length + figures.length }, problem);
      const own = pair.checkpoints.filter((checkpoint) => checkpoint.problem === problem);
      const rows = own.map((checkpoint) => row(checkpoint, kinds, tested, state));
      return h("tbody", h("tr", { class: "problem" }, head), rows);
    };
    const table = h("table", { class: "results stacked" }, slop.tableHead(heads, figures), problems.map(body));
    return slop.scrollBox("Checkpoints of both sides", slop.stackable(table, [...heads, ...figures]));
  }

  function drawView(state) {
    const pair = pairBy(state);
    const look = pair.lost ? "failed" : pair.counts[data.changes.indexOf("gained")] ? "passed" : "none";
    slop.title(`${pair.base} → ${pair.other}`);
    fill(
      main,
      h(
        "section",
        h("h2", { tabindex: -1 }, `${pair.base} → ${pair.other}`),
        h("div", { class: `headline ${look}` }, h("p", pair.verdict)),
        notes(pair),
      ),
      h("section", h("h2", "Checkpoints"), checkpoints(pair, state)),
      h(
        "section",
        h("h2", { id: "differing", tabindex: -1 }, "Tests that differ"),
        slop.differing.legend(data, pair),
        slop.filterForm(slop.differing.choices(data, pair), state),
        h("div", { id: "tests" }),
      ),
    );
    drawTests(state);
  }

  function drawTests(state) {
    const pair = data.pairs[pairOf(state)];
    slop.setFilter(slop.differing.choices(data, pair), state);
    fill(document.getElementById("tests"), slop.differing.list(data, pair, state));
  }

  const filter = ({ change, problem, at, q }) => JSON.stringify([change, problem, at, q]);

  const sameView = (state) => pairOf(shown) === pairOf(state) && policyOf(shown) === policyOf(state);

  /** Draws only what changed: opening a test keeps the position in the list. */
  function redraw(state) {
    document.getElementById("policy").value = data.policies[policyOf(state)];
    if (!shown || !sameView(state)) drawView(state);
    else if (filter(shown) !== filter(state)) drawTests(state);
  }

  function draw(state) {
    const heading = () =>
      sameView(state) ? document.getElementById("differing") : main.querySelector("h2");
    if (shown) slop.keepFocus(() => redraw(state), heading);
    else redraw(state);
    const followed = shown && filter(shown) !== filter(state) && document.activeElement?.closest("#main table");
    shown = state;
    if (followed) document.getElementById("differing").focus(); // a link from a count to its tests
    slop.differing.open(data, pairOf(state), state);
  }

  header();
  slop.onAddress(draw);
  draw(address());
});
