// Where each test was born, broke, recovered: the filter, the heads of the columns, and the grid below them.
"use strict";

slop.timeline = (() => {
  const { h, many, hashOf, go } = slop;

  const LEGEND = [
    ["passed born", "+", "born, passed"],
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
        h("li", null, h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol), words),
      ),
    );

  /** The filter as the address has it. */
  function wanted(state, sheet, groups) {
    const at = sheet.checkpoints.findIndex((checkpoint) => checkpoint.name === state.at);
    return { group: groups.indexOf(state.group), at, kind: state.status ?? "", text: state.q ?? "" };
  }

  function controls(state, sheet, groups) {
    const set = (key) => (event) => go({ ...slop.address(), [key]: event.target.value });
    const type = (event) => go({ ...slop.address(), q: event.target.value }, { replace: true });
    const field = (text, control) => h("label", { class: "field" }, `${text} `, control);
    return h(
      "form",
      { class: "filters", role: "search", "aria-label": "Filter tests", onsubmit: (event) => event.preventDefault() },
      field(
        "Group",
        slop.select([["", "all groups"], ...groups], state.group, {
          id: "filter-group",
          onchange: set("group"),
        }),
      ),
      field("History", slop.select(slop.tests.KINDS, state.status, { id: "filter-status", onchange: set("status") })),
      field(
        "At",
        slop.select([["", "any checkpoint"], ...sheet.checkpoints.map(({ name }) => [name, name])], state.at, {
          id: "filter-at",
          onchange: set("at"),
        }),
      ),
      field(
        "Name",
        h("input", {
          type: "search",
          id: "filter-text",
          value: state.q ?? "",
          placeholder: "part of a name",
          autocomplete: "off",
          spellcheck: "false",
          oninput: type,
        }),
      ),
      h(
        "button",
        { type: "button", onclick: () => go({ ...slop.address(), group: null, status: null, at: null, q: null }) },
        "Clear",
      ),
    );
  }

  /** The fields say what the address says, also after Back. */
  function setControls({ group = "", status = "", at = "", q = "" }) {
    for (const [name, value] of Object.entries({ group, status, at, text: q })) {
      const field = document.getElementById(`filter-${name}`);
      if (field.value !== value) field.value = value;
    }
  }

  function change(count, kind, symbol, words, checkpoint, state) {
    if (!count) return null;
    const href = hashOf({
      ...state,
      view: "timeline",
      status: kind,
      at: checkpoint.name,
      test: null,
      checkpoint: null,
      group: null,
      q: null,
    });
    return h(
      "a",
      {
        class: `count ${kind}`,
        href,
        "aria-label": `${many(count, "test")} ${words} at ${checkpoint.name}: show them`,
      },
      symbol,
      count,
    );
  }

  function columnHead(checkpoint, policy, state) {
    const { look, symbol, words } = slop.overview.verdict(checkpoint, policy);
    return h(
      "th",
      { scope: "col", class: state.at === checkpoint.name ? "chosen" : null },
      h("span", { class: "name" }, checkpoint.name),
      h(
        "span",
        { class: `mark ${look}`, title: words },
        h("span", { "aria-hidden": "true" }, symbol),
        h("span", { class: "unseen" }, words),
      ),
      h(
        "span",
        { class: "changes" },
        change(checkpoint.introduced, "broke", "▼", "broke", checkpoint, state),
        change(checkpoint.repaired, "recovered", "▲", "recovered", checkpoint, state),
      ),
    );
  }

  function draw(sheet, context, state) {
    const filter = wanted(state, sheet, context.groups);
    const rows = slop.tests.chosen(sheet, filter);
    const count =
      rows.length === sheet.tests.length
        ? many(rows.length, "test")
        : `${rows.length} of ${many(sheet.tests.length, "test")}`;
    const heads = sheet.checkpoints.map((checkpoint) => columnHead(checkpoint, context.policy, state));
    slop.say(`${count} shown`);
    return [
      h("p", { class: "left", id: "left" }, `${count} shown`),
      rows.length
        ? slop.grid.draw(sheet, rows, heads, state.test)
        : h("p", { class: "nothing" }, "No test is like that."),
    ];
  }

  return { draw, controls, setControls, legend };
})();
