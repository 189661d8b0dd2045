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
      runs: data.runs,
      several: data.runs.length > 1,
      agentOf: (run) => data.agents?.rows[data.agents.by_run[data.runs.indexOf(run)]]?.name,
      isLive: Boolean(data.live),
      numbers: [runNumber, problemNumber],
    };
    return { runNumber, problemNumber, context, problem: data.runs[runNumber].problems[problemNumber] };
  }

  /** Kind and name of the first thing in the address that is not in this report; null where all of it is. */
  function missing({ run, open, problem, at, checkpoint, test, policy }) {
    const lacks = (list, name) => name && !list.some((item) => item.name === name);
    const { problems } = data.runs[named(data.runs, run)];
    const selected = problems[named(problems, problem)];
    const wanted = [
      ["run", run, data.runs],
      ["run", open, data.runs],
      ["problem", problem, problems],
      ["checkpoint", at, selected?.checkpoints ?? []],
      ["checkpoint", checkpoint, selected?.checkpoints ?? []],
      ["test", test, selected?.tests ?? []],
      ["policy", policy, data.policies.map((name) => ({ name }))],
    ];
    return wanted.find(([, name, list]) => lacks(list, name)) ?? null;
  }

  const isUnknown = (state) => ["run", "problem"].includes(missing(state)?.[0]);

  /** The overview stands for the view of a run or a problem that is not there. */
  const view = (state) => (Object.hasOwn(VIEWS, state.view) && !isUnknown(state) ? state.view : "overview");

  const notice = h("p", { class: "alert notice", role: "alert" });

  function drawNotice(state) {
    const [kind, name] = missing(state) ?? [];
    notice.hidden = !kind;
    notice.textContent = kind ? `This report has no ${kind} ${name}.` : "";
  }

  function header() {
    slop.frame({
      main,
      top,
      data,
      nav: h("nav", { "aria-label": "Views", id: "views" }),
      settings: slop.policyField(data),
      searchField: toFilter,
    });
  }

  function toFilter() {
    if (view(address()) !== "timeline") go({ ...address(), view: "timeline" });
    return document.getElementById("filter-text");
  }

  /** The run that is open, else the first that did not pass by the policy. */
  function shownRun({ run, open }, { policy }) {
    const isPassed = (checkpoint) => slop.overview.verdict(checkpoint, policy).look === "passed";
    const failing = data.runs.find(({ problems }) => !problems.every(({ checkpoints }) => checkpoints.every(isPassed)));
    return open ?? run ?? failing?.name;
  }

  function tabs(state) {
    const { context } = selection(state);
    const run = isUnknown(state) ? null : shownRun(state, context);
    const problem = run === state.run ? state.problem : null;
    const open = context.several && !isUnknown(state) ? (state.open ?? state.run) : null;
    const link = ([name, text]) => {
      const current = view(state) === name ? "page" : null;
      const target = name === "overview" ? { open } : { run, problem };
      const href = hashOf({ view: name, ...target, policy: context.shownPolicy });
      return h("a", { href, "aria-current": current }, text);
    };
    fill(document.getElementById("views"), Object.entries(VIEWS).map(link));
    document.getElementById("policy").value = data.policies[context.policy];
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
      fill(main, slop.agents.draw(data.agents, selected.context, state), slop.overview.draw(selected.context, state));
      slop.overview.update(main, selected.context, state, { focus: false });
    } else if (view(state) === "timeline") drawTimeline(state, selected);
    else drawCharts(state, selected);
  }

  function detail(state) {
    const { problem, context } = selection(state);
    const test = state.test && problem?.tests.find(({ name }) => name === state.test);
    const column = test ? problem.checkpoints.findIndex(({ name }) => name === state.checkpoint) : -1;
    if (column < 0 || test.statuses[column] === ".") slop.detail.hide();
    else slop.detail.show(test, problem, column, context);
  }

  /** The part of the address that decides the view; the rest is a filter, or a test that is open. */
  const frame = (state) => {
    const shown = view(state) === "overview" ? [] : [state.run, state.problem];
    return JSON.stringify([view(state), state.policy, ...shown]);
  };
  const filter = ({ group, result, at, q }) => JSON.stringify([group, result, at, q]);

  /** Draws only what changed: a filter keeps its fields, opening a test keeps the position in the grid. */
  function draw(state, followed = false) {
    drawNotice(state);
    if (shown) slop.keepFocus(() => redraw(state), () => main.querySelector("h2"));
    else redraw(state);
    if (followed && shown && view(shown) !== view(state)) scrollTo(0, 0);
    shown = state;
    detail(state);
  }

  function redraw(state) {
    tabs(state);
    if (!shown || frame(shown) !== frame(state)) drawView(state);
    else if (view(state) === "timeline" && filter(shown) !== filter(state)) refilter(state);
    else if (view(state) === "overview") {
      if (data.agents && shown.sort !== state.sort) resort(state);
      slop.overview.update(main, selection(state).context, state, { focus: true });
    }
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

  header();
  if (data.runs.some(({ problems }) => problems.length)) {
    main.before(notice);
    slop.onAddress(draw);
    draw(address());
  } else {
    fill(main, h("p", { class: "nothing" }, data.live ? "Nothing is evaluated yet" : "There are no results"));
  }
  slop.live.start(data.live, top);
});
