// The report: its views, and which of them the address asks for.
"use strict";

slop.start(async (data, main, top) => {
  const { h, fill, hashOf, go, address } = slop;
  const VIEWS = [
    ["overview", "Overview"],
    ["timeline", "Timeline"],
    ["charts", "Charts"],
  ];
  let shown = null; // what the address was when the view was drawn

  const named = (list, name) =>
    Math.max(
      0,
      list.findIndex((item) => item.name === name),
    );

  /** What the address means: numbers of run and problem, and those of the policy. */
  function place(state) {
    const run = named(data.runs, state.run);
    const problem = named(data.runs[run].problems, state.problem);
    const policy = Math.max(0, data.policies.indexOf(state.policy));
    const context = {
      policy,
      policyName: data.policies[policy],
      shownPolicy: policy ? data.policies[policy] : null,
      groups: data.groups,
    };
    return { run, problem, context, sheet: data.runs[run].problems[problem] };
  }

  const view = (state) => (VIEWS.some(([name]) => name === state.view) ? state.view : "overview");

  function header() {
    const choose = (event) =>
      go({ ...address(), policy: event.target.value === data.policies[0] ? null : event.target.value });
    const policies = slop.select(data.policies, address().policy ?? data.policies[0], {
      id: "policy",
      onchange: choose,
    });
    slop.frame({
      main,
      top,
      version: data.slop_code,
      nav: h("nav", { "aria-label": "Views", id: "views" }),
      settings: slop.field("Policy", policies),
      sought: toFilter,
    });
  }

  function toFilter() {
    if (view(address()) !== "timeline") go({ ...address(), view: "timeline" });
    return document.getElementById("filter-text");
  }

  function tabs(state) {
    const { run, problem, policy } = state;
    fill(
      document.getElementById("views"),
      VIEWS.map(([name, text]) =>
        h(
          "a",
          { href: hashOf({ view: name, run, problem, policy }), "aria-current": view(state) === name ? "page" : null },
          text,
        ),
      ),
    );
    document.getElementById("policy").value = data.policies[place(state).context.policy];
  }

  /** Which run and problem a view is about, where there are several. */
  function picker(state, { run, problem }) {
    const onRun = (event) => go({ view: state.view, policy: state.policy, run: event.target.value });
    const onProblem = (event) =>
      go({ view: state.view, policy: state.policy, run: state.run, problem: event.target.value });
    const names = (list) => list.map(({ name }) => name);
    const { problems } = data.runs[run];
    return h(
      "div",
      { class: "picker" },
      data.runs.length > 1 &&
        slop.field("Run", slop.select(names(data.runs), data.runs[run].name, { id: "run", onchange: onRun })),
      problems.length > 1 &&
        slop.field(
          "Problem",
          slop.select(names(problems), problems[problem].name, { id: "problem", onchange: onProblem }),
        ),
    );
  }

  function title(text, { run, sheet }) {
    slop.title(`${text}: ${sheet.name} (${data.runs[run].name})`);
    return h("h2", { tabindex: -1 }, `${text}: `, sheet.name, h("span", { class: "dim" }, ` ${data.runs[run].name}`));
  }

  function drawTimeline(state, where) {
    const area = h("div", { id: "timeline" });
    fill(
      main,
      title("Timeline", where),
      picker(state, where),
      slop.timeline.controls(state, where.sheet, data.groups),
      slop.timeline.legend(),
      area,
    );
    fill(area, slop.timeline.draw(where.sheet, where.context, state));
  }

  function drawView(state) {
    const where = place(state);
    slop.charts.clear();
    slop.say("");
    if (view(state) === "overview" || !where.sheet) {
      slop.title(null);
      fill(main, slop.overview.draw(data, where.context));
    } else if (view(state) === "timeline") drawTimeline(state, where);
    else fill(main, title("Charts", where), picker(state, where), slop.charts.draw(where.sheet, where.context));
  }

  function detail(state) {
    const { run, problem, sheet, context } = place(state);
    const test = state.test && sheet?.tests.find(({ name }) => name === state.test);
    const column = test ? sheet.checkpoints.findIndex(({ name }) => name === state.checkpoint) : -1;
    if (column < 0 || test.statuses[column] === ".") slop.detail.hide();
    else slop.detail.show(test, sheet, column, [run, problem], context);
  }

  /** What a view is about; the rest of the address is a filter, or a test that is open. */
  const frame = (state) => JSON.stringify([view(state), state.run, state.problem, state.policy]);
  const filter = ({ group, result, at, q }) => JSON.stringify([group, result, at, q]);

  /** Only what changed is drawn: a filter keeps its fields, opening a test keeps the place in the grid. */
  function draw(state) {
    if (shown)
      slop.keepingFocus(
        () => redraw(state),
        () => main.querySelector("h2"),
      );
    else redraw(state);
    shown = state;
    detail(state);
  }

  function redraw(state) {
    tabs(state);
    if (!shown || frame(shown) !== frame(state)) drawView(state);
    else if (view(state) === "timeline" && filter(shown) !== filter(state)) refilter(state);
  }

  function refilter(state) {
    const where = place(state);
    slop.timeline.setControls(state, where.sheet, data.groups);
    fill(document.getElementById("timeline"), slop.timeline.draw(where.sheet, where.context, state));
  }

  if (!data.runs.some(({ problems }) => problems.length)) throw new Error("there are no results in it");
  header();
  slop.onAddress(draw);
  draw(address());
});
