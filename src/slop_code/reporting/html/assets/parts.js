// Lazy work: data are unpacked when they are needed, and views are drawn when they come near the window.
// The page holds data as gzip in base64, in elements that no browser executes.
"use strict";

(() => {
  async function unpack(id) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser has no DecompressionStream; use one of 2024 or later");
    }
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  /** Waits until the browser has read the whole element: it is complete once another follows it. */
  async function arrived(id) {
    while (document.readyState === "loading" && !document.getElementById(id)?.nextElementSibling) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  const unpacking = new Map();

  const NO_TEXTS = Array(6).fill(null);

  /** Parts repeat nothing: a cause has the number of its text, null stands for a test without texts, and a test has its
      row only where that is not the next one. */
  function complete(part) {
    if (!part.causes) return part;
    const causes = part.causes.map(([text, tests]) => [typeof text === "number" ? part.texts[text] : text, tests]);
    let last = -1;
    const tests = part.tests.map(([duration, markers, row = last + 1]) => [(last = row), duration, markers]);
    return { ...part, causes, tests, text_numbers: part.text_numbers.map((numbers) => numbers ?? NO_TEXTS) };
  }

  function once(id) {
    if (!unpacking.has(id)) unpacking.set(id, unpack(id).then(complete));
    return unpacking.get(id);
  }

  /** The data of the page, and the names of its parts. */
  slop.unpacked = () => once("data");

  /** A part by its name; null if there is none. */
  slop.part = async (name) => {
    const { parts } = await slop.unpacked();
    const number = parts.indexOf(name);
    if (number < 0) return null;
    await arrived(`part-${number}`); // parts come after the scripts, so that the first view does not wait for them
    return once(`part-${number}`);
  };

  /** Call `draw` once, when the element comes near the visible area of `root` (by default the window). */
  slop.whenNear = (element, draw, root = null, margin = 600) => {
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        draw();
      },
      { root, rootMargin: `${margin}px` },
    );
    observer.observe(element);
  };
})();
