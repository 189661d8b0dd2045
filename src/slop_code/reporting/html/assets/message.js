// Texts of a test: the reason, the commands that it ran, its source, pytest's output, its own output, what it used.
"use strict";

slop.message = (() => {
  const { h } = slop;
  const LEFT_OUT = -1;
  const TEXTS = ["message", "calls", "output", "resources", "reason", "source"]; // as in the data of the page
  const PYTEST = "Output of pytest";
  const LINES = [
    [/^E\s+-/, "less"],
    [/^E\s+\+/, "more"],
    [/^E\s+\?/, "hint"],
    [/^E(\s|$)/, "wrong"],
    [/^>/, "point"],
    [/^[\w./\\-]+:\d+: /, "where"],
  ];

  const lookOf = (line) => LINES.find(([pattern]) => pattern.test(line))?.[1] ?? null;

  const lines = (text, coloured) =>
    text
      .split("\n")
      .flatMap((line, number) => [
        number ? "\n" : null,
        coloured && lookOf(line) ? h("span", { class: lookOf(line) }, line) : line,
      ]);

  /** A text is a string, or its head, the number of characters left out, and its tail. */
  function pre(text, label, coloured = false) {
    const parts = (Array.isArray(text) ? text : [text]).map((part) =>
      typeof part === "number"
        ? h("span", { class: "gap" }, `\n[${slop.plural(part, "character")} left out]\n`)
        : lines(part, coloured),
    );
    return h("pre", { class: "long", tabindex: 0, role: "region", "aria-label": label }, parts);
  }

  const indexes = new WeakMap(); // of the tests in a part, by row

  /** Index in the part of the test in this row; -1 if it is not there. */
  function indexOf(part, row) {
    if (!indexes.has(part)) indexes.set(part, new Map(part.tests.map(([number], index) => [number, index])));
    return indexes.get(part).get(row) ?? -1;
  }

  /** Texts by their names: null where there is none, `LEFT_OUT` where there was no room. */
  const textsOf = (textNumbers, part) =>
    Object.fromEntries(
      TEXTS.map((name, number) => {
        const textNumber = textNumbers[number] ?? null;
        return [name, textNumber === null || textNumber === LEFT_OUT ? textNumber : part.texts[textNumber]];
      }),
    );

  /** A text that may be truncated, as a string. */
  const oneLine = (text) => [text].flat().map((part) => (typeof part === "number" ? " … " : part)).join("");

  /** The line that says why a test did not pass; null where it is not known. */
  function reason(textNumbers, part) {
    const text = textsOf(textNumbers, part).reason;
    return text === null || text === LEFT_OUT ? null : oneLine(text);
  }

  /** The reason and the commands that were run. */
  const reasonAndCalls = (textNumbers, part) => {
    const { reason: why, calls } = textsOf(textNumbers, part);
    return [why, calls].filter((text) => text && text !== LEFT_OUT).map(oneLine).join("\n");
  };

  /** Sections of these texts in the order in which they explain a failure; null where there is none.
      `of`: the side of a comparison. `changes`: the section about the code that changed, if any. */
  function sections(textNumbers, part, { level, of = "", more, changes = null }) {
    const texts = textsOf(textNumbers, part);
    if (Object.values(texts).every((text) => text === null)) return null;
    const label = (title) => (of ? `${title}: ${of}` : title);
    const section = (title, ...content) => h("section", h(level, title), content);
    const body = (text, title, coloured) =>
      text === LEFT_OUT
        ? h("p", { class: "dim" }, `Left out, as the page would be too large. ${more}`)
        : [
            pre(text, label(title), coloured),
            Array.isArray(text) && h("p", { class: "dim" }, `Long texts are truncated here. ${more}`),
          ];
    const whole = (title, text) => text !== null && section(title, body(text, title));
    const message = texts.message === LEFT_OUT ? null : texts.message;
    const compared = message ? slop.expected.draw(message, label("Expected and found")) : null;
    const outputs = message ? slop.expected.outputs(message) : [];
    return [
      compared && section("Expected and found", compared),
      whole("What was run", texts.calls),
      outputs.map(([title, text]) => whole(title, text)),
      changes,
      whole("Source of the test", texts.source),
      texts.message !== null && folded(h(level, PYTEST), body(texts.message, PYTEST, true), !compared),
      whole("Captured output", texts.output),
      whole("Limits and resources", texts.resources),
    ];
  }

  function folded(title, content, open) {
    const details = h("details", h("summary", title), content);
    details.open = open;
    return h("section", { class: "folded" }, details);
  }

  /** Commands to copy, each with a title and a label. */
  const commands = (level, all) => [
    all.map(({ title, label = title, text }) => [h(level, title), slop.command(label, text)]),
    h("p", { class: "dim" }, "Run it in the folder where the command that wrote this page ran."),
  ];

  return { sections, commands, reason, reasonAndCalls, oneLine, indexOf };
})();
