// Line by line difference of the expected and the actual value, where a failure message has both.
"use strict";

slop.expected = (() => {
  const { h } = slop;
  const PARTS = [
    /^\s*(?:[\w.]{1,60}: )?(?:expected|wanted)(?: [\w ]{1,30})?:\s?(.*)$/i,
    /^\s*(?:[\w.]{1,60}: )?(?:found|got|actual|received)(?: [\w ]{1,30})?:\s?(.*)$/i,
  ];
  const OUTPUT = /^(stdin|stdout|stderr)( so far)?:$/;
  const STREAMS = { stdin: "Standard input", stdout: "Standard output", stderr: "Standard error" };
  const DIFFERENCE = /^difference of \w+, from line \d+ on:$/;
  const ASSERTION = /^(?:AssertionError: )?assert (?!not )(.*)$/;
  const WHERE = /^\s*\+\s+(?:where|and) /;
  const MAX_DIFFERENCES = 1000; // lines; more of them take too long, and nobody reads them
  const LOOKS = { "-": "less", "+": "more", "?": "hint" };
  const SIDES = "- expected, + found";
  const OWN = "- expected (on the right of the comparison), + found (on the left)";

  /** Blocks of lines that pytest marks with E, the last block first, without the mark. */
  function blocks(text) {
    const marked = [[]];
    for (const line of text.split("\n")) {
      if (/^E(\s|$)/.test(line)) marked[0].push(line.slice(1));
      else if (marked[0].length) marked.unshift([]);
    }
    return marked.filter((lines) => lines.length).map(unindented);
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

  /** The difference that pytest printed. */
  function printedDifference(lines) {
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

  const startsOf = (lines) => PARTS.map((pattern) => lines.findIndex((line) => pattern.test(line)));

  /** Index of the line where the values end: after it are their differences, and outputs that were not compared. */
  function endOfValues(lines, starts) {
    const last = Math.max(...starts);
    const values = lines.slice(Math.min(...starts), last);
    const ends = (line) => DIFFERENCE.test(line) || (OUTPUT.test(line) && !values.includes(line));
    const end = lines.findIndex((line, number) => number > last && !lines[number - 1].trim() && ends(line));
    return end < 0 ? lines.length : end;
  }

  /** Values that the test prints as "expected:" and "found:". */
  function namedValues(lines) {
    const starts = startsOf(lines);
    if (starts.includes(-1)) return null;
    const whole = endOfValues(lines, starts);
    const [expected, actual] = starts.map((start, number) => {
      const end = start < starts[1 - number] ? starts[1 - number] : whole;
      const rest = lines[start].match(PARTS[number])[1];
      return trimmed([...(rest ? [rest] : []), ...lines.slice(start + 1, end)]);
    });
    return compared(expected, actual, SIDES);
  }

  /** Values of an assertion on a single line. */
  function assertedValues(lines) {
    const values = lines.map((line) => line.match(ASSERTION)?.[1].split(" == ")).find(Boolean);
    if (values?.length !== 2 || values[0].split("(").length !== values[0].split(")").length) return null;
    return compared([values[1]], [values[0]], OWN);
  }

  function compared(expected, actual, note) {
    const parts = Diff.diffArrays(expected, actual, { maxEditLength: MAX_DIFFERENCES }) ?? [];
    const rows = parts.flatMap(({ added, removed, value }) =>
      value.map((line) => [added ? "+" : removed ? "-" : " ", line]),
    );
    return rows.some(([sign]) => sign !== " ") ? { rows, note } : null;
  }

  /** Outputs of the command after the values, each with its title. */
  function outputs(text) {
    const lines = blocks(lastPart(text)).find((block) => !startsOf(block).includes(-1)) ?? [];
    const streams = [];
    for (const line of lines.slice(endOfValues(lines, startsOf(lines)))) {
      const [, stream, soFar = ""] = line.match(OUTPUT) ?? [];
      if (stream) streams.push([`${STREAMS[stream]}${soFar}`, []]);
      else if (DIFFERENCE.test(line)) streams.push([null, []]);
      else streams.at(-1)[1].push(line);
    }
    return streams.map(([title, rest]) => [title, trimmed(rest).join("\n")]).filter(([title, rest]) => title && rest);
  }

  const lastPart = (text) => (Array.isArray(text) ? text.at(-1) : text);

  /** Rows of a sign and a line, with a note about the signs; null where the text has no two values. */
  function split(text) {
    for (const lines of blocks(lastPart(text))) {
      const difference = printedDifference(lines) ?? namedValues(lines) ?? assertedValues(lines);
      if (difference) return difference;
    }
    return null;
  }

  function draw(text, label) {
    const difference = split(text);
    if (!difference) return null;
    const lines = difference.rows.map(([sign, line], number) => [
      number ? "\n" : null,
      h("span", { class: LOOKS[sign] ?? (sign ? null : "gap") }, sign ? `${sign} ${line}` : line),
    ]);
    return [
      h("pre", { tabindex: 0, role: "region", "aria-label": label }, lines),
      h("p", { class: "dim signs" }, difference.note),
    ];
  }

  return { draw, split, outputs };
})();
