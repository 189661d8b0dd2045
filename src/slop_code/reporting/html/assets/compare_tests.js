// Tests that differ between two sides: the filtered list, and the dialog of a test with both sides.
"use strict";

slop.differing = (() => {
  const { h, hashOf, address } = slop;
  const CHUNK = 60;
  const ROW_HEIGHTS = { table: 34, stacked: 136 }; // pixels, as in the style sheet
  const COLUMNS = 6;
  const HIDDEN = ["added", "removed"]; // only counted, unless the filter asks for them

  const FILTER = ["change", "problem", "at"];

  const LOOKS = {
    lost: { look: "failed", symbol: "▼", words: "lost" },
    gained: { look: "passed", symbol: "▲", words: "gained" },
    flaky: { look: "skipped", symbol: "≈", words: "flaky" },
    rejudged: { look: "none", symbol: "◆", words: "rejudged" },
    added: { look: "absent", symbol: "+", words: "added" },
    removed: { look: "absent", symbol: "−", words: "removed" },
  };

  /** Meaning of a change between these two sides. */
  function meaning(kind, { base, other, several }) {
    return {
      lost: several ? `passes less often in ${other} than in ${base}` : `passes in ${base}, not in ${other}`,
      gained: several ? `passes more often in ${other} than in ${base}` : `passes in ${other}, not in ${base}`,
      flaky: "same submission and same judge, different status",
      rejudged: "same submission, different judge",
      added: `only in ${other}`,
      removed: `only in ${base}`,
    }[kind];
  }

  const legend = (data, pair) => {
    const item = (kind) => [slop.badge(LOOKS[kind]), ` ${meaning(kind, pair)}`];
    return slop.legend("What the signs mean", data.changes.map(item));
  };

  /** The status in one run; of several runs, how many passed. */
  function outcome(statuses) {
    const counts = Object.entries(statuses);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    if (!total) return h("span", { class: "dim" }, "not there");
    if (total === 1) return slop.statusBadge(counts[0][0]);
    const title = counts.map(([status, count]) => `${count} ${status}`).join(", ");
    return h("span", { title }, `${statuses.passed ?? 0}/${total} passed`);
  }

  const records = (data, pair) =>
    pair.tests.map(([checkpoint, name, group, change, base, other, shellName], number) => ({
      number,
      checkpointNumber: checkpoint,
      checkpoint: pair.checkpoints[checkpoint],
      name,
      group,
      change: data.changes[change],
      base,
      other,
      shellName,
    }));

  function chosen(data, pair, state) {
    const query = (state.q ?? "").toLowerCase();
    const matches = (test) =>
      (state.change ? test.change === state.change : !HIDDEN.includes(test.change)) &&
      (!state.problem || test.checkpoint.problem === state.problem) &&
      (!state.at || test.checkpoint.name === state.at) &&
      test.name.toLowerCase().includes(query);
    const order = ({ change }) => data.changes.indexOf(change);
    return records(data, pair)
      .filter(matches)
      .sort((a, b) => order(a) - order(b));
  }

  function choices(data, pair) {
    const kinds = data.changes.map((kind, number) => [kind, `${kind} (${pair.counts[number]})`]);
    const names = (key) => new Set(pair.checkpoints.map((checkpoint) => checkpoint[key]));
    return [
      { text: "Change", key: "change", options: [["", "all but added and removed"], ...kinds] },
      { text: "Problem", key: "problem", options: [["", "all problems"], ...names("problem")] },
      { text: "At", key: "at", options: [["", "any checkpoint"], ...names("name")] },
    ];
  }

  /** A test in the address: by names, which stay valid in the next comparison. */
  const linkTo = ({ name, checkpoint }) =>
    hashOf({ ...address(), of: checkpoint.problem, checkpoint: checkpoint.name, test: name });

  const drawRow = (heads) => (test) => {
    const [file, id] = slop.nameParts(test.name);
    const link = h("a", { href: linkTo(test) }, h("span", { class: "dim" }, file), id);
    const row = h(
      "tr",
      h("td", slop.badge(LOOKS[test.change])),
      h("th", { scope: "row", title: test.name }, link),
      h("td", `${test.checkpoint.problem} ${test.checkpoint.name}`),
      h("td", test.group),
      h("td", outcome(test.base)),
      h("td", outcome(test.other)),
    );
    return slop.stackable(row, heads);
  };

  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.closest("tbody")) return;
    const links = [...event.currentTarget.querySelectorAll("tbody a")];
    event.preventDefault();
    links[links.indexOf(event.target) + step]?.focus();
  }

  function list(data, pair, state) {
    const rows = chosen(data, pair, state);
    const count = slop.countShown(rows.length, pair.tests.length);
    if (!rows.length) {
      const hidden = ["No tests match. ", slop.clearButton(FILTER, "Clear filters")];
      return [count, h("p", { class: "nothing" }, pair.tests.length ? hidden : "No test differs.")];
    }
    const box = slop.scrollBox("Tests that differ");
    box.classList.add("differing");
    const heads = ["Change", "Test", "At", "Group", pair.base, pair.other];
    const rowHeight = ROW_HEIGHTS[matchMedia("(max-width: 40rem)").matches ? "stacked" : "table"];
    const bodies = [];
    for (let first = 0; first < rows.length; first += CHUNK) {
      const chunk = rows.slice(first, first + CHUNK);
      const height = `${chunk.length * rowHeight}px`;
      const { body, draw } = slop.lazyRows(chunk, drawRow(heads), { columns: COLUMNS, height, box });
      if (!first) draw();
      bodies.push(body);
    }
    const table = h("table", { class: "results stacked", onkeydown: onKey }, slop.tableHead(heads), bodies);
    box.append(slop.stackable(table, heads));
    return [count, box];
  }

  const dialog = slop.dialog("detail both", ["test", "of", "checkpoint"]);

  const MORE = "The command below prints all of it.";

  function sidePane(part, shellName, { side, statuses, textNumbers, named, run }) {
    const sections = slop.message.sections(textNumbers, part, { level: "h4", of: side.name, more: MORE });
    const folder = part.folders[run];
    const show = {
      title: "Print all of it",
      label: `Print all of ${side.name}`,
      text: `slop-code show ${folder} ${shellName}`,
    };
    const reason = slop.message.reason(textNumbers, part);
    const nothing = run === null ? "It has no such test." : "No texts were stored.";
    return h(
      "section",
      { class: sections ? null : "without-texts" },
      h("h3", side.name, h("span", { class: "dim" }, named)),
      h("p", outcome(statuses)),
      reason && h("p", { class: "why" }, reason),
      sections ?? h("p", { class: "dim" }, nothing),
      sections && folder && shellName && slop.message.commands("h4", [show]),
    );
  }

  const findTest = (data, pair, { test, of, checkpoint }) =>
    records(data, pair).find(
      (record) => record.name === test && record.checkpoint.problem === of && record.checkpoint.name === checkpoint,
    );

  /** The test that the address names, if any. */
  async function open(data, pairNumber, state) {
    const pair = data.pairs[pairNumber];
    const test = state.test && findTest(data, pair, state);
    if (!test) {
      dialog.hide();
      return;
    }
    const part = await slop.part(`${pairNumber}/${test.checkpointNumber}`);
    const index = part ? part.tests.findIndex(([row]) => row === test.number) : -1;
    if (index < 0 || hashOf(address()) !== hashOf(state)) return; // the reader went elsewhere in the meantime
    const [, ...runs] = part.tests[index];
    const textNumbers = part.text_numbers[index];
    const half = textNumbers.length / 2;
    const firstRun = data.sides.slice(0, pairNumber + 1).reduce((sum, side) => sum + side.runs.length, 0);
    const sides = [
      { side: data.sides[0], firstRun: 0, statuses: test.base },
      { side: data.sides[pairNumber + 1], firstRun, statuses: test.other },
    ];
    const panes = sides.map((side, number) => {
      const texts = textNumbers.slice(number * half, (number + 1) * half);
      const run = runs[number];
      const named = side.side.runs.length > 1 && run !== null ? ` ${side.side.runs[run - side.firstRun]}` : "";
      return sidePane(part, test.shellName, { ...side, named, run, textNumbers: texts });
    });
    const where = ` at ${test.checkpoint.problem} ${test.checkpoint.name}: ${meaning(test.change, pair)}`;
    const change = h("p", slop.badge(LOOKS[test.change]), where);
    dialog.show({ name: test.name }, change, h("div", { class: "sides" }, panes));
  }

  return { LOOKS, choices, legend, list, open };
})();
