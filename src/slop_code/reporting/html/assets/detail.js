// Dialog of a test at a checkpoint: its result, texts, commands and history.
"use strict";

slop.detail = (() => {
  const { h, formatDuration, hashOf } = slop;
  const dialog = slop.dialog("detail", ["test", "checkpoint"]);

  function history(test, problem, column) {
    const linkTo = (checkpoint) => hashOf({ ...slop.address(), checkpoint: checkpoint.name });
    const items = problem.checkpoints.map((checkpoint, number) => {
      const { symbol, look, words } = slop.tests.cell(test, number, checkpoint);
      const mark = h("span", { class: `cell ${look}`, "aria-hidden": "true" }, symbol);
      const content = [mark, checkpoint.name, slop.spoken(`: ${words}`)];
      if (test.statuses[number] === ".") return h("li", { class: "dim" }, content);
      return h("li", h("a", { href: linkTo(checkpoint), "aria-current": number === column ? "true" : null }, content));
    });
    return h("ol", { class: "history" }, items);
  }

  function facts(pairs) {
    const known = pairs.filter(([, value]) => value);
    return h("dl", { class: "facts" }, known.map(([name, value]) => h("div", h("dt", name), h("dd", value))));
  }

  function commands(test, checkpoint) {
    if (!checkpoint.path) return null;
    if (!test.shell_name) return h("p", { class: "dim" }, "The name of this test is too long for a command here.");
    const command = (title, name) => ({ title, text: `slop-code ${name} ${checkpoint.path} ${test.shell_name}` });
    const again = checkpoint.not_recorded ? [] : [command("Run this test again", "rerun")];
    return h("section", slop.message.commands("h3", [...again, command("Print all of it", "show")]));
  }

  function reasons(textNumbers, part, reason) {
    const more = "The last command below prints all of it.";
    const sections = slop.message.sections(textNumbers, part, { level: "h3", more });
    return [
      reason && h("p", { class: "alert" }, `There is no verdict for this checkpoint: ${reason}`),
      sections ?? (reason ? null : h("p", { class: "dim" }, "It passed: no texts were stored.")),
    ];
  }

  const CHANGES = { n: "where it is new", b: "where it broke", r: "where it recovered" };

  /** "× failed at larder checkpoint_3, where it broke" */
  function outcome(test, problem, column) {
    const status = slop.tests.WORDS[test.statuses[column]];
    const badge = slop.tests.hasVerdict(problem.checkpoints[column])
      ? slop.statusBadge(status)
      : slop.badge({ look: "none", symbol: "?", words: `no verdict (${status})` });
    const change = CHANGES[test.changes[column]];
    return h("p", badge, ` at ${problem.name} ${problem.checkpoints[column].name}${change ? `, ${change}` : ""}`);
  }

  /** `numbers`: of run and problem; with that of the checkpoint they name the part of the page with the texts. */
  async function show(test, problem, column, numbers, context) {
    const part = await slop.part([...numbers, column].join("/"));
    if (slop.address().test !== test.name) return; // the reader went elsewhere in the meantime
    const row = problem.tests.indexOf(test);
    const index = part ? part.tests.findIndex(([number]) => number === row) : -1;
    if (index < 0) return;
    const [, milliseconds, markers] = part.tests[index];
    const checkpoint = problem.checkpoints[column];
    const [file, id] = slop.tests.nameParts(test.name);
    dialog.show(
      [h("span", { class: "dim" }, file), id],
      outcome(test, problem, column),
      facts([
        ["Group", context.groups[Number(test.groups[column])]],
        ["Duration", formatDuration(milliseconds)],
        ["Markers", part.markers[markers].join(", ")],
      ]),
      reasons(part.text_numbers[index], part, slop.tests.hasVerdict(checkpoint) ? null : checkpoint.reason),
      commands(test, checkpoint),
      h("section", h("h3", "History"), history(test, problem, column)),
    );
  }

  return { show, hide: dialog.hide };
})();
