// Charts: pass rate by group, tests that broke and recovered, the code, time. Each has its figures as a table, too.
"use strict";

slop.charts = (() => {
  const { h, plural, formatDuration } = slop;
  const MAX_NARROW = 30; // checkpoints; more of them need the whole width
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const drawn = new Set(); // charts of the current view, which are drawn again when the colours change

  /** Value of a custom property in the current theme. */
  function colour(name) {
    const probe = h("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  /** Title, labels, and series of figures with a colour, for each chart. */
  function figures(problem, groups) {
    const judged = problem.checkpoints.filter(slop.tests.hasVerdict);
    const used = groups
      .map((name, number) => ({ name, number }))
      .filter(({ number }) => judged.some(({ total }) => total[number]));
    const phases = [...new Set(judged.flatMap((checkpoint) => Object.keys(checkpoint.phases)))];
    const labels = judged.map(({ name }) => name);
    return [
      {
        title: "Tests that passed, by group",
        labels,
        kind: "line",
        unit: "%",
        max: 100,
        series: used.map(({ name, number }) => ({
          name,
          colour: `--series-${number}`,
          values: judged.map(({ shares }) => (shares[number] ? Number.parseFloat(shares[number]) : null)),
        })),
      },
      {
        title: "Tests that broke and recovered",
        labels,
        kind: "bar",
        unit: "tests",
        whole: true,
        series: [
          { name: "broke", colour: "--failed", values: judged.map(({ introduced }) => introduced) },
          { name: "recovered", colour: "--passed", values: judged.map(({ repaired }) => repaired) },
        ],
      },
      {
        title: "Time by phase",
        labels,
        kind: "bar",
        unit: "s",
        stacked: true,
        series: phases.map((name, number) => ({
          name,
          colour: `--series-${number % 4}`,
          values: judged.map((checkpoint) => (checkpoint.phases[name] ?? 0) / 1000),
        })),
      },
    ];
  }

  const percent = (value) => (value === 100 ? "100%" : `${value.toFixed(1)}%`);

  function shown(value, unit) {
    if (value === null) return "–";
    if (unit === "s") return formatDuration(value * 1000);
    return unit === "%" ? percent(value) : value.toLocaleString("en");
  }

  function summary({ title, labels, series, unit }) {
    if (!labels.length) return `${title}: no checkpoint has a verdict`;
    const ends = series.map(({ name, values }) => {
      const known = values.filter((value) => value !== null);
      return known.length ? `${name} from ${shown(known[0], unit)} to ${shown(known.at(-1), unit)}` : `${name} none`;
    });
    const checkpoints = plural(labels.length, "checkpoint");
    return `${title}, over ${checkpoints}: ${ends.join("; ")}. The table below has all figures.`;
  }

  function table({ title, labels, series, unit }) {
    const head = slop.tableHead(["Checkpoint"], series.map(({ name }) => name));
    const cells = (index) => series.map(({ values }) => h("td", { class: "number" }, shown(values[index], unit)));
    const rows = labels.map((label, index) => h("tr", h("th", { scope: "row" }, label), cells(index)));
    const figures = h("table", h("caption", { class: "visually-hidden" }, title), head, h("tbody", rows));
    return h("details", h("summary", "Figures as a table"), slop.scrollBox(`Figures: ${title}`, figures));
  }

  const POINTS = ["circle", "rect", "triangle", "rectRot"];

  function dataset(figure, { name, colour: property, values }, number) {
    const tone = colour(property);
    const look = { label: name, data: values, borderColor: tone, backgroundColor: tone };
    const least = figure.gaps ? { minBarLength: 2 } : {}; // zero is a thin bar, a gap is none
    if (figure.kind === "bar") return { ...look, ...least, pointStyle: "rect" };
    const radius = values.length > 40 ? 2 : 4;
    return {
      ...look,
      spanGaps: !figure.gaps,
      borderWidth: 2,
      pointStyle: POINTS[number % 4],
      pointRadius: radius,
      borderDash: number % 2 ? [6, 3] : [],
      clip: false,
    };
  }

  function picture(canvas, figure) {
    const [text, line] = [colour("--text"), colour("--line")];
    const axis = { ticks: { color: text }, grid: { color: line }, stacked: Boolean(figure.stacked) };
    const value = { ...axis, min: 0, max: figure.max, title: { display: true, text: figure.unit, color: text } };
    if (figure.whole) value.ticks = { ...axis.ticks, precision: 0 };
    return new Chart(canvas, {
      type: figure.kind,
      data: { labels: figure.labels, datasets: figure.series.map((series, number) => dataset(figure, series, number)) },
      options: {
        animation: still.matches ? false : { duration: 250 },
        responsive: true,
        maintainAspectRatio: false,
        scales: { x: { ...axis, grid: { display: false } }, y: value },
        plugins: {
          legend: { labels: { color: text, usePointStyle: true, boxHeight: 8 } },
          tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${shown(item.raw, figure.unit)}` } },
        },
      },
    });
  }

  function card(figure) {
    const canvas = h("canvas", { role: "img", "aria-label": summary(figure) });
    slop.whenNear(canvas, () => {
      if (canvas.isConnected) drawn.add({ figure, canvas, chart: picture(canvas, figure) });
    });
    return h("section", { class: "card" }, h("h3", figure.title), h("div", { class: "canvas" }, canvas), table(figure));
  }

  addEventListener("themechange", () =>
    drawn.forEach((made) => {
      made.chart.destroy();
      made.chart = picture(made.canvas, made.figure);
    }),
  );

  function clear() {
    drawn.forEach(({ chart }) => chart.destroy());
    drawn.clear();
  }

  function draw(problem, context) {
    const cards = (all) => h("div", { class: problem.checkpoints.length > MAX_NARROW ? "cards wide" : "cards" }, all);
    const code = slop.code.figures(problem).map(card);
    return [
      cards(figures(problem, context.groups).map(card)),
      h("h2", "Code"),
      slop.code.notes(problem),
      code.length ? cards(code) : h("p", { class: "dim" }, "Not recorded: no snapshot lies beside these results."),
    ];
  }

  return { draw, clear };
})();
