// The tests that differ: which of them a filter leaves, and one of them with both sides next to each other.
"use strict";

slop.differing = (() => {
  const { h, hashOf, address } = slop;
  const CHUNK = 60;
  const ROW_HEIGHT = 34; // as in the style: rows that are not drawn yet take the room that they will take
  const COLUMNS = 6;
  const QUIET = ["came", "went"]; // counted, and listed when they are asked for

  const LOOKS = {
    lost: { look: "failed", symbol: "▼", words: "lost" },
    gained: { look: "passed", symbol: "▲", words: "gained" },
    flaky: { look: "skipped", symbol: "≈", words: "flaky" },
    rejudged: { look: "none", symbol: "◆", words: "rejudged" },
    came: { look: "absent", symbol: "+", words: "came" },
    went: { look: "absent", symbol: "−", words: "went" },
  };
  const SIGNS = { passed: "✓", failed: "×", error: "!", skipped: "–" };

  /** What a change means between these two sides. */
  function meaning(kind, { base, other, several }) {
    return {
      lost: several ? `passes less often in ${other} than in ${base}` : `passes in ${base}, not in ${other}`,
      gained: several ? `passes more often in ${other} than in ${base}` : `passes in ${other}, not in ${base}`,
      flaky: "same submission and same judge, different status",
      rejudged: "same submission, different judge",
      came: `only in ${other}`,
      went: `only in ${base}`,
    }[kind];
  }

  const legend = (data, pair) =>
    h(
      "ul",
      { class: "legend", "aria-label": "What the words mean" },
      data.changes.map((kind) => h("li", null, slop.badge(LOOKS[kind]), ` ${meaning(kind, pair)}`)),
    );

  /** A run's status; of several, how many passed. */
  function outcome(statuses) {
    const counts = Object.entries(statuses);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    if (!total) return h("span", { class: "dim" }, "not there");
    const [status] = counts[0];
    if (total === 1) return slop.badge({ look: status, symbol: SIGNS[status], words: status });
    const passed = statuses.passed ?? 0;
    return h(
      "span",
      { title: counts.map(([status, count]) => `${count} ${status}`).join(", ") },
      `${passed}/${total} passed`,
    );
  }

  const record = (data, pair, number) => {
    const [place, name, group, change, base, other, word] = pair.tests[number];
    return {
      number,
      place,
      checkpoint: pair.checkpoints[place],
      name,
      group,
      change: data.changes[change],
      base,
      other,
      word,
    };
  };

  function chosen(data, pair, state) {
    const sought = (state.q ?? "").toLowerCase();
    const rows = [];
    for (let number = 0; number < pair.tests.length; number += 1) {
      const test = record(data, pair, number);
      const kind = state.change ? test.change === state.change : !QUIET.includes(test.change);
      if (
        kind &&
        (!state.problem || test.checkpoint.problem === state.problem) &&
        (!state.at || test.checkpoint.name === state.at) &&
        test.name.toLowerCase().includes(sought)
      )
        rows.push(test);
    }
    return rows.sort(
      (one, two) => data.changes.indexOf(one.change) - data.changes.indexOf(two.change) || one.number - two.number,
    );
  }

  function choices(data, pair) {
    const kinds = data.changes.map((kind, number) => [kind, `${kind} (${pair.counts[number]})`]);
    const names = (key) => [...new Set(pair.checkpoints.map((one) => one[key]))].map((name) => [name, name]);
    return [
      { text: "Change", key: "change", options: [["", "all but came and went"], ...kinds] },
      { text: "Problem", key: "problem", options: [["", "all problems"], ...names("problem")] },
      { text: "At", key: "at", options: [["", "any checkpoint"], ...names("name")] },
    ];
  }

  /** A test in the address: by names, which mean the same in the next comparison. */
  const linkTo = ({ name, checkpoint }) =>
    hashOf({ ...address(), of: checkpoint.problem, checkpoint: checkpoint.name, test: name });

  function drawRow(test) {
    const cut = test.name.indexOf("::") + 2;
    const file = h("span", { class: "dim" }, test.name.slice(0, cut));
    return h(
      "tr",
      null,
      h("td", null, slop.badge(LOOKS[test.change])),
      h("th", { scope: "row", title: test.name }, h("a", { href: linkTo(test) }, file, test.name.slice(cut))),
      h("td", null, `${test.checkpoint.problem} ${test.checkpoint.name}`),
      h("td", null, test.group),
      h("td", null, outcome(test.base)),
      h("td", null, outcome(test.other)),
    );
  }

  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.closest("tbody")) return;
    const links = [...event.currentTarget.querySelectorAll("tbody a")];
    event.preventDefault();
    links[links.indexOf(event.target) + step]?.focus();
  }

  function list(data, pair, state) {
    const rows = chosen(data, pair, state);
    const said = slop.countShown(rows.length, pair.tests.length);
    if (!rows.length) {
      return [said, h("p", { class: "nothing" }, pair.tests.length ? "No test is like that." : "No test differs.")];
    }
    const box = slop.scrollBox("Tests that differ");
    box.classList.add("differing");
    const bodies = [];
    for (let first = 0; first < rows.length; first += CHUNK) {
      const some = rows.slice(first, first + CHUNK);
      const { body, draw } = slop.lateRows(some, drawRow, { columns: COLUMNS, height: ROW_HEIGHT, box });
      if (!first) draw();
      bodies.push(body);
    }
    const heads = ["Change", "Test", "At", "Group", pair.base, pair.other];
    const head = h(
      "tr",
      null,
      heads.map((text) => h("th", { scope: "col" }, text)),
    );
    box.append(h("table", { class: "results", onkeydown: onKey }, h("thead", null, head), bodies));
    return [said, box];
  }

  const dialog = slop.dialog("detail both", ["test", "of", "checkpoint"]);

  function sidePane(side, first, statuses, run, told, part, word) {
    const named = side.runs.length > 1 && run !== null ? ` ${side.runs[run - first]}` : "";
    const more = "The command below prints all of it.";
    const sections = slop.message.sections(told, part, { level: "h4", of: side.name, more });
    const folder = part.folders[run];
    const show = {
      title: "Print all of it",
      label: `Print all of ${side.name}`,
      text: `slop-code show ${folder} ${word}`,
    };
    const nothing = run === null ? "It has no such test." : "Nothing was kept of what it did.";
    return h(
      "section",
      null,
      h("h3", null, side.name, h("span", { class: "dim" }, named)),
      h("p", null, outcome(statuses)),
      sections ?? h("p", { class: "dim" }, nothing),
      sections && folder && word && slop.message.commands("h4", [show]),
    );
  }

  const sought = (data, pair, { test, of, checkpoint }) =>
    pair.tests
      .map((_, number) => record(data, pair, number))
      .find((one) => one.name === test && one.checkpoint.problem === of && one.checkpoint.name === checkpoint);

  /** The test that the address names, if there is one. */
  async function open(data, pairNumber, state) {
    const pair = data.pairs[pairNumber];
    const test = state.test && sought(data, pair, state);
    if (!test) {
      dialog.hide();
      return;
    }
    const part = await slop.part(`${pairNumber}/${test.place}`);
    const place = part ? part.tests.findIndex(([row]) => row === test.number) : -1;
    if (place < 0 || hashOf(address()) !== hashOf(state)) return; // the reader went elsewhere in the meantime
    const [, base, other] = part.tests[place];
    const told = part.told[place];
    const half = told.length / 2;
    const before = data.sides.slice(0, pairNumber + 1).reduce((sum, side) => sum + side.runs.length, 0);
    dialog.show(
      test.name,
      h(
        "p",
        null,
        slop.badge(LOOKS[test.change]),
        ` at ${test.checkpoint.problem} ${test.checkpoint.name}: ${meaning(test.change, pair)}`,
      ),
      h(
        "div",
        { class: "sides" },
        sidePane(data.sides[0], 0, test.base, base, told.slice(0, half), part, test.word),
        sidePane(data.sides[pairNumber + 1], before, test.other, other, told.slice(half), part, test.word),
      ),
    );
  }

  return { LOOKS, choices, legend, list, open };
})();
