// Matrix of problems and checkpoints: a small mark for each, which shows the failures of that checkpoint.
"use strict";

slop.matrix = (() => {
  const { h, plural, hashOf } = slop;
  const LEGEND = [
    ["passed", "✓", "passed"],
    ["broke", "▼", "not passed, old tests broke"],
    ["failed", "×", "not passed"],
    ["none", "?", "no verdict"],
  ];

  function lookOf(checkpoint, policy) {
    const verdict = slop.overview.verdict(checkpoint, policy);
    if (verdict.look !== "failed" || !checkpoint.introduced) return verdict;
    return { look: "broke", symbol: "▼", words: `not passed, ${plural(checkpoint.introduced, "test")} broke` };
  }

  /** A mark that links to the failures of a checkpoint. */
  function mark(checkpoint, target, policy, label) {
    const { look, symbol, words } = lookOf(checkpoint, policy);
    return h(
      "a",
      {
        class: `tick ${look}`,
        href: hashOf({ ...target, at: checkpoint.name }),
        title: `${checkpoint.name}: ${words}`,
        "data-overlay": "",
        "data-at": JSON.stringify([target.problem, checkpoint.name]),
      },
      slop.sign(label ?? symbol),
      slop.spoken(`${target.problem} ${checkpoint.name}: ${words}`),
    );
  }

  const legend = () => {
    const sign = (look, symbol) => h("span", { class: `tick ${look}`, "aria-hidden": "true" }, symbol);
    return slop.legend("What the marks mean", LEGEND.map(([look, symbol, words]) => [sign(look, symbol), words]));
  };

  /** Heads of the columns, as short as they can be; numbers where the problems name their checkpoints differently. */
  function heads(problems, count) {
    const names = (number) => new Set(problems.map(({ checkpoints }) => checkpoints[number]?.name).filter(Boolean));
    const common = Array.from({ length: count }, (_, number) => {
      const [name, ...others] = names(number);
      return others.length ? "" : name;
    });
    return slop.tests.shortNames(common);
  }

  function row(problem, target, context, columns) {
    const isPassed = (checkpoint) => slop.overview.verdict(checkpoint, context.policy).look === "passed";
    const passed = problem.checkpoints.filter(isPassed);
    const marks = problem.checkpoints.map((checkpoint) => h("td", mark(checkpoint, target, context.policy)));
    const href = hashOf({ view: "timeline", run: target.run, problem: target.problem, policy: target.policy });
    return h(
      "tr",
      h("th", { scope: "row" }, h("a", { href }, problem.name, slop.spoken(": timeline"))),
      marks,
      columns > marks.length && h("td", { colspan: columns - marks.length }),
      h("td", { class: "passed-of" }, `${passed.length} of ${problem.checkpoints.length} passed`),
      h("td", slop.sparkline.line([problem], context.policy)),
    );
  }

  /** `targetOf`: the keys of the address of a problem. */
  function table(run, targetOf, context) {
    const columns = Math.max(...run.problems.map(({ checkpoints }) => checkpoints.length));
    const title = `Problems and checkpoints of ${run.name}`;
    const head = (name) => h("th", { scope: "col" }, slop.spoken("checkpoint "), name);
    const short = heads(run.problems, columns).map(head);
    const figures = ["Checkpoints", "Tests passed"].map((text) => h("th", { scope: "col", class: "passed-of" }, text));
    return [
      slop.scrollBox(
        title,
        h(
          "table",
          { class: "matrix" },
          h("caption", { class: "visually-hidden" }, title),
          h("thead", h("tr", h("th", { scope: "col" }, "Problem"), short, figures)),
          h("tbody", run.problems.map((problem) => row(problem, targetOf(problem), context, columns))),
        ),
      ),
      legend(),
    ];
  }

  /** Marks of one problem in a line, for a run of many checkpoints. */
  function strip(problem, target, context) {
    const names = slop.tests.shortNames(problem.checkpoints.map(({ name }) => name));
    const marks = problem.checkpoints.map((checkpoint, number) =>
      h("li", mark(checkpoint, target, context.policy, names[number])),
    );
    return h("ol", { class: "strip", "aria-label": `Checkpoints of ${problem.name}` }, marks);
  }

  return { table, strip };
})();
