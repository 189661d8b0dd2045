// Report of an evaluation that goes on: says how old the page is, and loads it again from disk when a newer one is due.
"use strict";

slop.live = (() => {
  const MIN_WAIT_S = 5;
  const MAX_WAIT_S = 600;
  const LATE = 3; // times the longest interval of the writer
  const TYPING_S = 10;
  let acted = 0; // seconds since the epoch

  const now = () => Date.now() / 1000;
  const inField = () => document.activeElement?.matches("input, select, textarea");

  /** What the reader does that a new page would disturb, with the moment at which it ends. */
  const BUSY = [
    [() => document.hidden, "when it is looked at"],
    [() => document.querySelector("dialog[open]") || slop.address().test, "when the test is closed"],
    [() => inField() && now() - acted < TYPING_S, "when nothing is typed"],
    [() => getSelection()?.isCollapsed === false, "when no text is selected"],
  ];

  const isLate = ({ every }, age) => age > LATE * every;

  /** Seconds from loading the page to loading it again: longer, the longer nothing has changed. */
  const wait = (live, age) =>
    isLate(live, age)
      ? Math.min(Math.max(age / LATE, live.every), MAX_WAIT_S)
      : Math.min(Math.max(age, MIN_WAIT_S), Math.max(live.every, MIN_WAIT_S));

  function duration(seconds) {
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    const minutes = Math.floor(seconds / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  function words(live, age, until) {
    if (isLate(live, age)) {
      return `Not updated for ${duration(age)}: the evaluation may have ended or been stopped`;
    }
    return `Live: written ${duration(age)} ago${until ? `; a newer page is loaded ${until}` : ""}`;
  }

  // The address has the view. Positions, folds and the focus are kept in the entry of the history. They are restored by
  // names, as a newer page has other parts, and each when it is drawn, which may be late.

  const main = () => document.getElementById("main");
  const PARTS = "details, .scroll";
  const KEPT = "#top details, #main details, #main .scroll";
  const MAX_NAME = 200; // characters, as a browser keeps little in the history
  const AROUND = `${PARTS}, .kind, .card, tr, tbody`;

  const nameOf = (element) =>
    element.dataset.runName ??
    element.dataset.checkpoint ??
    element.dataset.fold ??
    element.getAttribute("aria-label") ??
    element.querySelector("summary, h3, h4, th")?.textContent ??
    "";

  /** The names of an element and of those around it. */
  function keyOf(element) {
    const names = [];
    for (let part = element; part; part = part.parentElement.closest(AROUND)) {
      names.push(nameOf(part).slice(0, MAX_NAME));
    }
    return JSON.stringify(names);
  }

  const parts = () => [...document.querySelectorAll(KEPT)].map((element) => ({ element, key: keyOf(element) }));
  const topOf = (element) => element.getBoundingClientRect().top;

  const stateOf = (element) =>
    element.localName === "details" ? { open: element.open } : { scroll: [element.scrollLeft, element.scrollTop] };

  function setState(element, { open, scroll }) {
    if (scroll) element.scrollTo(...scroll);
    else element.open = open;
  }

  /** Key and distance from the top of the window of the fold that is nearest to it. */
  function anchor(all) {
    const tops = all
      .filter(({ element }) => element.localName === "details" && element.checkVisibility())
      .map(({ element, key }) => ({ key, top: topOf(element) }))
      .sort((a, b) => Math.abs(a.top) - Math.abs(b.top));
    return scrollY && tops.length ? tops[0] : null;
  }

  function focused() {
    const element = document.activeElement;
    if (element?.id) return { selector: `#${CSS.escape(element.id)}` };
    if (element?.localName === "summary") return { key: keyOf(element.parentElement) };
    const href = element?.getAttribute("href");
    return href ? { selector: `${element.localName}[href="${CSS.escape(href)}"]` } : null;
  }

  function reload() {
    const all = parts();
    const states = all.map(({ element, key }) => [key, stateOf(element)]);
    const kept = { page: [scrollX, scrollY], states, anchor: anchor(all), focus: focused() };
    history.scrollRestoration = "manual";
    history.replaceState(kept, "");
    location.reload();
  }

  function focus({ key, selector }, find) {
    const element = key ? find(key)?.querySelector("summary") : document.querySelector(selector);
    element?.focus({ preventScroll: true });
    if (element?.type === "search") element.setSelectionRange(element.value.length, element.value.length);
  }

  /** Restores each part when it is drawn. What the reader was looking at stays in its position until they scroll. */
  function restore() {
    const kept = history.state;
    if (!kept?.states) return;
    history.replaceState(null, "");
    history.scrollRestoration = "auto";
    const states = new Map(kept.states);
    const root = document.documentElement;
    root.style.overflowAnchor = "none"; // the browser moves the page, too, when something above is drawn
    scrollTo(...kept.page);
    let position = scrollY;
    let wanted = kept.focus;
    const step = () => {
      const all = parts();
      for (const { element, key } of all.filter(({ key }) => states.has(key))) {
        setState(element, states.get(key));
        states.delete(key);
      }
      const find = (key) => all.find((part) => part.key === key)?.element;
      if (document.activeElement !== document.body) wanted = null;
      if (wanted) focus(wanted, find);
      if (position !== null) position = align(kept, find, position);
      root.style.overflowAnchor = position === null ? "" : "none";
      if (!states.size && !wanted && position === null) observer.disconnect();
    };
    const observer = new MutationObserver(step);
    observer.observe(main(), { childList: true, subtree: true });
    step();
  }

  /** The position after scrolling; null once the reader has scrolled. */
  function align({ page, anchor: wanted }, find, position) {
    if (scrollY !== position) return null;
    const element = wanted && find(wanted.key);
    if (element?.checkVisibility()) scrollBy(0, topOf(element) - wanted.top);
    else scrollTo(...page);
    return scrollY;
  }

  /** `live`: when the page was written and how often that happens, in seconds; null where nothing goes on. */
  function start(live, top) {
    if (live) watch(live, top);
    restore();
  }

  function watch(live, top) {
    const text = slop.h("p", { class: "live", role: "status", "aria-live": "off" });
    top.append(text);
    if (live.running) top.append(slop.h("p", { class: "live" }, `Running: ${live.running}`));
    const age = () => Math.max(0, now() - live.written);
    const due = now() + wait(live, age());
    const tick = () => {
      const until = now() < due ? null : (BUSY.find(([isBusy]) => isBusy())?.[1] ?? "now");
      text.textContent = words(live, age(), until);
      if (until !== "now") return;
      clearInterval(timer);
      reload();
    };
    const timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
    for (const kind of ["keydown", "pointerdown", "input"]) {
      addEventListener(kind, () => (acted = now()), { capture: true, passive: true });
    }
    tick();
  }

  return { start };
})();
