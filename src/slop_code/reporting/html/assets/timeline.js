// Timeline of tests: the filter, the heads of the columns, and the grid.
"use strict";

slop.timeline = (() => {
  const { h, plural, hashOf } = slop;

  const LEGEND = [
    ["passed born", "+", "new, passed"],
    ["failed born", "+×", "new, failed"],
    ["passed", "·", "still passes"],
    ["failed broke", "▼", "broke here"],
    ["failed", "×", "failed"],
    ["error", "!", "error"],
    ["skipped", "–", "skipped"],
    ["passed recovered", "▲", "recovered here"],
    ["none", "?", "no verdict"],
  ];

  const legend = () =>
    h(
      "ul",
      { class: "legend", "aria-label": "What the signs mean" },
      LEGEND.map(([look, symbol, words]) =>
        h("li", h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol), words),
      ),
    );

  /** The filter in the address. */
  function filterOf(state, problem, groups) {
    const at = problem.checkpoints.findIndex((checkpoint) => checkpoint.name === state.at);
    return { group: groups.indexOf(state.group), at, kind: state.result ?? "", text: state.q ?? "" };
  }

  const choices = (state, problem, groups) => {
    const names = problem.checkpoints.map(({ name }) => name);
    return [
      { text: "Group", key: "group", options: [["", "all groups"], ...groups] },
      { text: "Result", key: "result", options: slop.tests.kinds(names.includes(state.at)) },
      { text: "At", key: "at", options: [["", "any checkpoint"], ...names] },
    ];
  };

  const controls = (state, problem, groups) => slop.filterForm(choices(state, problem, groups), state);
  const setControls = (state, problem, groups) => slop.setFilter(choices(state, problem, groups), state);

  function change(count, kind, symbol, checkpoint, state) {
    if (!count) return null;
    const cleared = { test: null, checkpoint: null, group: null, q: null };
    const href = hashOf({ ...state, ...cleared, view: "timeline", result: kind, at: checkpoint.name });
    const label = `${plural(count, "test")} ${kind} at ${checkpoint.name}: show them`;
    return h("a", { class: `count ${kind}`, href, "aria-label": label }, symbol, count);
  }

  function columnHead(checkpoint, policy, state) {
    const { look, symbol, words } = slop.overview.verdict(checkpoint, policy);
    return h(
      "th",
      { scope: "col", class: state.at === checkpoint.name ? "chosen" : null },
      h("span", { class: "name" }, checkpoint.name),
      h("span", { class: `mark ${look}`, title: words }, slop.sign(symbol), slop.spoken(words)),
      h(
        "span",
        { class: "changes" },
        change(checkpoint.introduced, "broke", "▼", checkpoint, state),
        change(checkpoint.repaired, "recovered", "▲", checkpoint, state),
      ),
    );
  }

  function draw(problem, context, state) {
    const filter = filterOf(state, problem, context.groups);
    const rows = slop.tests.chosen(problem, filter);
    const heads = problem.checkpoints.map((checkpoint) => columnHead(checkpoint, context.policy, state));
    return [
      slop.countShown(rows.length, problem.tests.length),
      rows.length
        ? slop.grid.draw(problem, rows, heads, state.test)
        : h("p", { class: "nothing" }, "No test matches the filter."),
    ];
  }

  return { draw, controls, setControls, legend };
})();
