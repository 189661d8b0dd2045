// Tests over checkpoints: what a cell says, and which rows a filter leaves. No policy is known here.
"use strict";

slop.tests = (() => {
  const WORDS = { p: "passed", f: "failed", e: "error", s: "skipped" };
  const SYMBOLS = { p: "·", f: "×", e: "!", s: "–" };
  const CHANGES = { n: "born", b: "broke", r: "recovered" };

  const ENDS = { failed: "f", error: "e", skipped: "s" };

  /** What can be asked of a test, at one checkpoint or over all of them. */
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

  /** How a cell looks and reads: its symbol, its classes, its words. */
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
    if (change === "n") return `born, ${WORDS[status]}`;
    if (change === "b") return `broke: ${WORDS[status]}`;
    if (change === "u") return `${WORDS[status]}; there is nothing before to compare with`;
    return change === "r" ? "recovered" : still;
  }

  /** The columns that count: of checkpoints with a verdict, where the test was there. */
  function results(test, sheet) {
    const columns = [];
    for (let column = 0; column < sheet.checkpoints.length; column += 1) {
      if (test.statuses[column] !== "." && hasVerdict(sheet.checkpoints[column])) columns.push(column);
    }
    return columns;
  }

  function ofKind(test, sheet, kind, at) {
    if (!kind) return at < 0 || test.statuses[at] !== ".";
    if (kind === "broke" || kind === "recovered") {
      const sign = kind === "broke" ? "b" : "r";
      return at < 0 ? test.changes.includes(sign) : test.changes[at] === sign;
    }
    const columns = results(test, sheet);
    const column = at < 0 ? columns.at(-1) : at;
    if (!columns.includes(column)) return false;
    if (kind === "failing") return test.statuses[column] !== "p";
    if (kind in ENDS) return test.statuses[column] === ENDS[kind];
    const passed = columns.filter((column) => test.statuses[column] === "p").length;
    return kind === "never" ? passed === 0 : passed === columns.length;
  }

  /** A test moves from its own group to Regression: any of them counts, unless a checkpoint is given. */
  function inGroup(test, group, at) {
    if (group < 0) return true;
    return at < 0 ? test.groups.includes(String(group)) : test.groups[at] === String(group);
  }

  /** The numbers of the rows that are left. */
  function chosen(sheet, { group, kind, at, text }) {
    const sought = text.toLowerCase();
    const rows = [];
    sheet.tests.forEach((test, row) => {
      if (inGroup(test, group, at) && ofKind(test, sheet, kind, at) && test.name.toLowerCase().includes(sought)) {
        rows.push(row);
      }
    });
    return rows;
  }

  /** The file and the rest of a test's name. */
  function nameParts(name) {
    const cut = name.indexOf("::");
    return cut < 0 ? ["", name] : [name.slice(0, cut + 2), name.slice(cut + 2)];
  }

  return { WORDS, kinds, cell, chosen, hasVerdict, nameParts };
})();
