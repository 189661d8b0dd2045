// Grid of tests × checkpoints: rows are drawn lazily, arrow keys move the focus, a click opens a test.
"use strict";

slop.grid = (() => {
  const { h, go, plural } = slop;
  const CHUNK = 20; // lines: rows, and headings with the file of the rows below
  const FIXED_COLUMNS = 3; // columns before those of the checkpoints: name, group, reason
  const NARROW = matchMedia("(max-width: 60rem)"); // as in the style sheet: group and reason are below the name
  let shown = null; // the grid on the page

  /** Cells are cloned from the few kinds of cells that a column has, as there may be fifty thousand. */
  function drawCell(grid, test, column) {
    const kind = `${column} ${test.statuses[column]} ${test.changes[column]} ${column < test.home}`;
    if (!grid.kinds.has(kind)) {
      const checkpoint = grid.problem.checkpoints[column];
      const { symbol, look, words } = slop.tests.cell(test, column, checkpoint);
      grid.kinds.set(
        kind,
        h("td", { class: `cell ${look}`, tabindex: -1, "aria-label": `${checkpoint.name}: ${words}` }, symbol),
      );
    }
    return grid.kinds.get(kind).cloneNode(true);
  }

  const testOf = (grid, number) => grid.problem.tests[grid.rows[number]];

  /** The reason is filled in when the part of the page with it is unpacked. */
  function drawRow(grid, number, line) {
    const test = testOf(grid, number);
    const column = slop.tests.opening(test, grid.at);
    const group = grid.groups[grid.group < 0 ? Number(test.groups[column]) : grid.group];
    const reasons = [h("span"), h("td", { class: "why", tabindex: -1 })];
    if (slop.tests.failedAt(test, column)) fillReasons(grid, grid.rows[number], column, reasons);
    else reasons.forEach((element) => slop.fill(element, slop.tests.WORDS[test.statuses[column]]));
    return h(
      "tr",
      { "data-number": number, "aria-rowindex": line + 2 },
      h(
        "th",
        { scope: "row", tabindex: -1, title: test.name },
        h("span", { class: "id" }, slop.nameParts(test.name)[1]),
        h("span", { class: "under" }, h("span", { class: "group" }, group), reasons[0]),
      ),
      h("td", { class: "group", tabindex: -1 }, group),
      reasons[1],
      grid.problem.checkpoints.map((_, column) => drawCell(grid, test, column)),
    );
  }

  async function fillReasons(grid, row, column, elements) {
    const part = await slop.part([...grid.numbers, column].join("/"));
    const index = part ? slop.message.indexOf(part, row) : -1;
    const reason = index < 0 ? null : slop.message.reason(part.text_numbers[index], part);
    const text = reason ?? slop.tests.WORDS[grid.problem.tests[row].statuses[column]];
    for (const element of elements) {
      element.textContent = text;
      element.title = text;
    }
  }

  function drawHeading(grid, { file, count }, line) {
    const columns = FIXED_COLUMNS + grid.problem.checkpoints.length;
    const text = h("span", { class: "file" }, h("strong", file), ` — ${plural(count, "test")}`);
    return h("tr", { class: "heading", "aria-rowindex": line + 2 }, h("td", { colspan: columns }, text));
  }

  /** A line for each row, by its number, and a heading before the rows of each file. */
  function linesOf(problem, rows) {
    const lines = [];
    let heading = null;
    rows.forEach((row, number) => {
      const file = slop.nameParts(problem.tests[row].name)[0].replace(/::$/, "");
      if (heading?.file !== file) lines.push((heading = { file, count: 0 }));
      heading.count += 1;
      lines.push(number);
    });
    return lines;
  }

  /** Lines are drawn in chunks. */
  function chunk(grid, first) {
    const numbers = grid.lines.slice(first, first + CHUNK).map((_, index) => first + index);
    const headings = numbers.filter((number) => typeof grid.lines[number] !== "number").length;
    const height = `calc(${numbers.length - headings} * var(--row) + ${headings} * var(--heading))`;
    const drawLine = (line) => {
      const content = grid.lines[line];
      return typeof content === "number" ? drawRow(grid, content, line) : drawHeading(grid, content, line);
    };
    const columns = FIXED_COLUMNS + grid.problem.checkpoints.length;
    return slop.lazyRows(numbers, drawLine, { columns, height, box: grid.box, margin: 300 });
  }

  const cellAt = (grid, [number, column]) => {
    const line = grid.lineOf[number];
    const { body, draw } = grid.chunks[Math.floor(line / CHUNK)];
    draw();
    return body.children[line % CHUNK].children[column];
  };

  /** One cell of the grid takes the focus by Tab; arrow keys move it. */
  function enter(grid, position, { focus = true } = {}) {
    if (!grid.rows.length) return;
    grid.box.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    grid.position = position;
    const cell = cellAt(grid, position);
    cell.setAttribute("tabindex", "0");
    if (focus) {
      cell.focus({ preventScroll: true });
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  function positionAfter(grid, key, control) {
    const [number, column] = grid.position;
    const last = [grid.rows.length - 1, FIXED_COLUMNS + grid.problem.checkpoints.length - 1];
    const skipped = NARROW.matches ? FIXED_COLUMNS : 1;
    const steps = {
      ArrowUp: [number - 1, column],
      ArrowDown: [number + 1, column],
      ArrowLeft: [number, column === skipped ? 0 : column - 1],
      ArrowRight: [number, column ? column + 1 : skipped],
      PageUp: [number - 15, column],
      PageDown: [number + 15, column],
      Home: control ? [0, 0] : [number, 0],
      End: control ? last : [number, last[1]],
    };
    return steps[key]?.map((value, axis) => Math.max(0, Math.min(last[axis], value)));
  }

  function onKey(grid, event) {
    if (!event.target.closest("tbody")) return;
    if (event.key === "Enter" || event.key === " ") {
      open(grid, event.target);
      event.preventDefault();
      return;
    }
    const position = positionAfter(grid, event.key, event.ctrlKey || event.metaKey);
    if (!position) return;
    event.preventDefault();
    enter(grid, position);
  }

  function positionOf(target) {
    const cell = target.closest("tbody tr[data-number] > *");
    return cell && [Number(cell.parentNode.dataset.number), cell.cellIndex];
  }

  /** Opens the result of a cell; for the other cells of a row, the column at which the test opens. */
  function open(grid, target) {
    const position = positionOf(target);
    if (!position) return;
    enter(grid, position);
    const test = testOf(grid, position[0]);
    const column = slop.tests.opening(test, position[1] < FIXED_COLUMNS ? grid.at : position[1] - FIXED_COLUMNS);
    go({ ...slop.address(), view: "timeline", test: test.name, checkpoint: grid.problem.checkpoints[column].name });
  }

  const numberOf = (grid, name) => grid.rows.findIndex((row) => grid.problem.tests[row].name === name);

  /** Moves the focus to the row of a test, if the grid is on the page and has it. */
  function reveal(name) {
    const number = shown?.box.isConnected ? numberOf(shown, name) : -1;
    if (number >= 0 && number !== shown.position[0]) enter(shown, [number, 0]);
  }

  const heading = (name, look) => h("th", { scope: "col", class: look }, name);

  /** `at`, `group`: column and group of the filter, or -1. `test`: name of the test to scroll to. */
  function draw({ problem, rows, heads, at, group, context }, test) {
    const { groups, numbers } = context;
    const grid = { problem, rows, at, group, groups, numbers, position: [0, 0], kinds: new Map() };
    grid.lines = linesOf(problem, rows);
    grid.lineOf = [...grid.lines.keys()].filter((line) => typeof grid.lines[line] === "number");
    grid.box = slop.edges(h("div", { class: "scroll grid-box" }));
    grid.box.style.setProperty("--columns", problem.checkpoints.length);
    grid.chunks = Array.from({ length: Math.ceil(grid.lines.length / CHUNK) }, (_, number) =>
      chunk(grid, number * CHUNK),
    );
    const why = at < 0 ? "Reason, where it first failed" : `Reason at ${problem.checkpoints[at].name}`;
    const columns = [heading("Test", null), heading("Group", "group"), heading(why, "why"), heads];
    const table = h(
      "table",
      {
        class: "grid",
        role: "grid",
        "aria-label": `Tests of ${problem.name} over its checkpoints`,
        "aria-rowcount": grid.lines.length + 1,
        onclick: (event) => open(grid, event.target),
        onkeydown: (event) => onKey(grid, event),
      },
      h("thead", h("tr", { "aria-rowindex": 1 }, columns)),
      grid.chunks.map(({ body }) => body),
    );
    grid.box.append(table);
    table.addEventListener("mouseover", ({ target }) => {
      if (target.matches("td[aria-label]")) target.title = target.getAttribute("aria-label");
    });
    const first = Math.max(0, numberOf(grid, test));
    enter(grid, [first, 0], { focus: false });
    if (first) requestAnimationFrame(() => cellAt(grid, [first, 0]).scrollIntoView({ block: "nearest" }));
    shown = grid;
    return grid.box;
  }

  return { draw, reveal };
})();
