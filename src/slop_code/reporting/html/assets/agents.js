// Agents: a row for each agent over all its runs, sorted by the column that is chosen.
"use strict";

slop.agents = (() => {
  const { h, hashOf } = slop;
  const POLICY = "policy"; // the column of the selected policy, after the columns of solved checkpoints
  const SOLVED = "checkpoints solved";

  /** Columns of the table; `cell` picks the text and the value of a row. */
  function columns(agents, context) {
    const plain = agents.columns.map((column, number) => ({ ...column, cell: (row) => row.cells[number] }));
    const after = plain.findLastIndex(({ over }) => over === SOLVED) + 1;
    const chosen = {
      name: POLICY,
      head: context.policyName,
      over: SOLVED,
      lowest_first: false,
      cell: (row) => row.policies[context.policy],
    };
    return [...plain.slice(0, after), chosen, ...plain.slice(after)];
  }

  /** Rows by a column, those without a value last. */
  function sorted(rows, column, descending) {
    const known = rows.filter((row) => column.cell(row)[1] !== null);
    const unknown = rows.filter((row) => column.cell(row)[1] === null);
    const sign = descending ? -1 : 1;
    return [...known.toSorted((a, b) => sign * (column.cell(a)[1] - column.cell(b)[1])), ...unknown];
  }

  /** The column in the address and its direction, which is descending with "-" before the name; null for the order of
      the leaderboard. */
  function chosenOrder(all, state) {
    const text = state.sort ?? "";
    const column = all.find(({ name }) => name === text.replace(/^-/, ""));
    return column ? { column, descending: text.startsWith("-") } : null;
  }

  /** The address after a click: the first click on a column puts the best first, the next turns the order round. */
  function next(column, order) {
    if (order?.column.name !== column.name) return column.lowest_first ? column.name : `-${column.name}`;
    return order.descending ? column.name : `-${column.name}`;
  }

  function headCell(column, order) {
    const chosen = order?.column.name === column.name;
    const direction = order?.descending ? "descending" : "ascending";
    const sort = () => slop.go({ ...slop.address(), sort: next(column, order) });
    const arrow = chosen ? (order.descending ? " ▼" : " ▲") : "";
    const attributes = { type: "button", id: `sort-${column.name}`, class: "sort", onclick: sort };
    return h(
      "th",
      { scope: "col", class: "number", "aria-sort": chosen ? direction : "none" },
      h("button", attributes, column.head, slop.sign(arrow)),
    );
  }

  /** Headings over neighbouring columns. */
  function overHeads(all) {
    const spans = [];
    for (const { over } of all) {
      if (spans.length && spans.at(-1).over === over) spans.at(-1).count += 1;
      else spans.push({ over, count: 1 });
    }
    const head = ({ over, count }) =>
      over ? h("th", { scope: "colgroup", colspan: count, class: "over" }, over) : h("td", { colspan: count });
    return h("tr", h("td"), spans.map(head));
  }

  function head(all, order) {
    const back = () => slop.go({ ...slop.address(), sort: null });
    const best = h("button", { type: "button", id: "sort-agent", class: "sort", onclick: back }, "Agent");
    const agent = h("th", { scope: "col", title: "in the order of the leaderboard" }, best);
    return h("thead", overHeads(all), h("tr", agent, all.map((column) => headCell(column, order))));
  }

  function bodyRow(row, all) {
    const cell = (column) => {
      const [text] = column.cell(row);
      const look = column.name === "missing_share" && row.missing ? "number lacking" : "number";
      return text === null ? slop.emptyCell("not recorded") : h("td", { class: look }, text);
    };
    const attributes = { href: hashOf({ open: row.runs[0], policy: slop.address().policy }), "data-overlay": "" };
    const title = h("a", attributes, row.name, slop.spoken(": show its first run"));
    return h("tr", { class: row.missing ? "apart" : null }, h("th", { scope: "row" }, title), all.map(cell));
  }

  /** `state`: the address, whose `sort` is the chosen column. */
  function table(agents, context, state) {
    const all = columns(agents, context);
    const order = chosenOrder(all, state);
    const rows = order ? sorted(agents.rows, order.column, order.descending) : agents.rows;
    const caption = h("caption", { class: "visually-hidden" }, "Agents, each over all its runs");
    const body = h("tbody", rows.map((row) => bodyRow(row, all)));
    if (order) slop.announce(`sorted by ${order.column.head}, ${order.descending ? "descending" : "ascending"}`);
    const whole = h("table", { class: "results agents stacked" }, caption, head(all, order), body);
    const heads = all.map((column) => (column.over ? `${column.over}: ${column.head}` : column.head));
    return slop.scrollBox("Agents", slop.stackable(whole, ["Agent", ...heads]));
  }

  function draw(agents, context, state) {
    if (!agents) return null;
    const link = (name, number) => [
      number ? ", " : null,
      h("a", { href: hashOf({ open: name, policy: state.policy }), "data-overlay": "" }, name),
    ];
    const runs = ({ identity, runs }) => [identity ? `(${identity}): ` : null, runs.map(link)];
    return h(
      "section",
      { class: "run wide", "aria-label": "Agents" },
      h("h2", { tabindex: -1 }, "Agents"),
      h("div", { id: "agents" }, table(agents, context, state)),
      h("ul", { class: "notes" }, agents.notes.map((text) => h("li", text))),
      slop.foldedList("Runs of each agent", agents.rows.map((row) => [row.name, runs(row)])),
    );
  }

  return { draw, table };
})();
