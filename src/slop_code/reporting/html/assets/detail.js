// One test at one checkpoint: why.
"use strict";

slop.detail = (() => {
  const { h, inWords, hashOf } = slop;
  const dialog = slop.dialog("detail", ["test", "checkpoint"]);

  function history(test, sheet, column) {
    const here = (place) => hashOf({ ...slop.address(), checkpoint: sheet.checkpoints[place].name });
    return h(
      "ol",
      { class: "history" },
      sheet.checkpoints.map((checkpoint, place) => {
        const { symbol, look, words } = slop.tests.cell(test, place, checkpoint);
        const mark = h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol);
        const said = h("span", { class: "unseen" }, `: ${words}`);
        if (test.statuses[place] === ".") return h("li", { class: "dim" }, mark, checkpoint.name, said);
        return h(
          "li",
          null,
          h("a", { href: here(place), "aria-current": place === column ? "true" : null }, mark, checkpoint.name, said),
        );
      }),
    );
  }

  const facts = (pairs) =>
    h(
      "dl",
      { class: "facts" },
      pairs
        .filter(([, value]) => value)
        .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
    );

  function commands(test, checkpoint) {
    if (!checkpoint.place) return null;
    if (!test.word) return h("p", { class: "dim" }, "The name of this test is too long for a command here.");
    const one = (title, name) => ({ title, text: `slop-code ${name} ${checkpoint.place} ${test.word}` });
    const both = [one("Run this test again", "rerun"), one("Print all of it", "show")];
    return h("section", null, slop.message.commands("h3", both));
  }

  function why(told, part, reason) {
    const more = "The second command below prints all of it.";
    const sections = slop.message.sections(told, part, { level: "h3", more });
    return [
      reason && h("p", { class: "trouble" }, `There is no verdict for this checkpoint: ${reason}`),
      sections ?? (reason ? null : h("p", { class: "dim" }, "It passed: nothing was kept of what it did.")),
    ];
  }

  const SIGNS = { passed: "✓", failed: "×", error: "!", skipped: "–" };
  const TURNS = { n: "where it was born", b: "where it broke", r: "where it recovered" };

  /** "× failed at larder checkpoint_3, where it broke" */
  function outcome(test, sheet, column) {
    const status = slop.tests.WORDS[test.statuses[column]];
    const verdict = slop.tests.hasVerdict(sheet.checkpoints[column]);
    const badge = slop.badge(
      verdict
        ? { look: status, symbol: SIGNS[status], words: status }
        : { look: "none", symbol: "?", words: `no verdict (${status})` },
    );
    const turn = TURNS[test.changes[column]];
    return h("p", null, badge, ` at ${sheet.name} ${sheet.checkpoints[column].name}${turn ? `, ${turn}` : ""}`);
  }

  /** Which part of the page holds the texts is said by numbers: those of run, problem and checkpoint. */
  async function show(test, sheet, column, numbers, context) {
    const part = await slop.part([...numbers, column].join("/"));
    if (slop.address().test !== test.name) return; // the reader went elsewhere in the meantime
    const row = sheet.tests.indexOf(test);
    const place = part ? part.tests.findIndex(([number]) => number === row) : -1;
    if (place < 0) return;
    const [, milliseconds, markers] = part.tests[place];
    const checkpoint = sheet.checkpoints[column];
    const [file, id] = slop.tests.nameParts(test.name);
    dialog.show(
      [h("span", { class: "dim" }, file), id],
      outcome(test, sheet, column),
      facts([
        ["Group", context.groups[Number(test.groups[column])]],
        ["Duration", inWords(milliseconds)],
        ["Markers", part.markers[markers].join(", ")],
      ]),
      why(part.told[place], part, slop.tests.hasVerdict(checkpoint) ? null : checkpoint.reason),
      commands(test, checkpoint),
      h("section", null, h("h3", null, "History"), history(test, sheet, column)),
    );
  }

  return { show, hide: dialog.hide };
})();
