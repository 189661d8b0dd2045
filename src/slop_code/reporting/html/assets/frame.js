// Parts of every page: header and footer, badges, cells, the filter, the dialog of a test, rows that are drawn lazily.
"use strict";

(() => {
  const { h, fill, go, address } = slop;
  const pageTitle = document.title;

  /** Adds the name of the view to the title of the window. */
  slop.title = (view) => {
    document.title = view ? `${view} – ${pageTitle}` : pageTitle;
  };

  /** A sign that a screen reader skips, and a text for screen readers alone. */
  slop.sign = (symbol) => h("span", { "aria-hidden": "true" }, symbol);
  slop.spoken = (text) => h("span", { class: "visually-hidden" }, text);

  slop.badge = ({ look, symbol, words }) => h("span", { class: `badge ${look}` }, slop.sign(symbol), ` ${words}`);

  const SIGNS = { passed: "✓", failed: "×", error: "!", skipped: "–" };
  slop.statusBadge = (status) => slop.badge({ look: status, symbol: SIGNS[status], words: status });

  /** The look of a verdict; null stands for none. */
  slop.verdictLook = (passed) => {
    if (passed === null) return { look: "none", symbol: "?", words: "no verdict" };
    return passed
      ? { look: "passed", symbol: "✓", words: "passed" }
      : { look: "failed", symbol: "×", words: "not passed" };
  };

  /** The head of a table; columns of figures are aligned to the right. */
  slop.tableHead = (texts, figures = []) => {
    const heads = (names, look) => names.map((name) => h("th", { scope: "col", class: look }, name));
    return h("thead", h("tr", heads(texts, null), heads(figures, "number")));
  };

  const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };
  const HEAD_ROLES = { row: "rowheader", col: "columnheader", colgroup: "columnheader", rowgroup: "rowheader" };

  /** A narrow screen shows the cells of a row below each other, each with the head of its column: for a table of the
      class `stacked`, or a row of it. The roles are written out, as a browser takes them from a table whose cells are
      laid out in another way. */
  slop.stackable = (part, heads) => {
    for (const element of [part, ...part.querySelectorAll("thead, tbody, tr, td, th")]) {
      const tag = element.localName;
      element.setAttribute("role", tag === "th" ? HEAD_ROLES[element.scope] : ROLES[tag]);
      if (tag === "td" && element.colSpan === 1) element.dataset.head = heads[element.cellIndex];
    }
    return part;
  };

  /** A number of tests that links to them; `words` continue it for screen readers. */
  slop.countCell = (count, { look = "", symbol, href, words }) =>
    count
      ? h("td", { class: `number ${look}` }, h("a", { href }, slop.sign(`${symbol} `), count, slop.spoken(words)))
      : h("td", { class: "number dim" }, "0");

  /** A list that is folded at first; each item has a name and a text. `fold`: its name, where the summary changes. */
  slop.foldedList = (summary, items, { more = null, fold = null } = {}) => {
    const list = items.map(([name, text]) => h("li", h("strong", name), " ", text));
    const attributes = { class: "warnings", "data-fold": fold };
    return h("details", attributes, h("summary", summary), h("ul", list, more && h("li", more)));
  };

  /** Names and values; those without a value are left out. */
  slop.facts = (pairs) => {
    const fact = ([name, value]) => h("div", h("dt", name), h("dd", value));
    return h("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(fact));
  };

  /** Signs and their meanings; `items`: pairs of an element and its text. */
  slop.legend = (label, items) =>
    h("ul", { class: "legend", "aria-label": label }, items.map(([sign, text]) => h("li", sign, text)));

  /** Changes the policy in the address. */
  slop.policyField = ({ policies }) => {
    const choose = ({ target }) => go({ ...address(), policy: target.value === policies[0] ? null : target.value });
    return slop.field("Policy", slop.select(policies, policies[0], { id: "policy", onchange: choose }));
  };

  slop.emptyCell = (words) => h("td", { class: "number dim" }, slop.spoken(words), slop.sign("–"));

  slop.field = (text, control) => h("label", { class: "field" }, `${text} `, control);

  /** The meanings of policies, groups and other words of the page, folded. */
  const meanings = (pairs) => {
    const meaning = ([name, text]) => h("div", h("dt", name), h("dd", text));
    return h("details", { class: "meanings" }, h("summary", "What the words mean"), h("dl", pairs.map(meaning)));
  };

  /** `searchField`: the function that returns the field for the key "/". */
  slop.frame = ({ main, top, data, settings, nav = null, searchField }) => {
    const skip = h("button", { type: "button", class: "skip", onclick: () => main.focus() }, "Skip to the content");
    document.body.prepend(skip);
    const controls = h("div", { class: "settings" }, settings, slop.themeSwitch());
    top.append(...[nav, controls, meanings(data.meanings)].filter(Boolean));
    main.after(h("footer", `slop-code ${data.slop_code}`));
    addEventListener("keydown", (event) => {
      const typing = event.target.closest?.("input, select, textarea, dialog");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || typing) return;
      event.preventDefault();
      searchField()?.focus();
    });
  };

  /** Draw and keep the focus; if its element is gone, focus the heading of what was drawn. */
  slop.keepFocus = (draw, heading) => {
    const id = document.activeElement?.id;
    draw();
    if (document.activeElement !== document.body) return;
    (document.getElementById(id) ?? heading())?.focus();
  };

  /** A button that removes these keys and the text to search from the address. */
  slop.clearButton = (keys, text) => {
    const clear = Object.fromEntries([...keys, "q"].map((key) => [key, null]));
    return h("button", { type: "button", onclick: () => go({ ...address(), ...clear }) }, text);
  };

  /** `choices`: labels with their keys in the address and their options; `q` is the text to search in names. */
  slop.filterForm = (choices, state) => {
    const set = (key) => (event) => go({ ...address(), [key]: event.target.value });
    const keys = choices.map(({ key }) => key);
    return h(
      "form",
      { class: "filters", role: "search", "aria-label": "Filter tests", onsubmit: (event) => event.preventDefault() },
      choices.map(({ text, key, options }) =>
        slop.field(text, slop.select(options, state[key] ?? "", { id: `filter-${key}`, onchange: set(key) })),
      ),
      slop.field(
        "Name",
        h("input", {
          type: "search",
          id: "filter-text",
          value: state.q ?? "",
          placeholder: "part of a name",
          autocomplete: "off",
          spellcheck: "false",
          oninput: (event) => go({ ...address(), q: event.target.value }, { replace: true }),
        }),
      ),
      slop.clearButton(keys, "Clear"),
    );
  };

  /** Sets the fields from the address, also after Back. */
  slop.setFilter = (choices, state) => {
    for (const { key, options } of choices) {
      const field = document.getElementById(`filter-${key}`);
      options.forEach((option, number) => {
        field.options[number].textContent = [option].flat().at(-1);
      });
      field.value = state[key] ?? "";
      if (field.selectedIndex < 0) field.value = "";
    }
    const text = document.getElementById("filter-text");
    if (text.value !== (state.q ?? "")) text.value = state.q ?? "";
  };

  /** "12 of 40 tests shown", also announced to screen readers. */
  slop.countShown = (rows, all) => {
    const text = `${rows === all ? slop.plural(all, "test") : `${rows} of ${slop.plural(all, "test")}`} shown`;
    slop.announce(text);
    return h("p", { class: "left", id: "left" }, text);
  };

  /** Rows of a table that are drawn when they come near in `box`; before that, an empty row of their `height`. */
  slop.lazyRows = (rows, drawRow, { columns, height, box, margin }) => {
    const placeholder = h("td", { colspan: columns });
    placeholder.style.height = height;
    const body = h("tbody", h("tr", { "aria-hidden": "true" }, placeholder));
    let drawn = false;
    const draw = () => {
      if (!drawn) fill(body, rows.map(drawRow));
      drawn = true;
    };
    slop.whenNear(body, draw, box, margin);
    return { body, draw };
  };

  /** After a test that a link opened, with nothing to return to: its row, else the heading. */
  function focusBehind(test) {
    const nameIn = (link) => new URLSearchParams(link.getAttribute("href").slice(1)).get("test");
    const links = [...document.querySelectorAll("main a[href*='test=']")];
    const row = links.find((link) => nameIn(link) === test) ?? document.querySelector("main .grid [tabindex='0']");
    (row ?? document.querySelector("main h2"))?.focus({ preventScroll: true });
  }

  /** The dialog of a test; `keys`: keys of the address that say which test is open. */
  slop.dialog = (look, keys) => {
    const element = h("dialog", { class: look, "aria-labelledby": "detail-name" });
    const closed = Object.fromEntries(keys.map((key) => [key, null]));
    element.addEventListener("close", () => {
      const { test } = address();
      if (test) slop.closeTest({ ...address(), ...closed });
      if (document.activeElement === document.body || element.contains(document.activeElement)) focusBehind(test);
    });
    element.addEventListener("click", (event) => {
      if (event.target === element) element.close();
    });
    const hide = () => {
      if (element.open) element.close();
    };
    /** `bar`: controls before the button that closes. A control that has the focus keeps it. */
    const show = ({ name, bar = null }, ...content) => {
      const close = h("button", { type: "button", id: "detail-close", onclick: hide }, "Close");
      const focused = element.open && element.contains(document.activeElement) ? document.activeElement.id : "";
      const heading = h("h2", { id: "detail-name", tabindex: -1 }, name);
      const header = h("header", h("div", { class: "panel-bar" }, bar, close), heading);
      fill(element, header, h("div", { class: "content" }, content));
      if (!element.isConnected) document.body.append(element);
      if (!element.open) element.showModal();
      ((focused && document.getElementById(focused)) || heading).focus({ preventScroll: true });
      element.scrollTop = 0;
    };
    return { element, show, hide };
  };
})();
