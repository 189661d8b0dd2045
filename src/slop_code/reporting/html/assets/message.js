// Texts of a test: its failure message, the commands that it ran, its output, what it used.
"use strict";

slop.message = (() => {
  const { h } = slop;
  const LEFT_OUT = -1;
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
  function pre(text, label, coloured) {
    const parts = (Array.isArray(text) ? text : [text]).map((part) =>
      typeof part === "number"
        ? h("span", { class: "gap" }, `\n[${slop.plural(part, "character")} left out]\n`)
        : lines(part, coloured),
    );
    return h("pre", { class: coloured ? null : "long", tabindex: 0, role: "region", "aria-label": label }, parts);
  }

  const TEXTS = ["Failure", "What was run", "Captured output", "Limits and resources"];

  /** Sections of the texts with these numbers; null where there is none. `of`: the side of a comparison. */
  function sections(textNumbers, part, { level, of = "", more }) {
    const label = (title) => (of ? `${title}: ${of}` : title);
    const section = (title, ...content) => h("section", h(level, title), content);
    const shown = TEXTS.map((title, number) => {
      const textNumber = textNumbers[number];
      if (textNumber === null) return null;
      if (textNumber === LEFT_OUT) {
        return section(title, h("p", { class: "dim" }, `Left out, as the page would be too large. ${more}`));
      }
      const text = part.texts[textNumber];
      const cut = Array.isArray(text) && h("p", { class: "dim" }, `Long texts are truncated here. ${more}`);
      return section(title, pre(text, label(title), !number), cut);
    });
    if (!shown.some(Boolean)) return null;
    const message = part.texts[textNumbers[0]];
    const both = message ? slop.expected.draw(message, label("Expected and found")) : null;
    return [both && section("Expected and found", both), shown];
  }

  /** Commands to copy, each with a title and a label. */
  const commands = (level, all) => [
    all.map(({ title, label = title, text }) => [h(level, title), slop.command(label, text)]),
    h("p", { class: "dim" }, "Run it in the folder where `slop-code report` ran."),
  ];

  return { sections, commands };
})();
