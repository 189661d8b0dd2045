// One test at one checkpoint: why.
"use strict";

slop.detail = (() => {
  const { h, fill, inWords, hashOf, go } = slop;
  const LEFT_OUT = -1;

  const dialog = h("dialog", { class: "detail", "aria-labelledby": "detail-name" });
  const closed = () => {
    if (slop.address().test) go({ ...slop.address(), test: null, checkpoint: null });
  };
  dialog.addEventListener("close", closed);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });

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

  /** A heading and a text; `place` is its number among the texts of the part. */
  function textSection(title, place, part, coloured) {
    if (place === null || place === undefined) return null;
    const shown =
      place === LEFT_OUT
        ? h(
            "p",
            { class: "dim" },
            "Left out here: the report would be too large with all texts. The second command below prints it.",
          )
        : slop.message.pre(part.texts[place], title, coloured);
    const cut = place !== LEFT_OUT && Array.isArray(part.texts[place]);
    return h(
      "section",
      null,
      h("h3", null, title),
      shown,
      cut && h("p", { class: "dim" }, "Long texts are cut here. The second command below prints all of it."),
    );
  }

  function commands(test, checkpoint) {
    if (!checkpoint.place) return null;
    if (!test.word) return h("p", { class: "dim" }, "The name of this test is too long for a command here.");
    const one = (title, command) => [
      h("h3", null, title),
      slop.command(title, `slop-code ${command} ${checkpoint.place} ${test.word}`),
    ];
    return h("section", null, one("Run this test again", "rerun"), one("Print all of it", "show"));
  }

  function why(told, part, reason) {
    const [message, calls, output] = told.slice(3);
    const sections = [
      textSection("Failure", message, part, true),
      textSection("What was run", calls, part, false),
      textSection("Captured output", output, part, false),
    ];
    if (reason) sections.unshift(h("p", { class: "trouble" }, `There is no verdict for this checkpoint: ${reason}`));
    return sections.some(Boolean) ? sections : h("p", { class: "dim" }, "It passed: nothing was kept of what it did.");
  }

  const SIGNS = { passed: "✓", failed: "×", error: "!", skipped: "–" };
  const TURNS = { n: "where it was born", b: "where it broke", r: "where it recovered" };

  /** "× failed at larder checkpoint_3, where it broke" */
  function outcome(test, sheet, column) {
    const status = slop.tests.WORDS[test.statuses[column]];
    const verdict = slop.tests.hasVerdict(sheet.checkpoints[column]);
    const badge = slop.overview.badge(
      verdict
        ? { look: status, symbol: SIGNS[status], words: status }
        : { look: "none", symbol: "?", words: `no verdict (${status})` },
    );
    const turn = TURNS[test.changes[column]];
    return h("p", null, badge, ` at ${sheet.name} ${sheet.checkpoints[column].name}${turn ? `, ${turn}` : ""}`);
  }

  function draw(test, sheet, column, told, part, context) {
    const checkpoint = sheet.checkpoints[column];
    const [file, id] = slop.tests.nameParts(test.name);
    const group = context.groups[Number(test.groups[column])];
    fill(
      dialog,
      h(
        "header",
        null,
        h("h2", { id: "detail-name", tabindex: -1 }, h("span", { class: "dim" }, file), id),
        h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close"),
      ),
      h(
        "div",
        { class: "content" },
        outcome(test, sheet, column),
        facts([
          ["Group", group],
          ["Duration", inWords(told[1])],
          ["Markers", part.markers[told[2]].join(", ")],
        ]),
        why(told, part, slop.tests.hasVerdict(checkpoint) ? null : checkpoint.reason),
        commands(test, checkpoint),
        h("section", null, h("h3", null, "History"), history(test, sheet, column)),
      ),
    );
  }

  /** Which part of the page holds the texts is said by numbers: those of run, problem and checkpoint. */
  async function show(test, sheet, column, numbers, context) {
    const part = await slop.part([...numbers, column].join("/"));
    if (slop.address().test !== test.name) return; // the reader went elsewhere in the meantime
    const row = sheet.tests.indexOf(test);
    const told = part?.tests.find(([number]) => number === row);
    if (!told) return;
    draw(test, sheet, column, told, part, context);
    if (!dialog.isConnected) document.body.append(dialog);
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("h2").focus();
    dialog.querySelector(".content").scrollTop = 0;
  }

  const hide = () => {
    if (dialog.open) dialog.close();
  };

  return { show, hide };
})();
