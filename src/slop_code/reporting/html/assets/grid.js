// Grid of tests × checkpoints: rows are drawn lazily, arrow keys move the focus, a click opens a test.
"use strict";

slop.grid = (() => {
  const { h, go } = slop;
  const CHUNK = 20;
  const MAX_FEW = 8; // checkpoints that leave room for longer names
  const ROW_HEIGHT = 30; // as in the style sheet: rows that are not drawn yet have the same height

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

  /** The distinguishing part of a file name, for narrow columns. */
  const shortFile = (file) => `${file.replace(/^test_|(\.py)?::$/g, "")} `;

  /** Ids of tests that occur in several files. */
  function repeated(problem) {
    const seen = new Map();
    for (const { name } of problem.tests) {
      const [, id] = slop.tests.nameParts(name);
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
    return new Set([...seen.keys()].filter((id) => seen.get(id) > 1));
  }

  function drawRow(grid, number) {
    const row = grid.rows[number];
    const test = grid.problem.tests[row];
    const [file, id] = slop.tests.nameParts(test.name);
    const cells = grid.problem.checkpoints.map((_, column) => drawCell(grid, test, column));
    return h(
      "tr",
      { "data-number": number, "aria-rowindex": number + 2 },
      h(
        "th",
        { scope: "row", tabindex: -1, title: test.name },
        h("span", { class: "dim file" }, file),
        grid.repeated.has(id) && h("span", { class: "dim which" }, shortFile(file)),
        id,
      ),
      cells,
    );
  }

  /** Rows are drawn in chunks. */
  function chunk(grid, first) {
    const numbers = grid.rows.slice(first, first + CHUNK).map((_, index) => first + index);
    const columns = grid.problem.checkpoints.length + 1;
    const look = { columns, height: ROW_HEIGHT, box: grid.box, margin: 300 };
    return slop.lazyRows(numbers, (number) => drawRow(grid, number), look);
  }

  const cellAt = (grid, [number, column]) => {
    const { body, draw } = grid.chunks[Math.floor(number / CHUNK)];
    draw();
    return body.children[number % CHUNK].children[column];
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
    const last = [grid.rows.length - 1, grid.problem.checkpoints.length];
    const steps = {
      ArrowUp: [number - 1, column],
      ArrowDown: [number + 1, column],
      ArrowLeft: [number, column - 1],
      ArrowRight: [number, column + 1],
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

  /** Opens the result of a cell; for the name of a row or an empty cell, the last result of the test. */
  function open(grid, target) {
    const position = positionOf(target);
    if (!position) return;
    enter(grid, position);
    const test = grid.problem.tests[grid.rows[position[0]]];
    const there = position[1] > 0 && test.statuses[position[1] - 1] !== ".";
    const column = there ? position[1] - 1 : lastColumn(test);
    go({ ...slop.address(), view: "timeline", test: test.name, checkpoint: grid.problem.checkpoints[column].name });
  }

  const lastColumn = (test) =>
    test.statuses.length - 1 - [...test.statuses].reverse().findIndex((status) => status !== ".");

  /** `test`: name of the test to scroll to. */
  function draw(problem, rows, heads, test) {
    const grid = { problem, rows, position: [0, 0], kinds: new Map(), repeated: repeated(problem) };
    grid.box = slop.edges(h("div", { class: "scroll grid-box" }));
    grid.chunks = Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, number) => chunk(grid, number * CHUNK));
    const table = h(
      "table",
      {
        class: problem.checkpoints.length <= MAX_FEW ? "grid few" : "grid",
        role: "grid",
        "aria-label": `Tests of ${problem.name} over its checkpoints`,
        "aria-rowcount": rows.length + 1,
        onclick: (event) => open(grid, event.target),
        onkeydown: (event) => onKey(grid, event),
      },
      h("thead", h("tr", { "aria-rowindex": 1 }, h("th", { scope: "col" }, "Test"), heads)),
      grid.chunks.map(({ body }) => body),
    );
    grid.box.append(table);
    table.addEventListener("mouseover", ({ target }) => {
      if (target.matches("td[aria-label]")) target.title = target.getAttribute("aria-label");
    });
    const first = Math.max(0, rows.findIndex((row) => problem.tests[row].name === test));
    enter(grid, [first, 0], { focus: false });
    if (first) requestAnimationFrame(() => cellAt(grid, [first, 0]).scrollIntoView({ block: "nearest" }));
    return grid.box;
  }

  return { draw };
})();
