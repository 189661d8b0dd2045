// Shared by every page: elements, the address, the theme, the live region.
// Text is added to the page as text only: nothing parses it as markup.
"use strict";

const slop = (() => {
  const ATTRIBUTES = new Set([
    ..."class id role href type value scope title tabindex colspan".split(" "),
    ..."placeholder autocomplete spellcheck selected".split(" "),
  ]);

  /** An element; `content` may begin with its attributes. Null and false attributes are left out, and functions are
      listeners of the event after "on". */
  function h(tag, ...content) {
    const element = document.createElement(tag);
    const attributes = content[0]?.constructor === Object ? content.shift() : {};
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name.slice(2), value);
      else if (ATTRIBUTES.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
        element.setAttribute(name, value === true ? "" : String(value));
      } else throw new Error(`h: unknown attribute ${name}`);
    }
    append(element, content);
    return element;
  }

  function append(element, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : String(child));
    }
  }

  /** Replace the children of an element. */
  function fill(element, ...children) {
    element.replaceChildren();
    append(element, children);
    return element;
  }

  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  function formatDuration(milliseconds) {
    if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
    const seconds = milliseconds / 1000;
    if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
    const minutes = Math.floor(Math.round(seconds) / 60);
    return minutes < 60
      ? `${minutes} min ${Math.round(seconds) % 60} s`
      : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  /** A share from 0 to 1; 100% only for all of it. */
  const percent = (share) => (share === 1 ? "100%" : `${Math.min(99.9, 100 * share).toFixed(1)}%`);

  /** The file in the name of a test, and the rest of it. */
  function nameParts(name) {
    const cut = name.indexOf("::");
    return cut < 0 ? ["", name] : [name.slice(0, cut + 2), name.slice(cut + 2)];
  }

  // The address holds the state of the view, so that a link to it shows the same.

  const address = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  function hashOf(state) {
    const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
    return `#${new URLSearchParams(kept)}`;
  }

  const watchers = [];
  const notifyWatchers = (followed) => watchers.forEach((watcher) => watcher(address(), followed));

  /** Show another state. `replace`: without a new entry in the history. */
  function go(state, { replace = false } = {}) {
    const hash = hashOf(state);
    if (hash === location.hash) return;
    const opensTest = Boolean(state.test) && !address().test;
    if (replace) history.replaceState(history.state, "", hash);
    else history.pushState({ opensTest }, "", hash);
    notifyWatchers(true);
  }

  /** Show the state without the open test: the one before, if that had none, so that Back leads on from there. */
  function closeTest(state) {
    if (history.state?.opensTest) history.back();
    else go(state, { replace: true });
  }

  /** Call `watcher` with the address whenever it changes; the caller draws the first state itself. The second argument
      is true after a link or a change of a field, false after Back and Forward. */
  function onAddress(watcher) {
    if (!watchers.length) {
      addEventListener("popstate", () => notifyWatchers(false));
      addEventListener("click", followLink);
    }
    watchers.push(watcher);
  }

  function followLink(event) {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const target = Object.fromEntries(new URLSearchParams(link.getAttribute("href").slice(1)));
    go("overlay" in link.dataset ? { ...address(), ...target } : target); // an overlay keeps the rest of the state
  }

  // Theme: light, dark, or that of the system.

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
      /* a browser without storage for local files keeps the default */
    }
    return null;
  }

  const storedTheme = () => THEMES.find((name) => name === stored("slop-code-theme")) ?? "system";

  function themeSwitch() {
    const choose = (event) => {
      stored("slop-code-theme", event.target.value);
      applyTheme(event.target.value);
    };
    return h("label", { class: "field" }, "Theme ", select(THEMES, storedTheme(), { onchange: choose }));
  }

  applyTheme(storedTheme()); // before anything is drawn
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

  // Live region: a screen reader reads it when something changes elsewhere on the page.

  const live = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const announce = (text) => {
    live.textContent = text;
  };

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      announce("Copied");
    } catch {
      announce("The browser does not let this page copy: select the text instead");
      button.textContent = "Select it";
    }
  }

  /** A command with a button that copies it; `label` describes it. */
  function command(label, text) {
    const button = h("button", { type: "button", onclick: () => copy(text, button) }, "Copy");
    const code = h("code", { tabindex: 0, role: "region", "aria-label": label }, text);
    return h("div", { class: "command" }, code, button);
  }

  /** A box that scrolls wide content, also by the keyboard. */
  const scrollBox = (label, ...children) =>
    edges(h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 }, children));

  /** Fades a box at the side where more content is hidden. */
  function edges(box) {
    const update = () => {
      box.classList.toggle("more-left", box.scrollLeft > 1);
      box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    box.addEventListener("scroll", update, { passive: true });
    new ResizeObserver(update).observe(box);
    return box;
  }

  /** Call `draw(data)` once the data are unpacked; an error is shown on the page. */
  async function start(draw) {
    document.body.append(live);
    const main = document.getElementById("main");
    try {
      const { data } = await slop.unpacked();
      main.replaceChildren();
      await draw(data, main, document.getElementById("top"));
    } catch (error) {
      console.error(error);
      fill(main, h("p", { class: "alert", role: "alert" }, `This page could not be drawn: ${error.message}`));
    }
  }

  return {
    h,
    fill,
    plural,
    formatDuration,
    percent,
    nameParts,
    address,
    hashOf,
    go,
    closeTest,
    onAddress,
    themeSwitch,
    select,
    announce,
    command,
    scrollBox,
    edges,
    start,
  };
})();
