// Figures of a submission's code over checkpoints, for charts. A figure that is not recorded is a gap, never zero.
"use strict";

slop.code = (() => {
  const MARK = " *"; // after the name of a checkpoint whose figures are incomplete

  const isIncomplete = ({ code }) => Boolean(code?.incomplete);
  const isKnown = ({ series }) => series.some(({ values }) => values.some((value) => value !== null));

  function figures({ checkpoints }) {
    const labels = checkpoints.map((checkpoint) => checkpoint.name + (isIncomplete(checkpoint) ? MARK : ""));
    const values = (key) => checkpoints.map(({ code }) => code?.[key] ?? null);
    const shares = (key) => values(key).map((value) => (value === null ? null : 100 * value));
    const lines = { labels, unit: "lines", whole: true, gaps: true };
    const all = [
      {
        ...lines,
        title: "Lines",
        kind: "line",
        series: [{ name: "lines", colour: "--series-0", values: values("lines") }],
      },
      {
        ...lines,
        title: "Lines added and removed",
        kind: "bar",
        series: [
          { name: "added", colour: "--passed", values: values("added") },
          { name: "removed", colour: "--failed", values: values("removed") },
        ],
      },
      {
        labels,
        title: "Churn: lines added and removed, of the lines before",
        kind: "line",
        unit: "%",
        gaps: true,
        series: [{ name: "churn", colour: "--series-1", values: shares("churn") }],
      },
    ];
    return all.filter(isKnown);
  }

  /** Why figures of checkpoints are incomplete. */
  function notes({ checkpoints }) {
    const incomplete = checkpoints.filter(isIncomplete);
    const items = incomplete.map(({ name, code }) => [name, code.incomplete]);
    const title = `* Figures of ${slop.plural(items.length, "checkpoint")} are incomplete`;
    return items.length ? slop.foldedList(title, items) : null;
  }

  return { figures, notes };
})();
