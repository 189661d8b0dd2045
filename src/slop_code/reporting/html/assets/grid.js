// The grid of tests × checkpoints: rows are drawn when they come near, arrows move through it, a click opens a test.
"use strict";

slop.grid = (() => {
  const { h, go } = slop;
  const CHUNK = 20;
  const FEW = 8; // checkpoints that leave room for longer names
  const ROW_HEIGHT = 30; // as in the style: rows that are not drawn yet take the room that they will take

  /** Cells are copies of the few kinds that a column has: there may be fifty thousand. */
  function drawCell(grid, test, column) {
    const kind = `${column} ${test.statuses[column]} ${test.changes[column]} ${column < test.home}`;
    if (!grid.kinds.has(kind)) {
      const checkpoint = grid.sheet.checkpoints[column];
      const { symbol, look, words } = slop.tests.cell(test, column, checkpoint);
      grid.kinds.set(
        kind,
        h("td", { class: `cell ${look}`, tabindex: -1, "aria-label": `${checkpoint.name}: ${words}` }, symbol),
      );
    }
    return grid.kinds.get(kind).cloneNode(true);
  }

  /** The part of a file's name that says which one it is, for where there is no room for all of it. */
  const which = (file) => `${file.replace(/^test_|(\.py)?::$/g, "")} `;

  /** Ids that tests of several files have. */
  function repeated(sheet) {
    const seen = new Map();
    for (const { name } of sheet.tests) {
      const [, id] = slop.tests.nameParts(name);
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
    return new Set([...seen.keys()].filter((id) => seen.get(id) > 1));
  }

  function drawRow(grid, number) {
    const row = grid.rows[number];
    const test = grid.sheet.tests[row];
    const [file, id] = slop.tests.nameParts(test.name);
    const cells = grid.sheet.checkpoints.map((_, column) => drawCell(grid, test, column));
    return h(
      "tr",
      { "data-number": number, "aria-rowindex": number + 2 },
      h(
        "th",
        { scope: "row", tabindex: -1, title: test.name },
        h("span", { class: "dim file" }, file),
        grid.repeated.has(id) && h("span", { class: "dim which" }, which(file)),
        id,
      ),
      cells,
    );
  }

  /** Rows stand in chunks, each drawn when it comes near. */
  function chunk(grid, first) {
    const numbers = grid.rows.slice(first, first + CHUNK).map((_, place) => first + place);
    const columns = grid.sheet.checkpoints.length + 1;
    const look = { columns, height: ROW_HEIGHT, box: grid.box, margin: 300 };
    return slop.lateRows(numbers, (number) => drawRow(grid, number), look);
  }

  const cellAt = (grid, [number, column]) => {
    const { body, draw } = grid.chunks[Math.floor(number / CHUNK)];
    draw();
    return body.children[number % CHUNK].children[column];
  };

  /** One cell of the grid is in the order of Tab; arrows move it. */
  function enter(grid, place, { focus = true } = {}) {
    if (!grid.rows.length) return;
    grid.box.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    grid.place = place;
    const cell = cellAt(grid, place);
    cell.setAttribute("tabindex", "0");
    if (focus) {
      cell.focus({ preventScroll: true });
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  function moved(grid, key, control) {
    const [number, column] = grid.place;
    const last = [grid.rows.length - 1, grid.sheet.checkpoints.length];
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
    const place = moved(grid, event.key, event.ctrlKey || event.metaKey);
    if (!place) return;
    event.preventDefault();
    enter(grid, place);
  }

  function placeOf(target) {
    const cell = target.closest("tbody tr[data-number] > *");
    return cell && [Number(cell.parentNode.dataset.number), cell.cellIndex];
  }

  /** The detail of a cell; of a row's name, or where the test was not there, that of its last result. */
  function open(grid, target) {
    const place = placeOf(target);
    if (!place) return;
    enter(grid, place);
    const test = grid.sheet.tests[grid.rows[place[0]]];
    const there = place[1] > 0 && test.statuses[place[1] - 1] !== ".";
    const column = there ? place[1] - 1 : lastColumn(test);
    go({ ...slop.address(), view: "timeline", test: test.name, checkpoint: grid.sheet.checkpoints[column].name });
  }

  const lastColumn = (test) =>
    test.statuses.length - 1 - [...test.statuses].reverse().findIndex((status) => status !== ".");

  /** `test`: the name of one that is in view at first. */
  function draw(sheet, rows, heads, test) {
    const grid = { sheet, rows, place: [0, 0], kinds: new Map(), repeated: repeated(sheet) };
    grid.box = slop.edges(h("div", { class: "scroll grid-box" }));
    grid.chunks = Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, number) => chunk(grid, number * CHUNK));
    const table = h(
      "table",
      {
        class: sheet.checkpoints.length <= FEW ? "grid few" : "grid",
        role: "grid",
        "aria-label": `Tests of ${sheet.name} over its checkpoints`,
        "aria-rowcount": rows.length + 1,
        onclick: (event) => open(grid, event.target),
        onkeydown: (event) => onKey(grid, event),
      },
      h("thead", null, h("tr", { "aria-rowindex": 1 }, h("th", { scope: "col" }, "Test"), heads)),
      grid.chunks.map(({ body }) => body),
    );
    grid.box.append(table);
    table.addEventListener("mouseover", ({ target }) => {
      if (target.matches("td[aria-label]")) target.title = target.getAttribute("aria-label");
    });
    const first = Math.max(
      0,
      rows.findIndex((row) => sheet.tests[row].name === test),
    );
    enter(grid, [first, 0], { focus: false });
    if (first) requestAnimationFrame(() => cellAt(grid, [first, 0]).scrollIntoView({ block: "nearest" }));
    return grid.box;
  }

  return { draw };
})();
