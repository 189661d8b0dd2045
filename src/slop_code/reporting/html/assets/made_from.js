// Inputs and versions that the results of a run were made from.
"use strict";

slop.madeFrom = (() => {
  const { h } = slop;

  /** Values that are the same at all checkpoints, and the labels of those that differ. */
  function split(checkpoints) {
    const values = new Map();
    for (const { made_from: pairs } of checkpoints) {
      for (const [label, value] of pairs) values.set(label, (values.get(label) ?? new Set()).add(value));
    }
    const isSame = ([, { size }]) => size === 1;
    const same = [...values].filter(isSame).map(([label, [value]]) => [label, value]);
    return { same, different: [...values].filter((entry) => !isSame(entry)).map(([label]) => label) };
  }

  /** `entries`: problem and checkpoint of each result of the run. */
  function draw(entries) {
    const known = entries.filter(({ checkpoint }) => checkpoint.made_from.length);
    if (!known.length) return null;
    const { same, different } = split(known.map(({ checkpoint }) => checkpoint));
    const own = ({ made_from: all }) => all.filter(([label]) => different.includes(label));
    const summary = h("summary", `By checkpoint: ${different.join(", ")}`);
    const folded = h("details", { "data-fold": "by checkpoint" }, summary);
    const item = ({ problem, checkpoint }) =>
      h("li", h("strong", `${problem.name} ${checkpoint.name}`), slop.facts(own(checkpoint)));
    const unfold = () => folded.append(h("ul", { class: "by-checkpoint" }, known.map(item)));
    folded.addEventListener("toggle", unfold, { once: true });
    return h("section", { class: "made-from" }, h("h3", "Made from"), slop.facts(same), different.length > 0 && folded);
  }

  return { draw };
})();
