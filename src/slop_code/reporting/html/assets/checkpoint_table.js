// Table of checkpoints: verdict, passed tests of each group, changes and time of each.
"use strict";

slop.checkpointTable = (() => {
  const { h, plural, formatDuration, hashOf } = slop;
  const STATES = { infrastructure_failure: "infrastructure failure", not_evaluated: "not evaluated" };

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

  /** "infrastructure failure: the box could not be started", or the reason alone where it says the state. */
  function withState({ state, reason }) {
    const words = STATES[state] ?? state;
    if (reason?.startsWith(words)) return reason;
    return `${words}: ${reason ?? "no reason was given"}`;
  }

  function row(checkpoint, target, context) {
    const here = { ...target, at: checkpoint.name };
    const head = h("th", { scope: "row" }, checkpoint.name);
    const mark = slop.badge(slop.overview.verdict(checkpoint, context.policy));
    const time = h(
      "td",
      { class: "number" },
      checkpoint.ms ? formatDuration(checkpoint.ms) : "–",
      checkpoint.attempts > 1 && h("span", { class: "dim" }, ` (${checkpoint.attempts} attempts)`),
      checkpoint.not_recorded && h("div", { class: "dim" }, "isolation and provenance: not recorded"),
      checkpoint.agent && h("div", { class: "dim" }, `agent: ${checkpoint.agent}`),
    );
    if (!slop.tests.hasVerdict(checkpoint)) {
      const why = h("div", { class: "reason" }, withState(checkpoint));
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
    const target = { run: run.name, problem: problem.name, policy: context.shownPolicy };
    const isPassed = (checkpoint) => slop.overview.verdict(checkpoint, context.policy).look === "passed";
    const passed = problem.checkpoints.filter(isPassed).length;
    const head = h(
      "th",
      { scope: "rowgroup", colspan: context.groups.length + 5 },
      link(target, problem.name),
      h("span", { class: "dim" }, ` ${passed} of ${plural(problem.checkpoints.length, "checkpoint")} passed`),
    );
    const rows = problem.checkpoints.map((checkpoint) => row(checkpoint, target, context));
    return h("tbody", h("tr", { class: "problem" }, head), rows);
  }

  function draw(run, context) {
    const title = `Checkpoints of ${run.name}`;
    const caption = h("caption", { class: "visually-hidden" }, `${title}: tests passed of all, by group`);
    const heads = ["Checkpoint", "Verdict"];
    const figures = [...context.groups, "Broke", "Recovered", "Time"];
    const bodies = run.problems.map((problem) => body(problem, run, context));
    const table = h("table", { class: "results stacked" }, caption, slop.tableHead(heads, figures), bodies);
    return slop.scrollBox(title, slop.stackable(table, [...heads, ...figures]));
  }

  return { draw };
})();
