// What every page of ours is made with: elements, the address, the theme, the live region.
// Text becomes part of the page as text alone: nothing here or elsewhere parses it as markup.
"use strict";

const slop = (() => {
  const ATTRIBUTES = new Set([
    "class",
    "id",
    "role",
    "href",
    "type",
    "value",
    "scope",
    "title",
    "tabindex",
    "colspan",
    "placeholder",
    "autocomplete",
    "spellcheck",
    "selected",
  ]);

  /** An element. Attributes that begin with "on" are listeners; what is null or false is left out. */
  function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name.slice(2), value);
      else if (ATTRIBUTES.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
        element.setAttribute(name, value === true ? "" : String(value));
      } else throw new Error(`h: ${name} is no attribute this page uses`);
    }
    append(element, children);
    return element;
  }

  function append(element, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : String(child));
    }
  }

  /** The children of an element are these from now on. */
  function fill(element, ...children) {
    element.replaceChildren();
    append(element, children);
    return element;
  }

  const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

  function inWords(milliseconds) {
    if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
    const seconds = milliseconds / 1000;
    if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
    const minutes = Math.floor(Math.round(seconds) / 60);
    return minutes < 60
      ? `${minutes} min ${Math.round(seconds) % 60} s`
      : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  // The address says what is shown, so that a link to it shows the same.

  const address = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  function hashOf(state) {
    const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
    return `#${new URLSearchParams(kept)}`;
  }

  const watchers = [];
  const tell = () => watchers.forEach((watcher) => watcher(address()));

  /** Show another state. `replace`: without a step that the Back button would go through. */
  function go(state, { replace = false } = {}) {
    const hash = hashOf(state);
    if (hash === location.hash) return;
    history[replace ? "replaceState" : "pushState"](null, "", hash);
    tell();
  }

  /** `watcher` is called with the address whenever it changes; the caller draws the first state by itself. */
  function onAddress(watcher) {
    if (!watchers.length) {
      addEventListener("popstate", tell);
      addEventListener("click", followLink);
    }
    watchers.push(watcher);
  }

  function followLink(event) {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(Object.fromEntries(new URLSearchParams(link.getAttribute("href").slice(1))));
  }

  // Light and dark: by the system, or as the reader says.

  const THEMES = ["system", "light", "dark"];

  function applyTheme(name) {
    if (name === "system") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", name);
    dispatchEvent(new Event("themechange"));
  }

  function stored(name, value) {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch {
      /* a browser that stores nothing for files keeps the default */
    }
    return null;
  }

  const remembered = () => THEMES.find((name) => name === stored("slop-code-theme")) ?? "system";

  function themeSwitch() {
    const choose = (event) => {
      stored("slop-code-theme", event.target.value);
      applyTheme(event.target.value);
    };
    return h("label", { class: "field" }, "Theme ", select(THEMES, remembered(), { onchange: choose }));
  }

  applyTheme(remembered()); // before anything is drawn
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));

  /** Options are texts, or pairs of a value and its text. */
  function select(options, current, attributes) {
    const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
    return h(
      "select",
      attributes,
      pairs.map(([value, text]) => h("option", { value, selected: String(value) === String(current) }, text)),
    );
  }

  // What a screen reader is told when something changed elsewhere on the page.

  const live = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
  const say = (text) => {
    live.textContent = text;
  };

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      say("The browser does not let this page copy: select the text instead");
      button.textContent = "Select it";
    }
  }

  /** A command to copy; `label` says what it does. */
  function command(label, text) {
    const button = h("button", { type: "button", onclick: () => copy(text, button) }, "Copy");
    return h(
      "div",
      { class: "command" },
      h("code", { tabindex: 0, role: "region", "aria-label": label }, text),
      button,
    );
  }

  /** A wide thing that scrolls in its own box, also by the keyboard. */
  const scrollBox = (label, ...children) =>
    edges(h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 }, children));

  /** A box fades at the side where there is more of it. */
  function edges(box) {
    const look = () => {
      box.classList.toggle("more-left", box.scrollLeft > 1);
      box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
    return box;
  }

  /** Begin: `draw(data)` once they are unpacked; an error is said on the page. */
  async function start(draw) {
    document.body.append(live);
    const main = document.getElementById("main");
    try {
      const { data } = await slop.unpacked();
      main.replaceChildren();
      await draw(data, main, document.getElementById("top"));
    } catch (error) {
      console.error(error);
      fill(main, h("p", { class: "trouble", role: "alert" }, `This page could not be drawn: ${error.message}`));
    }
  }

  return {
    h,
    fill,
    many,
    inWords,
    address,
    hashOf,
    go,
    onAddress,
    themeSwitch,
    select,
    say,
    command,
    scrollBox,
    edges,
    start,
  };
})();
