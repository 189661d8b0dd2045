// Unified diff of a submission's code since the checkpoint at which a test passed.
"use strict";

slop.codeDiff = (() => {
  const { h, plural } = slop;
  const MAX_OPEN = 3; // files; the others are folded
  const LOOKS = { "-": "less", "+": "more", "@": "where", "\\": "where" };
  const COMPARED_ROUGHLY = "compared roughly";

  const look = (line) => LOOKS[line[0]] ?? null;

  /** The first character of a line is its sign, so that colours only repeat what the text says. */
  const lines = ({ name, text }) =>
    h(
      "pre",
      { class: "long", tabindex: 0, role: "region", "aria-label": `Changes of ${name}` },
      text
        .split("\n")
        .map((line, number) => [number ? "\n" : null, look(line) ? h("span", { class: look(line) }, line) : line]),
    );

  function file(change, number) {
    const counted = !change.note || change.note === COMPARED_ROUGHLY;
    const facts = [
      change.kind,
      counted && `${plural(change.added, "line")} added`,
      counted && `${plural(change.removed, "line")} removed`,
      change.note,
    ];
    const folded = h(
      "details",
      h("summary", h("code", change.name), ` ${facts.filter(Boolean).join(", ")}`),
      change.text && lines(change),
      change.left_out > 0 && h("p", { class: "dim" }, `${plural(change.left_out, "line")} left out here.`),
    );
    folded.open = number < MAX_OPEN;
    return folded;
  }

  /** `diff`: null where a snapshot is missing. `since`: name of the checkpoint at which the test passed, `to`: of the
      one at which it broke. */
  function draw(diff, since, to) {
    const title = h("h3", `Code changed from ${since} to ${to}`);
    if (!diff) {
      return h("section", title, h("p", { class: "dim" }, "Not recorded: a snapshot is missing or cannot be read."));
    }
    const nothing = !diff.files.length && !diff.left_out && !diff.unknown;
    const unknown = `${plural(diff.unknown, "file")} of the same size too large to compare: may have changed, too.`;
    return h(
      "section",
      { class: "code-diff" },
      title,
      nothing && h("p", { class: "dim" }, "The files are the same: the test may be flaky, or depend on other things."),
      diff.files.length > 0 && h("p", { class: "dim signs" }, `- only at ${since}, + only at ${to}`),
      diff.files.map(file),
      diff.left_out > 0 && h("p", { class: "dim" }, `${plural(diff.left_out, "file")} left out here.`),
      diff.unknown > 0 && h("p", { class: "dim" }, unknown),
    );
  }

  return { draw };
})();
