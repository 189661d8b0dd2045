// Dialog of a test at a checkpoint: why it did not pass, what changed, its texts, commands and history; and the way to
// the next and the previous failure.
"use strict";

slop.detail = (() => {
  const { h, formatDuration, hashOf, go } = slop;
  const dialog = slop.dialog("detail", ["test", "checkpoint"]);
  const STEPS = { j: 1, ArrowDown: 1, ArrowRight: 1, k: -1, ArrowUp: -1, ArrowLeft: -1 };
  let shown = { name: null, states: new Map() }; // the open test, and the addresses of its neighbours by step

  const linkTo = (checkpoint) => hashOf({ ...slop.address(), checkpoint: checkpoint.name });

  function history(test, problem, column) {
    const items = problem.checkpoints.map((checkpoint, number) => {
      const { symbol, look, words } = slop.tests.cell(test, number, checkpoint);
      const mark = h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol);
      const content = [mark, checkpoint.name, slop.spoken(`: ${words}`)];
      if (test.statuses[number] === ".") return h("li", { class: "dim" }, content);
      return h("li", h("a", { href: linkTo(checkpoint), "aria-current": number === column ? "true" : null }, content));
    });
    return h("section", h("h3", "History"), h("ol", { class: "history" }, items));
  }

  function commands(test, checkpoint) {
    if (!checkpoint.path) return null;
    if (!test.shell_name) return h("p", { class: "dim" }, "The name of this test is too long for a command here.");
    const command = (title, name) => ({ title, text: `slop-code ${name} ${checkpoint.path} ${test.shell_name}` });
    const again = checkpoint.not_recorded ? [] : [command("Run this test again", "rerun")];
    return h("section", slop.message.commands("h3", [...again, command("Print all of it", "show")]));
  }

  const CHANGES = { n: ", where it is new", b: ", where it broke", r: ", where it recovered" };

  /** ", still failing since it broke at checkpoint_2" */
  function since(test, problem, column) {
    const change = CHANGES[test.changes[column]];
    if (change || !slop.tests.failedAt(test, column)) return change;
    const broke = problem.checkpoints[slop.tests.brokeAt(test, column)];
    if (broke) return [", still failing since it broke at ", h("a", { href: linkTo(broke) }, broke.name)];
    return test.changes[column] === "." ? ", still failing: it never passed" : null;
  }

  /** "× failed at larder checkpoint_3, where it broke", and the line that says why. */
  function outcome(test, problem, column, reason) {
    const status = slop.tests.WORDS[test.statuses[column]];
    const checkpoint = problem.checkpoints[column];
    const known = slop.tests.hasVerdict(checkpoint);
    const badge = known
      ? slop.statusBadge(status)
      : slop.badge({ look: "none", symbol: "?", words: `no verdict (${status})` });
    const cause = slop.tests.causeOf(checkpoint);
    const about = known ? "The whole checkpoint" : "There is no verdict for this checkpoint";
    return [
      h("p", { class: "outcome" }, badge, ` at ${problem.name} ${checkpoint.name}`, since(test, problem, column)),
      reason && reason !== status && h("p", { class: "why" }, reason),
      cause && slop.tests.failedAt(test, column) && h("p", { class: "alert" }, `${about}: ${cause}`),
    ];
  }

  /** Draws the code that changed where the test broke, by the texts of the failure; null for a test that passed or
      never did. */
  async function changes(test, problem, column, numbers) {
    const broke = slop.tests.failedAt(test, column) ? slop.tests.brokeAt(test, column) : -1;
    if (broke < 0) return () => null;
    const diff = await slop.part([...numbers, broke, "diff"].join("/"));
    const { since, name } = problem.checkpoints[broke];
    return (failure) => slop.codeDiff.draw(diff, since, name, failure);
  }

  /** Failures of the list that the reader came from: the filtered rows, or the checkpoint's failures by cause. */
  function failures(problem, column, part, context) {
    const state = slop.address();
    if (state.view === "timeline") return slop.timeline.failures(problem, context, state);
    const indexes = slop.failures.inOrder({ part, problem, column });
    return indexes.map((index) => ({ test: problem.tests[part.tests[index][0]], column }));
  }

  /** Buttons to the neighbours of a test in a list of failures, and its position there. */
  function steps(test, problem, list) {
    const position = list.findIndex((failure) => failure.test === test);
    const stateOf = (failure) =>
      failure && { ...slop.address(), test: failure.test.name, checkpoint: problem.checkpoints[failure.column].name };
    const neighbours = position < 0 ? [null, list[0]] : [list[position - 1], list[position + 1]];
    shown = { name: test.name, states: new Map([[-1, stateOf(neighbours[0])], [1, stateOf(neighbours[1])]]) };
    if (!list.length) return null;
    const button = (step, text, key) =>
      h(
        "button",
        {
          type: "button",
          id: `failure-${step}`,
          title: `${text} failure (${key})`,
          "aria-label": `${text} failure`,
          "aria-describedby": "detail-name",
          "aria-keyshortcuts": key,
          "aria-disabled": shown.states.get(step) ? null : "true",
          onclick: () => move(step),
        },
        text,
      );
    const count = position < 0 ? slop.plural(list.length, "failure") : `${position + 1} of ${list.length}`;
    return h(
      "div",
      { class: "steps", role: "group", "aria-label": "Failures" },
      button(-1, "Previous", "k"),
      h("span", { class: "position" }, count),
      button(1, "Next", "j"),
      h("span", { class: "keys", "aria-hidden": "true" }, "keys: j, k, arrows"),
    );
  }

  function move(step) {
    const state = shown.states.get(step);
    if (state) go(state, { replace: true });
  }

  function onKey(event) {
    const step = STEPS[event.key];
    const arrow = event.key.startsWith("Arrow");
    if (!step || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest(arrow ? "input, select, textarea, pre, code" : "input, select, textarea")) return;
    if (![...shown.states.values()].some(Boolean)) return;
    event.preventDefault();
    move(step);
  }

  dialog.element.addEventListener("keydown", onKey);
  dialog.element.addEventListener("close", () => slop.grid.reveal(shown.name));

  /** `context.numbers`: of run and problem; with that of the checkpoint they name the part with the texts. */
  async function show(test, problem, column, context) {
    const { numbers } = context;
    const state = hashOf(slop.address());
    const [part, drawChanges] = await Promise.all([
      slop.part([...numbers, column].join("/")),
      changes(test, problem, column, numbers),
    ]);
    if (hashOf(slop.address()) !== state) return; // the reader went elsewhere in the meantime
    const index = part ? slop.message.indexOf(part, problem.tests.indexOf(test)) : -1;
    if (index < 0) return;
    const [, milliseconds, markers] = part.tests[index];
    const textNumbers = part.text_numbers[index];
    const changed = drawChanges(slop.message.reasonAndCalls(textNumbers, part));
    const more = "The last command below prints all of it.";
    const texts = slop.message.sections(textNumbers, part, { level: "h3", more, changes: changed });
    const [file, id] = slop.nameParts(test.name);
    dialog.show(
      {
        name: [h("span", { class: "dim" }, file), id],
        bar: steps(test, problem, failures(problem, column, part, context)),
      },
      outcome(test, problem, column, slop.message.reason(textNumbers, part)),
      slop.facts([
        ["Run", context.several && context.runs[numbers[0]].name],
        ["Group", context.groups[Number(test.groups[column])]],
        ["Duration", formatDuration(milliseconds)],
        ["Markers", part.markers[markers].join(", ")],
      ]),
      texts ?? changed ?? h("p", { class: "dim" }, "It passed: no texts were stored."),
      commands(test, problem.checkpoints[column]),
      history(test, problem, column),
    );
  }

  return { show, hide: dialog.hide };
})();
