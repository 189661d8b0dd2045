// Failures of a checkpoint, grouped by cause: tests that broke first, then new tests that failed.
"use strict";

slop.failures = (() => {
  const { h, plural, hashOf } = slop;
  const MAX_ROWS = 50; // of a list, drawn at once
  const MAX_OPEN = 5; // tests of a cause that are listed at once; more of them are folded
  const ROW_HEIGHT = 34;

  /** By the change of a test, in the order in which they are shown. */
  const KINDS = [
    { change: "b", look: "broke", title: "Broke", words: (count) => `${count} broke` },
    {
      change: "n",
      look: "new",
      title: "New tests that failed",
      words: (count) => `${plural(count, "new test")} failed`,
    },
    {
      change: "u",
      look: "new",
      title: "Failed, with nothing before to compare with",
      words: (count) => `${count} failed with nothing before to compare with`,
    },
    { change: ".", look: "still", title: "Still failing", words: (count) => `${count} still failing` },
  ];

  /** Numbers of the tests that did not pass, by their change. */
  function failing(problem, column) {
    const rows = { b: [], n: [], u: [], ".": [] };
    problem.tests.forEach(({ statuses, changes }, row) => {
      if (slop.tests.failedAt({ statuses }, column)) rows[changes[column]].push(row);
    });
    return rows;
  }

  const isEmpty = (rows) => KINDS.every(({ change }) => !rows[change].length);

  /** "5 broke, 3 new tests failed, 4 still failing" */
  function summary(checkpoint, rows) {
    if (checkpoint.state === "not_evaluated") return "not evaluated";
    if (!slop.tests.hasVerdict(checkpoint)) return "no verdict";
    const present = KINDS.filter(({ change }) => rows[change].length);
    const counts = present.map(({ change, words }) => words(rows[change].length));
    return counts.join(", ") || "not passed";
  }

  /** The first items, and a button that shows the others. */
  function shortList(items, draw, noun) {
    const list = h("ul", { class: "failures" }, items.slice(0, MAX_ROWS).map(draw));
    if (items.length <= MAX_ROWS) return list;
    const showAll = () => {
      list.append(...items.slice(MAX_ROWS).map(draw));
      more.remove();
      list.children[MAX_ROWS].querySelector("a, summary").focus();
    };
    const more = h("button", { type: "button", onclick: showAll }, `Show all ${plural(items.length, noun)}`);
    return [list, more];
  }

  /** A test in one line: its name, which opens it, its group, and the reason. */
  function testRow(index, text, { part, problem, column, target, groups }) {
    const test = problem.tests[part.tests[index][0]];
    const [file, id] = slop.nameParts(test.name);
    const href = hashOf({ ...target, test: test.name, checkpoint: problem.checkpoints[column].name });
    return h(
      "li",
      { class: "failure" },
      h("a", { href, "data-overlay": "" }, h("span", { class: "file" }, file), id),
      h("span", { class: "group" }, groups[Number(test.groups[column])]),
      h("span", { class: "why" }, text),
    );
  }

  const reasonOf = (index, { part }) => slop.message.reason(part.text_numbers[index], part);

  /** A list of tests below their cause, which is folded at first where it is long. */
  function foldedTests({ text, tests, words }, context, open) {
    const { part, problem, column, groups } = context;
    const used = new Set(tests.map((index) => groups[Number(problem.tests[part.tests[index][0]].groups[column])]));
    const details = h(
      "details",
      { class: "cause", "data-fold": text },
      h(
        "summary",
        h("span", { class: "tests" }, plural(tests.length, "test"), words ?? slop.spoken(":")),
        h("span", { class: "group" }, [...used].join(", ")),
        !words && h("span", { class: "why" }, text),
      ),
    );
    const row = (index) => {
      const reason = reasonOf(index, context);
      return testRow(index, reason === text ? null : reason, context);
    };
    const draw = () => details.append(...[shortList(tests, row, "test")].flat());
    details.open = open;
    if (open) draw();
    else details.addEventListener("toggle", draw, { once: true });
    return h("li", details);
  }

  /** Tests of one cause: a row where it is a single test, else a list. */
  function causeRow(cause, context) {
    const [first, ...others] = cause.tests;
    if (others.length) return foldedTests(cause, context, others.length < MAX_OPEN);
    return testRow(first, reasonOf(first, context) ?? cause.text, context);
  }

  /** The tests that the cause of the whole checkpoint explains, in a line. */
  function explained(context) {
    const { explained: tests = [] } = context.part;
    const cause = { text: "of the checkpoint", tests, words: ", for this cause" };
    return tests.length ? h("ul", { class: "failures" }, foldedTests(cause, context, false)) : null;
  }

  /** Causes of the other tests with this change. */
  function causesOf({ change }, { part, problem, column }) {
    const apart = new Set(part.explained);
    const isShown = (index) => problem.tests[part.tests[index][0]].changes[column] === change && !apart.has(index);
    const shown = ([text, tests]) => ({ text: slop.message.oneLine(text), tests: tests.filter(isShown) });
    return part.causes.map(shown).filter(({ tests }) => tests.length);
  }

  function kindList(kind, context) {
    const causes = causesOf(kind, context);
    const count = causes.reduce((sum, { tests }) => sum + tests.length, 0);
    if (!count) return null;
    const list = () => shortList(causes, (cause) => causeRow(cause, context), "cause");
    const attributes = { class: `kind ${kind.look}`, "data-fold": kind.title };
    if (kind.look !== "still") return h("section", attributes, h("h4", `${kind.title} `, h("span", count)), list());
    const folded = h("details", attributes, h("summary", kind.words(count)));
    folded.addEventListener("toggle", () => folded.append(...[list()].flat()), { once: true });
    return folded;
  }

  const lists = (context) => [explained(context), KINDS.map((kind) => kindList(kind, context))];

  /** The cause of the whole checkpoint, and its failures, which are drawn once they are unpacked. `context`: the
      problem, the number of the checkpoint in it, the name of the part, and keys of the address for links. */
  function body(rows, context) {
    const { problem, column, target } = context;
    const checkpoint = problem.checkpoints[column];
    const reason = slop.tests.causeOf(checkpoint);
    const cause = reason && h("p", { class: "alert cause-of-all" }, reason);
    if (!slop.tests.hasVerdict(checkpoint) || isEmpty(rows)) return [cause].filter(Boolean);
    const area = h("div", { class: "failures-area", "aria-busy": "true" }); // hides what follows, which moves
    const shown = rows.b.length + rows.n.length + rows.u.length;
    area.style.minHeight = `${ROW_HEIGHT * (Math.min(MAX_ROWS, shown) + 2)}px`; // the page keeps its length
    const draw = async () => {
      const part = await slop.part(context.name).finally(() => area.removeAttribute("aria-busy"));
      slop.fill(area, part && lists({ ...context, part })).style.removeProperty("min-height");
    };
    draw();
    const filter = { view: "timeline", run: target.run, problem: target.problem, policy: target.policy };
    const all = hashOf({ ...filter, at: checkpoint.name, result: "failing" });
    const link = h("a", { href: all }, `${checkpoint.name} in the timeline`);
    return [cause, area, h("p", { class: "in-timeline" }, link)].filter(Boolean);
  }

  /** Indexes in the part of all tests that did not pass, in the order of the lists. */
  const inOrder = (context) => [
    ...(context.part.explained ?? []),
    ...KINDS.flatMap((kind) => causesOf(kind, context).flatMap(({ tests }) => tests)),
  ];

  return { failing, isEmpty, summary, body, inOrder };
})();
