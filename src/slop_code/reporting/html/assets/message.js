// Text of a failure, line by line, as pytest means it: what was expected, what came, where.
"use strict";

slop.message = (() => {
  const { h } = slop;
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

  /** A text is whole, or its head, how many characters are left out, and its tail. */
  function pre(text, label, coloured = false) {
    const parts = Array.isArray(text) ? text : [text];
    return h(
      "pre",
      { class: coloured ? null : "long", tabindex: 0, role: "region", "aria-label": label },
      parts.map((part) =>
        typeof part === "number"
          ? h("span", { class: "gap" }, `\n[${slop.many(part, "character")} left out]\n`)
          : lines(part, coloured),
      ),
    );
  }

  return { pre };
})();
