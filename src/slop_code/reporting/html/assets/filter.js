// Tests over checkpoints: the look of a cell, and the rows that a filter keeps. Policies are not used here.
"use strict";

slop.tests = (() => {
  const WORDS = { p: "passed", f: "failed", e: "error", s: "skipped" };
  const SYMBOLS = { p: "·", f: "×", e: "!", s: "–" };
  const CHANGES = { n: "new", b: "broke", r: "recovered" };

  const ENDS = { failed: "f", error: "e", skipped: "s" };

  /** Options of the filter by result, at a checkpoint or over all of them. */
  const kinds = (there) => {
    const when = there ? "there" : "at the end";
    return [
      ["", there ? "ran there" : "any result"],
      ["failing", `did not pass ${when}`],
      ["failed", `failed ${when}`],
      ["error", `had an error ${when}`],
      ["skipped", `was skipped ${when}`],
      ["broke", there ? "broke there" : "ever broke"],
      ["recovered", there ? "recovered there" : "ever recovered"],
      ["never", there ? "ran there, never passed" : "never passed"],
      ["always", there ? "ran there, always passed" : "always passed"],
    ];
  };

  const hasVerdict = (checkpoint) => checkpoint.state === "evaluated";

  /** Symbol, CSS classes and text of a cell. */
  function cell(test, column, checkpoint) {
    const status = test.statuses[column];
    const none = !hasVerdict(checkpoint);
    if (none && column >= test.home) return { symbol: "?", look: "none", words: "no verdict" };
    if (none || status === ".") return { symbol: "", look: "absent", words: "not there" };
    const change = test.changes[column];
    return {
      symbol: symbol(status, change),
      look: `${WORDS[status]} ${CHANGES[change] ?? ""}`,
      words: words(status, change),
    };
  }

  function symbol(status, change) {
    if (change === "r") return "▲";
    if (change === "b") return status === "f" ? "▼" : `▼${SYMBOLS[status]}`;
    if (change === "n") return status === "p" ? "+" : `+${SYMBOLS[status]}`;
    return SYMBOLS[status];
  }

  function words(status, change) {
    const still = status === "p" ? "still passed" : `still not passed: ${WORDS[status]}`;
    if (change === "n") return `new, ${WORDS[status]}`;
    if (change === "b") return `broke: ${WORDS[status]}`;
    if (change === "u") return `${WORDS[status]}; there is nothing before to compare with`;
    return change === "r" ? "recovered" : still;
  }

  /** Columns of checkpoints that have a verdict and this test. */
  function results(test, problem) {
    const columns = [];
    for (let column = 0; column < problem.checkpoints.length; column += 1) {
      if (test.statuses[column] !== "." && hasVerdict(problem.checkpoints[column])) columns.push(column);
    }
    return columns;
  }

  function matchesKind(test, problem, kind, at) {
    if (!kind) return at < 0 || test.statuses[at] !== ".";
    if (kind === "broke" || kind === "recovered") {
      const sign = kind === "broke" ? "b" : "r";
      return at < 0 ? test.changes.includes(sign) : test.changes[at] === sign;
    }
    const columns = results(test, problem);
    const column = at < 0 ? columns.at(-1) : at;
    if (!columns.includes(column)) return false;
    if (kind === "failing") return test.statuses[column] !== "p";
    if (kind in ENDS) return test.statuses[column] === ENDS[kind];
    const passed = columns.filter((column) => test.statuses[column] === "p").length;
    return kind === "never" ? passed === 0 : passed === columns.length;
  }

  /** A test moves from its own group to Regression: without a checkpoint, any of its groups matches. */
  function inGroup(test, group, at) {
    if (group < 0) return true;
    return at < 0 ? test.groups.includes(String(group)) : test.groups[at] === String(group);
  }

  /** Numbers of the rows that match the filter. */
  function chosen(problem, { group, kind, at, text }) {
    const query = text.toLowerCase();
    const rows = [];
    problem.tests.forEach((test, row) => {
      if (inGroup(test, group, at) && matchesKind(test, problem, kind, at) && test.name.toLowerCase().includes(query)) {
        rows.push(row);
      }
    });
    return rows;
  }

  /** The file in the name of a test, and the rest of it. */
  function nameParts(name) {
    const cut = name.indexOf("::");
    return cut < 0 ? ["", name] : [name.slice(0, cut + 2), name.slice(cut + 2)];
  }

  return { WORDS, kinds, cell, chosen, hasVerdict, nameParts };
})();
