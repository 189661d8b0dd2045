// The tests that differ: which of them a filter leaves, and one of them with both sides next to each other.
"use strict";

slop.differing = (() => {
  const { h, fill, many, hashOf, go, address } = slop;
  const CHUNK = 60;
  const ROW_HEIGHT = 34; // as in the style: rows that are not drawn yet take the room that they will take
  const LEFT_OUT = -1;
  const QUIET = ["came", "went"]; // counted, and listed when they are asked for

  const LOOKS = {
    lost: ["failed", "▼", "lost"], gained: ["passed", "▲", "gained"], flaky: ["skipped", "≈", "flaky"],
    rejudged: ["none", "◆", "rejudged"], came: ["absent", "+", "came"], went: ["absent", "−", "went"],
  };
  const STATUSES = { passed: ["passed", "✓"], failed: ["failed", "×"], error: ["error", "!"], skipped: ["skipped", "–"] };
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

  const badge = ([look, symbol, words]) =>
    h("span", { class: `badge ${look}` }, h("span", { "aria-hidden": "true" }, symbol), ` ${words}`);

  const legend = (data, pair) => h("ul", { class: "legend", "aria-label": "What the words mean" },
    data.changes.map((kind) => h("li", null, badge(LOOKS[kind]), ` ${meaning(kind, pair)}`)));

  /** A run's status; of several, how many passed. */
  function outcome(statuses) {
    const counts = Object.entries(statuses);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    if (!total) return h("span", { class: "dim" }, "not there");
    if (total === 1) return badge([...STATUSES[counts[0][0]], counts[0][0]]);
    const passed = statuses.passed ?? 0;
    return h("span", { title: counts.map(([status, count]) => `${count} ${status}`).join(", ") }, `${passed}/${total} passed`);
  }

  const record = (data, pair, number) => {
    const [place, name, group, change, base, other, word] = pair.tests[number];
    return { number, place, checkpoint: pair.checkpoints[place], name, group, change: data.changes[change], base, other, word };
  };

  function chosen(data, pair, state) {
    const sought = (state.q ?? "").toLowerCase();
    const rows = [];
    for (let number = 0; number < pair.tests.length; number += 1) {
      const test = record(data, pair, number);
      const kind = state.change ? test.change === state.change : !QUIET.includes(test.change);
      if (kind && (!state.problem || test.checkpoint.problem === state.problem)
        && (!state.at || test.checkpoint.name === state.at) && test.name.toLowerCase().includes(sought)) rows.push(test);
    }
    return rows.sort((one, two) => data.changes.indexOf(one.change) - data.changes.indexOf(two.change) || one.number - two.number);
  }

  function controls(data, pair, state) {
    const set = (key) => (event) => go({ ...address(), [key]: event.target.value });
    const type = (event) => go({ ...address(), q: event.target.value }, { replace: true });
    const field = (text, control) => h("label", { class: "field" }, `${text} `, control);
    const names = (key) => [...new Set(pair.checkpoints.map((checkpoint) => checkpoint[key]))].map((name) => [name, name]);
    const kinds = data.changes.map((kind, number) => [kind, `${kind} (${pair.counts[number]})`]);
    return h("form", { class: "filters", role: "search", "aria-label": "Filter tests", onsubmit: (event) => event.preventDefault() },
      field("Change", slop.select([["", "all but came and went"], ...kinds], state.change, { id: "filter-change", onchange: set("change") })),
      field("Problem", slop.select([["", "all problems"], ...names("problem")], state.problem, { id: "filter-problem", onchange: set("problem") })),
      field("At", slop.select([["", "any checkpoint"], ...names("name")], state.at, { id: "filter-at", onchange: set("at") })),
      field("Name", h("input", { type: "search", id: "filter-text", value: state.q ?? "", placeholder: "part of a name", autocomplete: "off", spellcheck: "false", oninput: type })),
      h("button", { type: "button", onclick: () => go({ pair: address().pair }) }, "Clear"));
  }

  function drawRow(test) {
    const cut = test.name.indexOf("::") + 2;
    const href = hashOf({ ...address(), test: test.number });
    return h("tr", null, h("td", null, badge(LOOKS[test.change])),
      h("th", { scope: "row", title: test.name }, h("a", { href }, h("span", { class: "dim" }, test.name.slice(0, cut)), test.name.slice(cut))),
      h("td", null, `${test.checkpoint.problem} ${test.checkpoint.name}`), h("td", null, test.group),
      h("td", null, outcome(test.base)), h("td", null, outcome(test.other)));
  }

  /** The first rows are there at once; those that have not come near are a single empty row of the same height. */
  function chunk(rows, box, first) {
    if (first) return h("tbody", null, rows.map(drawRow));
    const room = h("td", { colspan: 6 });
    room.style.height = `${rows.length * ROW_HEIGHT}px`;
    const body = h("tbody", null, h("tr", { "aria-hidden": "true" }, room));
    slop.whenNear(body, () => fill(body, rows.map(drawRow)), box);
    return body;
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
    const count = rows.length === pair.tests.length ? many(rows.length, "test") : `${rows.length} of ${many(pair.tests.length, "test")}`;
    slop.say(`${count} shown`);
    const said = h("p", { class: "left", id: "left" }, `${count} shown`);
    if (!rows.length) return [said, h("p", { class: "nothing" }, pair.tests.length ? "No test is like that." : "No test differs.")];
    const box = slop.scrollBox("Tests that differ");
    box.classList.add("differing");
    const chunks = [];
    for (let first = 0; first < rows.length; first += CHUNK) chunks.push(chunk(rows.slice(first, first + CHUNK), box, !first));
    const heads = ["Change", "Test", "At", "Group", pair.base, pair.other];
    box.append(h("table", { class: "results", onkeydown: onKey },
      h("thead", null, h("tr", null, heads.map((text) => h("th", { scope: "col" }, text)))), chunks));
    return [said, box];
  }

  const dialog = h("dialog", { class: "detail both", "aria-labelledby": "detail-name" });
  dialog.addEventListener("close", () => { if (address().test) go({ ...address(), test: null }); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  function textSection(title, side, place, part, coloured) {
    if (place === null) return null;
    const cut = place === LEFT_OUT || Array.isArray(part.texts[place]);
    return [h("h4", null, title),
      place !== LEFT_OUT && slop.message.pre(part.texts[place], `${title}: ${side}`, coloured),
      cut && h("p", { class: "dim" }, "Not all of it is here. The command below prints it.")];
  }

  function sidePane(side, first, statuses, run, texts, part, word) {
    const named = side.runs.length > 1 && run !== null ? ` ${side.runs[run - first]}` : "";
    const sections = [
      textSection("Failure", side.name, texts[0], part, true),
      textSection("What was run", side.name, texts[1], part, false),
      textSection("Captured output", side.name, texts[2], part, false),
    ];
    const told = sections.some(Boolean);
    const folder = part.folders[run];
    return h("section", null, h("h3", null, side.name, h("span", { class: "dim" }, named)), h("p", null, outcome(statuses)),
      told ? sections : h("p", { class: "dim" }, run === null ? "It has no such test." : "Nothing was kept of what it did."),
      told && folder && word && [h("h4", null, "Print all of it"), slop.command(`Print all of ${side.name}`, `slop-code show ${folder} ${word}`)]);
  }

  async function show(data, pairNumber, number) {
    const pair = data.pairs[pairNumber];
    const test = record(data, pair, number);
    const part = await slop.part(`${pairNumber}/${test.place}`);
    const told = part?.tests.find(([row]) => row === number);
    if (!told || Number(address().test) !== number) return; // the reader went elsewhere in the meantime
    const sides = [data.sides[0], data.sides[pairNumber + 1]];
    const before = data.sides.slice(0, pairNumber + 1).reduce((sum, side) => sum + side.runs.length, 0);
    fill(dialog,
      h("header", null, h("h2", { id: "detail-name", tabindex: -1 }, test.name),
        h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close")),
      h("div", { class: "content" },
        h("p", null, badge(LOOKS[test.change]), ` at ${test.checkpoint.problem} ${test.checkpoint.name}: ${meaning(test.change, pair)}`),
        h("div", { class: "sides" },
          sidePane(sides[0], 0, test.base, told[1], told.slice(3, 6), part, test.word),
          sidePane(sides[1], before, test.other, told[2], told.slice(6, 9), part, test.word))));
    if (!dialog.isConnected) document.body.append(dialog);
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("h2").focus();
  }

  const hide = () => { if (dialog.open) dialog.close(); };

  return { LOOKS, badge, controls, legend, list, show, hide };
})();
