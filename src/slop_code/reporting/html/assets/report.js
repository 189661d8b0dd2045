// Report of runs: its views, and the choice of the view by the address.
"use strict";

slop.start(async (data, main, top) => {
  const { h, fill, hashOf, go, address } = slop;
  const VIEWS = { overview: "Overview", timeline: "Timeline", charts: "Charts" };
  let shown = null; // the address when the view was drawn

  const named = (list, name) => Math.max(0, list.findIndex((item) => item.name === name));

  /** The run, the problem and the policy in the address, by number. */
  function selection(state) {
    const runNumber = named(data.runs, state.run);
    const problemNumber = named(data.runs[runNumber].problems, state.problem);
    const policy = Math.max(0, data.policies.indexOf(state.policy));
    const context = {
      policy,
      policyName: data.policies[policy],
      shownPolicy: policy ? data.policies[policy] : null,
      groups: data.groups,
    };
    return { runNumber, problemNumber, context, problem: data.runs[runNumber].problems[problemNumber] };
  }

  const view = (state) => (Object.hasOwn(VIEWS, state.view) ? state.view : "overview");

  function header() {
    const choose = (event) =>
      go({ ...address(), policy: event.target.value === data.policies[0] ? null : event.target.value });
    const chosen = address().policy ?? data.policies[0];
    const policies = slop.select(data.policies, chosen, { id: "policy", onchange: choose });
    slop.frame({
      main,
      top,
      version: data.slop_code,
      nav: h("nav", { "aria-label": "Views", id: "views" }),
      settings: slop.field("Policy", policies),
      searchField: toFilter,
    });
  }

  function toFilter() {
    if (view(address()) !== "timeline") go({ ...address(), view: "timeline" });
    return document.getElementById("filter-text");
  }

  function tabs(state) {
    const { run, problem, policy } = state;
    const link = ([name, text]) => {
      const current = view(state) === name ? "page" : null;
      return h("a", { href: hashOf({ view: name, run, problem, policy }), "aria-current": current }, text);
    };
    fill(document.getElementById("views"), Object.entries(VIEWS).map(link));
    document.getElementById("policy").value = data.policies[selection(state).context.policy];
  }

  /** Fields that choose run and problem, where there are several. */
  function picker({ view, policy, run }, { runNumber, problemNumber }) {
    const field = (text, key, list, number, kept) => {
      const onchange = (event) => go({ ...kept, [key]: event.target.value });
      const names = list.map(({ name }) => name);
      return list.length > 1 && slop.field(text, slop.select(names, names[number], { id: key, onchange }));
    };
    const { problems } = data.runs[runNumber];
    return h(
      "div",
      { class: "picker" },
      field("Run", "run", data.runs, runNumber, { view, policy }),
      field("Problem", "problem", problems, problemNumber, { view, policy, run }),
    );
  }

  function title(text, { runNumber, problem }) {
    const run = data.runs[runNumber].name;
    slop.title(`${text}: ${problem.name} (${run})`);
    return h("h2", { tabindex: -1 }, `${text}: `, problem.name, h("span", { class: "dim" }, ` ${run}`));
  }

  function drawTimeline(state, selected) {
    const area = h("div", { id: "timeline" });
    fill(
      main,
      title("Timeline", selected),
      picker(state, selected),
      slop.timeline.controls(state, selected.problem, data.groups),
      slop.timeline.legend(),
      area,
    );
    fill(area, slop.timeline.draw(selected.problem, selected.context, state));
  }

  function drawCharts(state, selected) {
    const charts = slop.charts.draw(selected.problem, selected.context);
    fill(main, title("Charts", selected), picker(state, selected), charts);
  }

  function drawView(state) {
    const selected = selection(state);
    slop.charts.clear();
    slop.announce("");
    if (view(state) === "overview" || !selected.problem) {
      slop.title(null);
      fill(main, slop.agents.draw(data.agents, selected.context, state), slop.overview.draw(data, selected.context));
    } else if (view(state) === "timeline") drawTimeline(state, selected);
    else drawCharts(state, selected);
  }

  function detail(state) {
    const { runNumber, problemNumber, problem, context } = selection(state);
    const test = state.test && problem?.tests.find(({ name }) => name === state.test);
    const column = test ? problem.checkpoints.findIndex(({ name }) => name === state.checkpoint) : -1;
    if (column < 0 || test.statuses[column] === ".") slop.detail.hide();
    else slop.detail.show(test, problem, column, [runNumber, problemNumber], context);
  }

  /** The part of the address that decides the view; the rest is a filter, or a test that is open. */
  const frame = (state) => JSON.stringify([view(state), state.run, state.problem, state.policy]);
  const filter = ({ group, result, at, q }) => JSON.stringify([group, result, at, q]);

  /** Draws only what changed: a filter keeps its fields, opening a test keeps the position in the grid. */
  function draw(state) {
    if (shown) slop.keepFocus(() => redraw(state), () => main.querySelector("h2"));
    else redraw(state);
    shown = state;
    detail(state);
  }

  function redraw(state) {
    tabs(state);
    if (!shown || frame(shown) !== frame(state)) drawView(state);
    else if (view(state) === "timeline" && filter(shown) !== filter(state)) refilter(state);
    else if (data.agents && view(state) === "overview" && shown.sort !== state.sort) resort(state);
  }

  function resort(state) {
    const agents = document.getElementById("agents");
    fill(agents, slop.agents.table(data.agents, selection(state).context, state));
  }

  function refilter(state) {
    const selected = selection(state);
    slop.timeline.setControls(state, selected.problem, data.groups);
    fill(document.getElementById("timeline"), slop.timeline.draw(selected.problem, selected.context, state));
  }

  if (!data.runs.some(({ problems }) => problems.length)) throw new Error("there are no results in it");
  header();
  slop.onAddress(draw);
  draw(address());
});
