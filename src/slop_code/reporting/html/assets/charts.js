// Charts: pass rates and code size on one axis of checkpoints, tests that broke and recovered, the code, time. Each has
// its figures as a table, too; with few checkpoints there is only the table.
"use strict";

slop.charts = (() => {
  const { h, plural, formatDuration } = slop;
  const MAX_NARROW = 30; // checkpoints; more of them need the whole width
  const MIN_POINTS = 3; // checkpoints; a chart of fewer says no more than its table
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
    const share = (checkpoint, number) => (slop.tests.hasVerdict(checkpoint) ? checkpoint.shares[number] : null);
    const rates = used.map(({ name, number }) => ({
      name,
      colour: `--series-${number}`,
      values: problem.checkpoints.map((checkpoint) => {
        const text = share(checkpoint, number);
        return text ? Number.parseFloat(text) : null;
      }),
    }));
    const size = slop.code.size(problem);
    return [
      {
        title: size ? "Tests that passed, by group, and lines of code" : "Tests that passed, by group",
        labels: slop.code.labels(problem),
        kind: "line",
        unit: "%",
        max: 100,
        wide: true,
        series: size ? [...rates, size] : rates,
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

  function shown(value, unit) {
    if (value === null) return "–";
    if (unit === "s") return formatDuration(value * 1000);
    return unit === "%" ? slop.percent(value / 100) : value.toLocaleString("en");
  }

  function summary({ title, labels, series, unit: common }) {
    if (!labels.length) return `${title}: no checkpoint has a verdict`;
    const ends = series.map(({ name, values, unit = common }) => {
      const known = values.filter((value) => value !== null);
      return known.length ? `${name} from ${shown(known[0], unit)} to ${shown(known.at(-1), unit)}` : `${name} none`;
    });
    const checkpoints = plural(labels.length, "checkpoint");
    return `${title}, over ${checkpoints}: ${ends.join("; ")}. The table below has all figures.`;
  }

  function table({ title, labels, series, unit: common }, isAlone) {
    const head = slop.tableHead(["Checkpoint"], series.map(({ name }) => name));
    const cells = (index) =>
      series.map(({ values, unit = common }) => h("td", { class: "number" }, shown(values[index], unit)));
    const rows = labels.map((label, index) => h("tr", h("th", { scope: "row" }, label), cells(index)));
    const figures = h("table", h("caption", { class: "visually-hidden" }, title), head, h("tbody", rows));
    const box = slop.scrollBox(`Figures: ${title}`, figures);
    return isAlone ? box : h("details", h("summary", "Figures as a table"), box);
  }

  const POINTS = ["circle", "rect", "triangle", "rectRot"];

  function dataset(figure, { name, colour: property, values, unit }, number) {
    const tone = colour(property);
    const look = { label: name, data: values, borderColor: tone, backgroundColor: tone, yAxisID: unit ? "right" : "y" };
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
    const scales = { x: { ...axis, grid: { display: false } }, y: value };
    const other = figure.series.find(({ unit }) => unit)?.unit; // of the series with a scale of its own
    if (other) {
      const title = { display: true, text: other, color: text };
      scales.right = { ...axis, position: "right", min: 0, grid: { display: false }, title };
    }
    const label = ({ dataset, datasetIndex, raw }) =>
      `${dataset.label}: ${shown(raw, figure.series[datasetIndex].unit ?? figure.unit)}`;
    return new Chart(canvas, {
      type: figure.kind,
      data: { labels: figure.labels, datasets: figure.series.map((series, number) => dataset(figure, series, number)) },
      options: {
        animation: still.matches ? false : { duration: 250 },
        responsive: true,
        maintainAspectRatio: false,
        scales,
        plugins: {
          legend: { labels: { color: text, usePointStyle: true, boxHeight: 8 } },
          tooltip: { callbacks: { label } },
        },
      },
    });
  }

  function card(figure) {
    const look = figure.wide ? "card whole-row" : "card";
    const title = h("h3", figure.title);
    if (figure.labels.length < MIN_POINTS) return h("section", { class: look }, title, table(figure, true));
    const canvas = h("canvas", { role: "img", "aria-label": summary(figure) });
    slop.whenNear(canvas, () => {
      if (canvas.isConnected) drawn.add({ figure, canvas, chart: picture(canvas, figure) });
    });
    return h("section", { class: look }, title, h("div", { class: "canvas" }, canvas), table(figure, false));
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
