// Overview: verdicts of all checkpoints, and the first failures.
"use strict";

slop.overview = (() => {
  const { h, plural, formatDuration, hashOf } = slop;
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const ROW_HEIGHT = 44;
  const STATES = { infrastructure_failure: "infrastructure failure", not_evaluated: "not evaluated" };

  /** Verdict of a checkpoint by the policy with this number. */
  const verdict = (checkpoint, policy) =>
    slop.verdictLook(slop.tests.hasVerdict(checkpoint) ? checkpoint.verdicts[policy] === "1" : null);

  const all = (run) =>
    run.problems.flatMap((problem) => problem.checkpoints.map((checkpoint) => ({ problem, checkpoint })));

  const looks = (look, policy) => (checkpoint) => verdict(checkpoint, policy).look === look;
  const broke = (checkpoint) => checkpoint.introduced > 0;

  /** "; checkpoint_2 has no verdict", about earlier checkpoints. */
  function unknownBefore(problem, checkpoint) {
    const before = problem.checkpoints.slice(0, problem.checkpoints.indexOf(checkpoint));
    const unknown = before.filter((checkpoint) => !slop.tests.hasVerdict(checkpoint));
    if (!unknown.length) return null;
    return unknown.length > 1
      ? `; ${plural(unknown.length, "checkpoint")} before have no verdict`
      : `; ${unknown[0].name} has no verdict`;
  }

  /** The first checkpoint that did not pass, and the first where old tests broke. `prefix`: before its name. */
  function firsts(problem, target, context, prefix = "") {
    const first = problem.checkpoints.find(looks("failed", context.policy));
    const regressed = problem.checkpoints.find(broke);
    const label = ({ name }) => `${prefix}${name}`;
    return [
      first && [
        link({ ...target, at: first.name, result: "failing" }, `First not passed: ${label(first)}`),
        ` (${plural(sum(first.total) - sum(first.passed), "test")} did not pass)`,
        unknownBefore(problem, first),
      ],
      regressed && [
        link(
          { ...target, at: regressed.name, result: "broke" },
          `Old tests first broke at ${label(regressed)}: ${regressed.introduced}`,
        ),
        unknownBefore(problem, regressed),
      ],
    ].filter(Boolean);
  }

  const targetOf = (run, problem, context) => ({ run: run.name, problem: problem.name, policy: context.shownPolicy });

  /** Number of checkpoints that passed; first failures of one problem, number of failing problems of several. */
  function headline(run, context) {
    const checkpoints = all(run).map(({ checkpoint }) => checkpoint);
    const count = (look) => checkpoints.filter(looks(look, context.policy)).length;
    const look = count("failed") ? "failed" : count("none") ? "none" : "passed";
    const again = checkpoints.filter((checkpoint) => checkpoint.not_looked_at_again).length;
    const { problems } = run;
    const within = (words, test) => {
      const number = problems.filter(({ checkpoints }) => checkpoints.some(test)).length;
      return number && problems.length > 1 ? `; ${words} in ${number} of ${plural(problems.length, "problem")}` : null;
    };
    const only = problems.length === 1 ? problems : [];
    const facts = only.flatMap((problem) =>
      firsts(problem, targetOf(run, problem, context), context, `${problem.name} `),
    );
    return h(
      "div",
      { class: `headline ${look}` },
      h(
        "p",
        `${count("passed")} of ${plural(checkpoints.length, "checkpoint")} passed (${context.policyName})`,
        within("not passed", looks("failed", context.policy)),
        within("old tests broke", broke),
        count("none") > 0 && `; ${count("none")} without a verdict`,
        again > 0 && `; ${again} not looked at again`,
      ),
      facts.map((fact) => h("p", fact)),
      run.regraded.map((text) => h("p", text)),
    );
  }

  const link = (target, ...children) => h("a", { href: hashOf({ view: "timeline", ...target }) }, children);

  /** "3/4" with a bar; the figure links to the tests that did not pass. */
  function counts(checkpoint, group, target) {
    const [passed, total] = [checkpoint.passed[group], checkpoint.total[group]];
    if (!total) return slop.emptyCell("none");
    const text = `${passed}/${total}`;
    const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span"));
    bar.firstChild.style.width = `${(100 * passed) / total}%`;
    return h(
      "td",
      { class: `number ${passed === total ? "whole" : "lacking"}` },
      passed === total
        ? text
        : link({ ...target, result: "failing" }, text, slop.spoken(": show those that did not pass")),
      bar,
    );
  }

  function changed(count, kind, symbol, target) {
    const href = hashOf({ view: "timeline", ...target, result: kind });
    const words = ` ${count === 1 ? "test" : "tests"} ${kind} here: show them`;
    return slop.countCell(count, { look: kind, symbol, href, words });
  }

  /** Why the verdict is an earlier one, which the last evaluation has not looked at. */
  const kept = ({ not_looked_at_again: reason }) =>
    reason && h("div", { class: "reason" }, `not looked at again: ${reason}`);

  /** What each regrade of the checkpoint changed. */
  const regraded = (checkpoint) =>
    checkpoint.regraded.map(({ text, tests }) =>
      tests.length
        ? h(
            "details",
            { class: "reason" },
            h("summary", `regraded: ${text}`),
            h("ul", tests.map((test) => h("li", test))),
          )
        : h("div", { class: "reason" }, `regraded: ${text}`),
    );

  function row(checkpoint, target, context) {
    const here = { ...target, at: checkpoint.name };
    const head = h("th", { scope: "row" }, checkpoint.name);
    const mark = slop.badge(verdict(checkpoint, context.policy));
    const time = h(
      "td",
      { class: "number" },
      checkpoint.ms ? formatDuration(checkpoint.ms) : "–",
      checkpoint.attempts > 1 && h("span", { class: "dim" }, ` (${checkpoint.attempts} attempts)`),
      checkpoint.python && h("div", { class: "dim" }, `Python ${checkpoint.python}`),
      checkpoint.not_recorded && h("div", { class: "dim" }, "isolation and provenance: not recorded"),
      checkpoint.agent && h("div", { class: "dim" }, `agent: ${checkpoint.agent}`),
    );
    if (!slop.tests.hasVerdict(checkpoint)) {
      const reason = `${STATES[checkpoint.state] ?? checkpoint.state}: ${checkpoint.reason ?? "no reason was given"}`;
      const why = h("div", { class: "reason" }, reason);
      const cell = h("td", { colspan: context.groups.length + 3 }, mark, why, regraded(checkpoint));
      return h("tr", { class: "apart" }, head, cell, time);
    }
    const nothing = () => slop.emptyCell("nothing to compare with");
    return h(
      "tr",
      head,
      h("td", mark, kept(checkpoint), regraded(checkpoint)),
      context.groups.map((_, group) => counts(checkpoint, group, { ...here, group: context.groups[group] })),
      checkpoint.since === null
        ? [nothing(), nothing()]
        : [changed(checkpoint.introduced, "broke", "▼", here), changed(checkpoint.repaired, "recovered", "▲", here)],
      time,
    );
  }

  function body(problem, run, context) {
    const target = targetOf(run, problem, context);
    const passed = problem.checkpoints.filter(looks("passed", context.policy)).length;
    const head = h(
      "th",
      { scope: "rowgroup", colspan: context.groups.length + 5 },
      link(target, problem.name),
      h("span", { class: "dim" }, ` ${passed} of ${plural(problem.checkpoints.length, "checkpoint")} passed`),
      run.problems.length > 1 && firsts(problem, target, context).map((fact) => h("div", { class: "first" }, fact)),
    );
    const rows = problem.checkpoints.map((checkpoint) => row(checkpoint, target, context));
    return h("tbody", h("tr", { class: "problem" }, head), rows);
  }

  function table(run, context) {
    const title = `Checkpoints of ${run.name}`;
    const caption = h("caption", { class: "visually-hidden" }, `${title}: tests passed of all, by group`);
    const head = slop.tableHead(["Checkpoint", "Verdict"], [...context.groups, "Broke", "Recovered", "Time"]);
    const bodies = run.problems.map((problem) => body(problem, run, context));
    return slop.scrollBox(title, h("table", { class: "results" }, caption, head, bodies));
  }

  function warnings(run) {
    const items = all(run).flatMap(({ problem, checkpoint }) =>
      checkpoint.warnings.map((text) => [`${problem.name} ${checkpoint.name}`, text]),
    );
    return items.length ? slop.foldedList(plural(items.length, "warning"), items) : null;
  }

  function section(run, context) {
    const area = h("div");
    area.style.minHeight = `${ROW_HEIGHT * all(run).length}px`; // the page keeps its length until the table is drawn
    slop.whenNear(area, () => slop.fill(area, table(run, context), warnings(run)).style.removeProperty("min-height"));
    const texts = [run.rates, run.agent && `agent: ${run.agent}`].filter(Boolean);
    const facts = texts.map((text) => h("p", { class: "dim" }, text));
    return h("section", { class: "run" }, h("h2", { tabindex: -1 }, run.name), headline(run, context), ...facts, area);
  }

  /** `context`: the number and the name of the policy, and the groups. */
  const draw = (data, context) => data.runs.map((run) => section(run, context));

  return { draw, verdict };
})();
