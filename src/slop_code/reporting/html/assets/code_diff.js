// Unified diff of a submission's code since the checkpoint at which a test passed.
"use strict";

slop.codeDiff = (() => {
  const { h, plural } = slop;
  const MAX_OPEN = 3; // files; the others are folded
  const MAX_LINES = 80; // of a file, drawn at once
  const MAX_WORDS = 6; // that a hunk shares with a failure, in its note
  const LOOKS = { "-": "less", "+": "more", "@": "where", "\\": "where" };
  const COMPARED_ROUGHLY = "compared roughly";
  const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;
  const USUAL = new Set(["exit", "status", "expected", "found", "assert", "stdout", "stderr", "python", "main"]);

  const wordsOf = (text) => new Set((text.toLowerCase().match(/\p{L}{3,}/gu) ?? []).filter((word) => !USUAL.has(word)));

  /** Hunks of a unified diff; each line has its numbers, and the hunk the words that its changed lines share. */
  function hunksOf(text, words) {
    const hunks = [];
    let [old, now] = [0, 0];
    for (const line of text.split("\n")) {
      const start = line.match(HUNK);
      if (start) [old, now] = [Number(start[1]), Number(start[2])];
      if (start || !hunks.length) hunks.push([]);
      const [inOld, inNew] = [" -".includes(line[0] ?? "@"), " +".includes(line[0] ?? "@")];
      hunks.at(-1).push({ line, old: inOld ? old++ : "", now: inNew ? now++ : "" });
    }
    return hunks.map((lines) => {
      const changed = wordsOf(lines.map(({ line }) => (/^[-+]/.test(line) ? line : "")).join("\n"));
      return { lines, shared: [...words].filter((word) => changed.has(word)) };
    });
  }

  /** The first character of a line is its sign, so that colours only repeat what the text says. Numbers are no text, so
      that they are not copied. */
  const row = ({ line, old, now, note = "" }) =>
    h("span", { class: `row ${LOOKS[line[0]] ?? ""}`, "data-old": old, "data-new": now }, line || " ", note);

  const noteOf = (shared) => {
    const more = shared.length > MAX_WORDS ? ", …" : "";
    return shared.length ? ` shares with the failure: ${shared.slice(0, MAX_WORDS).join(", ")}${more}` : "";
  };

  /** Hunks that share most words with the failure first, others in the order of the file. */
  function lines({ name, text }, words) {
    const hunks = hunksOf(text, words).toSorted((a, b) => b.shared.length - a.shared.length);
    const all = hunks.flatMap(({ lines: [first, ...others], shared }) => [
      { ...first, note: noteOf(shared) },
      ...others,
    ]);
    const attributes = { class: "numbered", tabindex: 0, role: "region", "aria-label": `Changes of ${name}` };
    const box = h("pre", attributes, all.slice(0, MAX_LINES).map(row));
    if (all.length <= MAX_LINES) return box;
    const showAll = () => {
      box.append(...all.slice(MAX_LINES).map(row));
      more.remove();
      box.focus({ preventScroll: true });
    };
    const more = h("button", { type: "button", onclick: showAll }, `Show all ${plural(all.length, "line")}`);
    return [box, more];
  }

  function file(change, number, words) {
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
      change.text && lines(change, words),
      change.left_out > 0 && h("p", { class: "dim" }, `${plural(change.left_out, "line")} left out here.`),
    );
    folded.open = number < MAX_OPEN;
    return folded;
  }

  /** `diff`: null where a snapshot is missing. `since`: name of the checkpoint at which the test passed, `to`: of the
      one at which it broke. `failure`: texts of the test whose words are looked for in the changed lines. */
  function draw(diff, since, to, failure) {
    const words = wordsOf(failure);
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
      diff.files.map((change, number) => file(change, number, words)),
      diff.left_out > 0 && h("p", { class: "dim" }, `${plural(diff.left_out, "file")} left out here.`),
      diff.unknown > 0 && h("p", { class: "dim" }, unknown),
    );
  }

  return { draw };
})();
