// Overview: the verdict of each run, and the failures of its checkpoints.
"use strict";

slop.overview = (() => {
  const { h, plural, hashOf, fill } = slop;
  const ROW_HEIGHT = 44;
  const MAX_OPEN = 6; // checkpoints whose failures are shown at once

  /** Verdict of a checkpoint by the policy with this number. */
  const verdict = (checkpoint, policy) =>
    slop.verdictLook(slop.tests.hasVerdict(checkpoint) ? checkpoint.verdicts[policy] === "1" : null);

  const all = (run) =>
    run.problems.flatMap((problem) => problem.checkpoints.map((checkpoint) => ({ problem, checkpoint })));

  const looks = (look, policy) => (checkpoint) => verdict(checkpoint, policy).look === look;
  const hasBroken = (checkpoint) => checkpoint.introduced > 0;

  /** How many checkpoints of a run look so, and the look of the whole. */
  function tally(run, policy) {
    const checkpoints = all(run).map(({ checkpoint }) => checkpoint);
    const count = (look) => checkpoints.filter(looks(look, policy)).length;
    const [passed, failed, none] = ["passed", "failed", "none"].map(count);
    const look = failed ? "failed" : none ? "none" : "passed";
    const broke = checkpoints.reduce((sum, { introduced }) => sum + introduced, 0);
    return { passed, none, broke, look, total: checkpoints.length };
  }

  const VERDICTS = { passed: "PASSED", failed: "NOT PASSED", none: "NO VERDICT" };

  /** "NOT PASSED (all-cases): 1 of 3 checkpoints passed" */
  function headline(run, context) {
    const { passed, none, look, total } = tally(run, context.policy);
    const isWaiting = ({ checkpoint }) => context.isLive && checkpoint.state === "not_evaluated";
    const waiting = all(run).filter(isWaiting).length;
    const again = all(run).filter(({ checkpoint }) => checkpoint.not_looked_at_again).length;
    const { problems } = run;
    const within = (words, test) => {
      const number = problems.filter(({ checkpoints }) => checkpoints.some(test)).length;
      return number && problems.length > 1 ? `; ${words} in ${number} of ${plural(problems.length, "problem")}` : null;
    };
    return h(
      "div",
      { class: `headline ${look}` },
      h(
        "p",
        h("strong", waiting && look === "none" ? "EVALUATION GOES ON" : VERDICTS[look]),
        ` (${context.policyName}): ${passed} of ${plural(total, "checkpoint")} passed`,
        within("not passed", looks("failed", context.policy)),
        within("old tests broke", hasBroken),
        none > waiting && `; ${none - waiting} without a verdict`,
        waiting > 0 && `; ${waiting} not evaluated yet`,
        again > 0 && `; ${again} not looked at again`,
      ),
      run.regraded.map((text) => h("p", text)),
    );
  }

  const isSeveral = ({ problems }) => problems.length > 1;

  /** Keys of the address for the links of a problem. */
  const targetOf = (run, problem, context) => ({
    run: run.name,
    problem: problem.name,
    policy: context.shownPolicy,
    open: context.several ? run.name : null,
  });

  function failuresOf(run, problem, column, context) {
    const rows = slop.failures.failing(problem, column);
    const numbers = [context.runs.indexOf(run), run.problems.indexOf(problem), column];
    const target = { ...targetOf(run, problem, context), at: isSeveral(run) ? problem.checkpoints[column].name : null };
    const part = { problem, column, target, groups: context.groups, name: numbers.join("/") };
    return { rows, body: () => slop.failures.body(rows, part) };
  }

  /** Failures of each checkpoint of the only problem, in order. Those that passed by the policy are folded. */
  function checkpointSections(run, context) {
    const [problem] = run.problems;
    let open = 0;
    return problem.checkpoints.map((checkpoint, column) => {
      const { rows, body } = failuresOf(run, problem, column, context);
      const { look } = verdict(checkpoint, context.policy);
      if (look === "passed" && slop.failures.isEmpty(rows)) return null;
      const text = `: ${slop.failures.summary(checkpoint, rows)}`;
      const passed = look === "passed" && h("span", { class: "dim" }, " (passed by this policy)");
      const title = h("h3", checkpoint.name, h("span", { class: "counts" }, text), passed);
      const attributes = { class: `checkpoint ${look}`, "data-checkpoint": checkpoint.name };
      const folded = h("details", attributes, h("summary", title));
      if (look !== "passed") open += 1;
      folded.open = look !== "passed" && open <= MAX_OPEN;
      if (folded.open) folded.append(...body());
      else folded.addEventListener("toggle", () => folded.append(...body()), { once: true });
      return folded;
    });
  }

  /** The first checkpoint that did not pass, else the first without a verdict; null where all passed. */
  function firstFailing(run, policy) {
    const find = (look) => all(run).find(({ checkpoint }) => looks(look, policy)(checkpoint));
    return find("failed") ?? find("none") ?? null;
  }

  /** The checkpoint in the address, if it is one of this run. */
  function chosen(run, state, context) {
    const isHere = !context.several || state.run === run.name;
    const at = state.at ?? state.checkpoint;
    return isHere && at
      ? all(run).find(({ problem, checkpoint }) => problem.name === state.problem && checkpoint.name === at)
      : undefined;
  }

  /** Below the matrix: the failures of the checkpoint that is chosen. */
  function drawChosen(area, run, context, state) {
    const entry = chosen(run, state, context) ?? firstFailing(run, context.policy);
    const key = entry && JSON.stringify([entry.problem.name, entry.checkpoint.name]);
    if (area.dataset.shown === (key ?? "")) return;
    area.dataset.shown = key ?? "";
    for (const tick of area.parentElement?.querySelectorAll("[data-at]") ?? []) {
      if (tick.dataset.at === key) tick.setAttribute("aria-current", "true");
      else tick.removeAttribute("aria-current");
    }
    if (!entry) return;
    const { problem, checkpoint } = entry;
    const { rows, body } = failuresOf(run, problem, problem.checkpoints.indexOf(checkpoint), context);
    const { look } = verdict(checkpoint, context.policy);
    const isGood = look === "passed" && slop.failures.isEmpty(rows);
    const counts = isGood ? "passed" : slop.failures.summary(checkpoint, rows);
    const title = h("h3", `${problem.name} ${checkpoint.name}`, h("span", { class: "counts" }, `: ${counts}`));
    fill(area, h("div", { class: `checkpoint ${look}` }, title, body()));
  }

  /** The failures of a run: by checkpoint for one problem, below a matrix for several. */
  function failures(run, context, state) {
    if (!isSeveral(run)) {
      const [problem] = run.problems;
      if (!problem) return null;
      const many = problem.checkpoints.length > MAX_OPEN;
      const strip = many && slop.matrix.strip(problem, targetOf(run, problem, context), context);
      return h("div", strip, checkpointSections(run, context));
    }
    const area = h("div", { "data-shown": "none", "data-chosen-of": run.name });
    const marks = slop.matrix.table(run, (problem) => targetOf(run, problem, context), context);
    const box = h("div", { class: "marks-and-failures" }, h("div", marks), area);
    drawChosen(area, run, context, state);
    return box;
  }

  function warnings(run) {
    const items = all(run).flatMap(({ problem, checkpoint }) =>
      checkpoint.warnings.map((text) => [`${problem.name} ${checkpoint.name}`, text]),
    );
    return items.length ? slop.foldedList(plural(items.length, "warning"), items, { fold: "warnings" }) : null;
  }

  /** The table of checkpoints, folded where there are several problems. */
  function figures(run, context) {
    const area = h("div");
    area.style.minHeight = `${ROW_HEIGHT * all(run).length}px`; // the page keeps its length until the table is drawn
    slop.whenNear(area, () => fill(area, slop.checkpointTable.draw(run, context)).style.removeProperty("min-height"));
    const title = "Tests of each checkpoint, by group";
    return isSeveral(run) ? h("details", { class: "figures" }, h("summary", title), area) : [h("h3", title), area];
  }

  function content(run, context, state) {
    const texts = [run.rates, run.agent && `agent: ${run.agent}`].filter(Boolean);
    return [
      headline(run, context),
      failures(run, context, state),
      texts.map((text) => h("p", { class: "rates dim" }, text)),
      figures(run, context),
      warnings(run),
      slop.madeFrom.draw(all(run)),
    ];
  }

  /** A run among others: folded, with its verdict in a line. */
  function foldedRun(run, context) {
    const { passed, none, look, total, broke } = tally(run, context.policy);
    const area = h("div", { class: "inside" });
    const agent = context.agentOf(run) ?? run.name; // without an identity, an agent has the name of its run
    const toggle = (event) => {
      event.preventDefault();
      folded.open = !folded.open;
      const { open } = slop.address();
      if (folded.open) slop.go({ ...slop.address(), open: run.name });
      else if (open === run.name) slop.go({ ...slop.address(), open: null });
    };
    const folded = h(
      "details",
      { class: "run", "data-run-name": run.name },
      h(
        "summary",
        { onclick: toggle },
        h(
          "span",
          h("span", { class: "name" }, run.name),
          agent !== run.name && h("span", { class: "dim" }, ` ${agent}`),
        ),
        h("span", slop.badge(slop.verdictLook(look === "none" ? null : look === "passed"))),
        h("span", { class: "number" }, `${passed} of ${plural(total, "checkpoint")}`, slop.spoken(" passed")),
        h("span", { class: "number" }, broke > 0 && `${broke} broke`),
        h("span", { class: "number" }, none > 0 && `${none} without a verdict`),
        h("span", slop.sparkline.line(run.problems, context.policy, 340)),
      ),
      area,
    );
    folded.addEventListener("toggle", () => fill(area, content(run, context, slop.address())), { once: true });
    return folded;
  }

  /** `context`: the number and the name of the policy, the groups, and the runs. */
  function draw(context, state) {
    const [first] = context.runs;
    if (!context.several) {
      return h("section", { class: "run" }, h("h2", { tabindex: -1 }, first.name), content(first, context, state));
    }
    const runs = context.runs.map((run) => foldedRun(run, context));
    return h("section", { class: "runs" }, h("h2", { tabindex: -1 }, "Runs"), runs);
  }

  const find = (main, name, value) =>
    [...main.querySelectorAll(`[${name}]`)].find((element) => element.getAttribute(name) === value);

  function unfold(folded, focus) {
    if (!folded || folded.open) return;
    folded.open = true;
    folded.scrollIntoView({ block: "start" });
    if (focus) folded.querySelector("summary").focus({ preventScroll: true });
  }

  /** Shows what the address names: a run, and the failures of a checkpoint in it. `focus`: moves the focus there. */
  function update(main, context, state, { focus }) {
    if (context.several) unfold(find(main, "data-run-name", state.open), focus);
    for (const area of main.querySelectorAll("[data-chosen-of]")) {
      drawChosen(area, context.runs.find(({ name }) => name === area.dataset.chosenOf), context, state);
    }
    if (!context.several) unfold(find(main, "data-checkpoint", state.at ?? state.checkpoint), focus && !state.test);
  }

  return { draw, update, verdict };
})();
