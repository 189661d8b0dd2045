// Sparklines: the share of tests that passed at each checkpoint, as a small line.
"use strict";

slop.sparkline = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 28;
  const EDGE = 4; // room for the dots
  const MIN_POINTS = 3; // fewer say no more than the figures do
  const MAX_POINTS = 400;

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
    element.append(...children);
    return element;
  }

  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  /** Share of the tests that passed, from 0 to 1; null without a verdict. */
  const rate = (checkpoint) =>
    slop.tests.hasVerdict(checkpoint) && sum(checkpoint.total) ? sum(checkpoint.passed) / sum(checkpoint.total) : null;

  /** Pieces of a line without its gaps. */
  function pieces(points) {
    const all = [[]];
    for (const point of points) {
      if (point.y === null) all.push([]);
      else all.at(-1).push(point);
    }
    return all.filter((piece) => piece.length > 1);
  }

  const at = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;

  /** The line of a piece, and the ground below it down to zero. */
  function shapes(piece) {
    const bottom = HEIGHT - EDGE;
    const below = [{ x: piece.at(-1).x, y: bottom }, { x: piece[0].x, y: bottom }];
    return [
      draw("polygon", { points: [...piece, ...below].map(at).join(" ") }),
      draw("polyline", { points: piece.map(at).join(" ") }),
    ];
  }

  /** A line for each problem, side by side on one scale, within `space` pixels; a dot marks a checkpoint that did not
      pass. Null for few checkpoints. */
  function line(problems, policy, space = 160) {
    const count = sum(problems.map(({ checkpoints }) => checkpoints.length));
    if (count < MIN_POINTS || count > MAX_POINTS) return null;
    const step = Math.max(2, Math.min(28, space / count));
    let x = EDGE;
    const lines = problems.map(({ checkpoints }) => {
      const points = checkpoints.map((checkpoint, number) => {
        const share = rate(checkpoint);
        const y = share === null ? null : HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE);
        return { x: x + number * step, y, look: slop.overview.verdict(checkpoint, policy).look };
      });
      x += checkpoints.length * step;
      return points;
    });
    const dots = lines.flat().filter(({ y, look }) => y !== null && look === "failed");
    const known = problems.flatMap(({ checkpoints }) => checkpoints.map(rate)).filter((share) => share !== null);
    const ends = () => `from ${slop.percent(known[0])} to ${slop.percent(known.at(-1))}`;
    const text = known.length ? ends() : "no checkpoint has a verdict";
    const width = Math.ceil(x);
    const label = `Tests that passed over ${slop.plural(count, "checkpoint")}: ${text}`;
    return draw(
      "svg",
      {
        class: "sparkline",
        role: "img",
        "aria-label": label,
        width,
        height: HEIGHT,
        viewBox: `0 0 ${width} ${HEIGHT}`,
      },
      draw("title", {}, label),
      ...lines.flatMap(pieces).flatMap(shapes),
      ...dots.map(({ x, y }) => draw("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2 })),
    );
  }

  return { line };
})();
