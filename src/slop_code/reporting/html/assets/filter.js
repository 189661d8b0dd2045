// Tests over checkpoints: the look of a cell, the rows that a filter keeps, and the checkpoint at which a test opens.
// Policies are not used here.
"use strict";

slop.tests = (() => {
  const WORDS = { p: "passed", f: "failed", e: "error", s: "skipped" };
  const SYMBOLS = { p: "·", f: "×", e: "!", s: "–" };
  const CHANGES = { n: "new", b: "broke", r: "recovered" };

  const ENDS = { failed: "f", error: "e", skipped: "s" };

  /** Options of the filter by result, at a checkpoint or over all of them. The first is the default. */
  const kinds = (there) => {
    const when = there ? "there" : "at the end";
    return [
      ["", there ? "ran there, not always passed" : "not always passed"],
      ["any", there ? "ran there" : "any result"],
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

  /** Why the whole checkpoint failed or has no verdict; null where neither is so. */
  const causeOf = (checkpoint) => checkpoint.cause ?? (hasVerdict(checkpoint) ? null : checkpoint.reason);

  /** The numbers at the ends of names of checkpoints where they tell them apart, else numbers from 1 on. */
  function shortNames(names) {
    const ends = names.map((name) => name.match(/\d{1,4}$/)?.[0]);
    const distinct = !ends.includes(undefined) && new Set(ends).size === ends.length;
    return distinct ? ends : ends.map((_, number) => String(number + 1));
  }

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
    if (at >= 0 && test.statuses[at] === ".") return false;
    if (kind === "any") return true;
    if (kind === "broke" || kind === "recovered") {
      const sign = kind === "broke" ? "b" : "r";
      return at < 0 ? test.changes.includes(sign) : test.changes[at] === sign;
    }
    const columns = results(test, problem);
    if (!kind) return !columns.length || columns.some((column) => test.statuses[column] !== "p");
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

  /** Numbers of the rows that match the filter, file by file. */
  function chosen(problem, { group, kind, at, text }) {
    const query = text.toLowerCase();
    const files = new Map();
    problem.tests.forEach((test, row) => {
      const [file] = slop.nameParts(test.name);
      if (!files.has(file)) files.set(file, []);
      if (inGroup(test, group, at) && matchesKind(test, problem, kind, at) && test.name.toLowerCase().includes(query)) {
        files.get(file).push(row);
      }
    });
    return [...files.values()].flat();
  }

  const ran = (test, column) => test.statuses[column] !== "." && test.statuses[column] !== undefined;
  const failedAt = (test, column) => ran(test, column) && test.statuses[column] !== "p";

  /** Column at which a test opens: that of the filter, else the first at which it did not pass, else its last. */
  function opening(test, at) {
    if (ran(test, at)) return at;
    const columns = [...test.statuses].map((_, column) => column).filter((column) => ran(test, column));
    return columns.find((column) => failedAt(test, column)) ?? columns.at(-1);
  }

  /** Column at which a test broke that still does not pass at this one; -1 if it never passed before. */
  function brokeAt(test, column) {
    for (let before = column; before >= 0 && test.statuses[before] !== "p"; before -= 1) {
      if (test.changes[before] === "b") return before;
    }
    return -1;
  }

  return { WORDS, kinds, cell, chosen, opening, failedAt, brokeAt, hasVerdict, causeOf, shortNames };
})();
