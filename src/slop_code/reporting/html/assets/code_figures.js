// Figures of a submission's code over checkpoints, for charts. A figure that is not recorded is a gap, never zero.
"use strict";

slop.code = (() => {
  const MARK = " *"; // after the name of a checkpoint whose figures are incomplete
  const PARTS = ["implementation", "tests"];

  const isIncomplete = ({ code }) => Boolean(code?.incomplete);
  const isKnown = ({ values }) => values.some((value) => value !== null);

  const labels = ({ checkpoints }) =>
    checkpoints.map((checkpoint) => checkpoint.name + (isIncomplete(checkpoint) ? MARK : ""));

  /** Lines of the submission as a series with a scale of its own; null where they are not recorded. */
  function size({ checkpoints }) {
    const values = checkpoints.map(({ code }) => code?.lines ?? null);
    const series = { name: "lines of code", colour: "--none", unit: "lines", values };
    return isKnown(series) ? series : null;
  }

  function figures(problem) {
    const { checkpoints } = problem;
    const series = (name, colour, pick, factor = 1) => {
      const value = ({ code }) => (code ? pick(code) : null) ?? null;
      const values = checkpoints.map(value).map((value) => (value === null ? null : factor * value));
      return { name, colour: `--${colour}`, values };
    };
    const common = { labels: labels(problem), kind: "line", gaps: true };
    const chart = (title, unit, ...all) => ({ ...common, title, unit, series: all });
    const quality = (title, part) =>
      chart(
        title,
        "%",
        series("verbosity", "series-0", (code) => code[part]?.verbosity, 100),
        series("erosion", "series-1", (code) => code[part]?.erosion, 100),
        series("cog_erosion", "series-2", (code) => code[part]?.cog_erosion, 100),
      );
    const ofParts = (key) => PARTS.map((part, number) => series(part, `series-${number}`, (code) => code[part]?.[key]));
    const all = [
      {
        ...chart(
          "Lines added and removed",
          "lines",
          series("added", "passed", ({ added }) => added),
          series("removed", "failed", ({ removed }) => removed),
        ),
        kind: "bar",
        whole: true,
      },
      chart(
        "Churn: lines added and removed, of the lines before",
        "%",
        series("churn", "series-1", ({ churn }) => churn, 100),
      ),
      quality("Verbosity and erosion", "implementation"),
      quality("Verbosity and erosion of the submission's own tests", "tests"),
      { ...chart("Source lines", "lines", ...ofParts("source_lines")), whole: true },
      { ...chart("Largest complexity of a function", "complexity", ...ofParts("max_complexity")), whole: true },
    ];
    const known = all.map((figure) => ({ ...figure, series: figure.series.filter(isKnown) }));
    return known.filter(({ series }) => series.length);
  }

  /** Why figures of checkpoints are incomplete. */
  function notes({ checkpoints }) {
    const incomplete = checkpoints.filter(isIncomplete);
    const items = incomplete.map(({ name, code }) => [name, code.incomplete]);
    const title = `* Figures of ${slop.plural(items.length, "checkpoint")} are incomplete`;
    return items.length ? slop.foldedList(title, items) : null;
  }

  return { figures, labels, notes, size };
})();
