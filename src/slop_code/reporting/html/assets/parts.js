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

  const pageLoaded =
    document.readyState === "loading"
      ? new Promise((resolve) => addEventListener("DOMContentLoaded", resolve, { once: true }))
      : Promise.resolve();

  const unpacking = new Map();

  function once(id) {
    if (!unpacking.has(id)) unpacking.set(id, unpack(id));
    return unpacking.get(id);
  }

  /** The data of the page, and the names of its parts. */
  slop.unpacked = () => once("data");

  /** A part by its name; null if there is none. */
  slop.part = async (name) => {
    const { parts } = await slop.unpacked();
    await pageLoaded; // parts come after the scripts, so that the first view does not wait for them
    const number = parts.indexOf(name);
    return number < 0 ? null : once(`part-${number}`);
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
