// What is done later: data are unpacked when they are wanted, and views drawn when they come near.
// Data stand in the page as gzip in base64, in elements that no browser runs.
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

  const whole =
    document.readyState === "loading"
      ? new Promise((resolve) => addEventListener("DOMContentLoaded", resolve, { once: true }))
      : Promise.resolve();

  const promised = new Map();

  function once(id) {
    if (!promised.has(id)) promised.set(id, unpack(id));
    return promised.get(id);
  }

  /** What was given as data, and the names of the parts. */
  slop.unpacked = () => once("data");

  /** A part by its name; null if there is none. */
  slop.part = async (name) => {
    const { parts } = await slop.unpacked();
    await whole; // parts stand behind the scripts, so that the first view does not wait for them
    const number = parts.indexOf(name);
    return number < 0 ? null : once(`part-${number}`);
  };

  /** Call `draw` once, when the element is nearly in view within `root` (the window, if there is none). */
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
