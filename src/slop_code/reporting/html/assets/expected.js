// What was expected and what came, line by line, where a failure tells both.
"use strict";

slop.expected = (() => {
  const { h } = slop;
  const PARTS = [
    /^\s*(?:[\w.]{1,60}: )?(?:expected|wanted)(?: [\w ]{1,30})?:\s?(.*)$/i,
    /^\s*(?:[\w.]{1,60}: )?(?:found|got|actual|received)(?: [\w ]{1,30})?:\s?(.*)$/i,
  ];
  const ASSERTION = /^(?:AssertionError: )?assert (?!not )(.*)$/;
  const WHERE = /^\s*\+\s+(?:where|and) /;
  const MOST = 1000; // lines that differ: beyond it, it takes too long, and nobody reads it
  const LOOKS = { "-": "less", "+": "more", "?": "hint" };
  const SIDES = "- expected, + found";
  const OWN = "- expected (on the right of the comparison), + found (on the left)";

  /** The runs of lines that pytest marks with E, the last one first, without the mark. */
  function blocks(text) {
    const found = [[]];
    for (const line of text.split("\n")) {
      if (/^E(\s|$)/.test(line)) found[0].push(line.slice(1));
      else if (found[0].length) found.unshift([]);
    }
    return found.filter((lines) => lines.length).map(unindented);
  }

  function unindented(lines) {
    const depth = Math.min(...lines.filter((line) => line.trim()).map((line) => line.search(/\S/)));
    return lines.map((line) => line.slice(depth));
  }

  function trimmed(lines) {
    const kept = [...lines];
    while (kept.length && !kept.at(-1).trim()) kept.pop();
    return kept;
  }

  /** As pytest has compared them itself. */
  function own(lines) {
    const full = lines.findIndex((line) => /^\s*Full diff/.test(line));
    const assertion = lines.findIndex((line) => ASSERTION.test(line));
    if (assertion < 0) return null;
    const rows = trimmed(lines.slice((full < 0 ? assertion : full) + 1).filter((line) => !WHERE.test(line))).map(
      (line) => {
        const sign = line.match(/^ {2}([-+?])(?: (.*))?$/);
        if (sign) return [sign[1], sign[2] ?? ""];
        return line.startsWith("    ") ? [" ", line.slice(4)] : ["", line.trim()];
      },
    );
    const first = rows.findIndex(([sign, line]) => sign || line);
    return rows.some(([sign]) => sign === "-" || sign === "+") ? { rows: rows.slice(first), note: OWN } : null;
  }

  /** As the test's author says it. */
  function told(lines) {
    const places = PARTS.map((pattern) => lines.findIndex((line) => pattern.test(line)));
    if (places.includes(-1)) return null;
    const [expected, found] = places.map((place, number) => {
      const end = place < places[1 - number] ? places[1 - number] : lines.length;
      const rest = lines[place].match(PARTS[number])[1];
      return trimmed([...(rest ? [rest] : []), ...lines.slice(place + 1, end)]);
    });
    return compared(expected, found, SIDES);
  }

  /** Of values that stand on one line. */
  function asserted(lines) {
    const found = lines.map((line) => line.match(ASSERTION)?.[1].split(" == ")).find(Boolean);
    if (found?.length !== 2 || found[0].split("(").length !== found[0].split(")").length) return null;
    return compared([found[1]], [found[0]], OWN);
  }

  function compared(expected, found, note) {
    const parts = Diff.diffArrays(expected, found, { maxEditLength: MOST }) ?? [];
    const rows = parts.flatMap(({ added, removed, value }) =>
      value.map((line) => [added ? "+" : removed ? "-" : " ", line]),
    );
    return rows.some(([sign]) => sign !== " ") ? { rows, note } : null;
  }

  /** Rows of a sign and a line, and what the signs mean; null where the text does not tell. A cut text has its end. */
  function split(text) {
    for (const lines of blocks(Array.isArray(text) ? text.at(-1) : text)) {
      const found = own(lines) ?? told(lines) ?? asserted(lines);
      if (found) return found;
    }
    return null;
  }

  function draw(text, label) {
    const found = split(text);
    if (!found) return null;
    const lines = found.rows.map(([sign, line], number) => [
      number ? "\n" : null,
      h("span", { class: LOOKS[sign] ?? (sign ? null : "gap") }, sign ? `${sign} ${line}` : line),
    ]);
    return [
      h("pre", { tabindex: 0, role: "region", "aria-label": label }, lines),
      h("p", { class: "dim signs" }, found.note),
    ];
  }

  return { draw, split };
})();
