// Timeline of tests: the filter, the heads of the columns, and the grid.
"use strict";

slop.timeline = (() => {
  const { h, plural, hashOf, go } = slop;

  const LEGEND = [
    ["passed new", "+", "new, passed"],
    ["failed new", "+×", "new, failed"],
    ["passed", "·", "still passes"],
    ["failed broke", "▼", "broke here"],
    ["failed", "×", "failed"],
    ["error", "!", "error"],
    ["skipped", "–", "skipped"],
    ["passed recovered", "▲", "recovered here"],
    ["none", "?", "no verdict"],
  ];
  const FILTER = ["group", "result", "at"];

  const legend = () => {
    const sign = (look, symbol) => h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol);
    return slop.legend("What the signs mean", LEGEND.map(([look, symbol, words]) => [sign(look, symbol), words]));
  };

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

  function columnHead(checkpoint, shortName, policy, state) {
    const { look, symbol, words } = slop.overview.verdict(checkpoint, policy);
    return h(
      "th",
      { scope: "col", class: state.at === checkpoint.name ? "chosen" : null, title: `${checkpoint.name}: ${words}` },
      h("span", { class: "name", "aria-hidden": "true" }, shortName),
      slop.spoken(checkpoint.name),
      h("span", { class: `mark ${look}` }, slop.sign(symbol), slop.spoken(words)),
      h(
        "span",
        { class: "changes" },
        change(checkpoint.introduced, "broke", "▼", checkpoint, state),
        change(checkpoint.repaired, "recovered", "▲", checkpoint, state),
      ),
    );
  }

  const button = (text, state) =>
    h("button", { type: "button", onclick: () => go({ ...slop.address(), ...state }) }, text);

  /** "Show all 69" */
  const showAll = (problem) =>
    button(`Show all ${problem.tests.length}`, { group: null, at: null, q: null, result: "any" });

  /** Without a match: the way to those that the filter hides. */
  function nothing(problem, filter, state) {
    if (!problem.tests.length) return h("p", { class: "nothing" }, "No tests have results.");
    if (![...FILTER, "q"].some((key) => state[key])) {
      const known = problem.checkpoints.every(slop.tests.hasVerdict) ? "" : " with a verdict";
      return h("p", { class: "nothing" }, `Every test passed at every checkpoint${known}. `, showAll(problem));
    }
    const passed = filter.kind ? 0 : slop.tests.chosen(problem, { ...filter, kind: "any" }).length;
    return h(
      "p",
      { class: "nothing" },
      "No tests match. ",
      slop.clearButton(FILTER, "Clear filters"),
      passed > 0 && [" ", button(`Show ${passed} that always passed`, { result: "any" })],
    );
  }

  function draw(problem, context, state) {
    const filter = filterOf(state, problem, context.groups);
    const rows = slop.tests.chosen(problem, filter);
    const names = slop.tests.shortNames(problem.checkpoints.map(({ name }) => name));
    const heads = problem.checkpoints.map((checkpoint, number) =>
      columnHead(checkpoint, names[number], context.policy, state),
    );
    const some = rows.length > 0 && rows.length < problem.tests.length;
    return [
      h("div", { class: "shown" }, slop.countShown(rows.length, problem.tests.length), some && showAll(problem)),
      rows.length
        ? slop.grid.draw({ problem, rows, heads, at: filter.at, group: filter.group, context }, state.test)
        : nothing(problem, filter, state),
    ];
  }

  /** Tests that the filter shows and that did not pass where they open, each with that column. */
  function failures(problem, context, state) {
    const filter = filterOf(state, problem, context.groups);
    return slop.tests
      .chosen(problem, filter)
      .map((row) => ({ test: problem.tests[row], column: slop.tests.opening(problem.tests[row], filter.at) }))
      .filter(({ test, column }) => slop.tests.failedAt(test, column));
  }

  return { draw, controls, setControls, legend, failures };
})();
