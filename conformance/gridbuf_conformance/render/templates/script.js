"use strict";
(() => {
  const root = document.documentElement;
  const one = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Theme: the system's choice until the reader makes one. Storage may be denied to local files.
  const memory = {
    get() { try { return localStorage.getItem("gridbuf-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("gridbuf-theme", value); } catch { /* the choice lasts as long as the page */ } },
  };
  if (memory.get()) root.dataset.theme = memory.get();
  one("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    memory.set(root.dataset.theme);
  });

  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  const filters = one("filters");
  if (!filters) return;
  const query = one("q"), library = one("library"), group = one("group"), chips = all(".chip");
  const expand = one("expand");
  const libraries = [...library.options].slice(1).map((option) => option.value);
  const KINDS = { f: "failed", e: "error", k: "known", r: "fragile", a: "advisory", p: "passed", s: "silent" };
  const SIGNS = { f: "✗", e: "‼", k: "≈", r: "△", a: "!", p: "✓", s: "·" };
  const cards = all("details.rule").map((element) => ({
    element,
    group: element.dataset.group,
    text: element.textContent.replace(/\s+/g, " ").toLowerCase(),
    kinds: element.dataset.kinds,
    badges: all(".badge[data-library]", element),
    parts: all(".entry", element),
  }));

  function matches(card, words, kinds) {
    return (!group.value || card.group === group.value)
      && [...card.kinds].some((letter, n) => (!library.value || libraries[n] === library.value) && kinds.has(letter))
      && words.every((word) => card.text.includes(word));
  }

  function apply() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.letter));
    let shown = 0;
    for (const card of cards) {
      const visible = matches(card, words, kinds);
      card.element.hidden = !visible;
      shown += visible;
      const isOther = (part) => !!library.value && part.dataset.library !== library.value;
      for (const badge of card.badges) badge.classList.toggle("other", isOther(badge));
      for (const part of card.parts) part.hidden = isOther(part);
    }
    one("shown").textContent = `${shown} of ${cards.length} rules shown`;
    one("nothing").hidden = shown > 0;
  }

  function press(chosen) {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chosen(chip.dataset.kind)));
  }

  function showEverything() {
    query.value = library.value = group.value = "";
    press(() => true);
    apply();
  }

  filters.addEventListener("submit", (event) => event.preventDefault());
  for (const control of [query, library, group]) control.addEventListener("input", apply);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  one("reset").addEventListener("click", showEverything);
  expand.addEventListener("click", () => {
    const open = expand.getAttribute("aria-pressed") !== "true";
    expand.setAttribute("aria-pressed", String(open));
    expand.textContent = open ? "Collapse all" : "Expand all";
    for (const card of cards) card.element.open = open;
  });
  for (const cell of all(".cell")) {
    cell.addEventListener("click", () => {
      query.value = "";
      library.value = cell.dataset.library;
      group.value = cell.dataset.group;
      const broken = new Set(["failed", "error", "known", "fragile", "advisory"]);
      press((kind) => !broken.has(cell.dataset.kind) || broken.has(kind));
      apply();
      one("rules").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    });
  }

  // A heading opens its group: a mark for each rule and library, which leads to the rule.
  function mark(card, letter, name) {
    const link = document.createElement("a");
    const id = card.element.id;
    link.href = `#${encodeURIComponent(id)}`;
    link.className = `mark k-${KINDS[letter] ?? "silent"}`;
    link.title = `${id} ${name}: ${KINDS[letter] === "silent" || !KINDS[letter] ? "not judged" : KINDS[letter]}`;
    link.setAttribute("aria-label", link.title);
    link.textContent = SIGNS[letter] ?? "";
    return link;
  }

  function strip(table, place, group) {
    const found = document.createElement("span");
    found.className = "strip";
    const name = place.parentElement.dataset.library;
    const rows = all("tbody tr", table).map((row) => libraries.indexOf(row.dataset.library));
    const wasAsked = (card) => rows.some((row) => card.kinds[row] !== "-");
    for (const card of cards.filter((one) => one.group === group && wasAsked(one))) {
      if (name !== undefined) found.append(mark(card, card.kinds[libraries.indexOf(name)], name));
      else found.append(Object.assign(document.createElement("i"), { textContent: card.element.id.split("-").pop(), title: card.element.id }));
    }
    place.append(found);
  }

  for (const heading of all(".heading")) {
    heading.addEventListener("click", () => {
      const open = heading.getAttribute("aria-expanded") !== "true";
      heading.setAttribute("aria-expanded", String(open));
      const table = heading.closest("table");
      for (const place of all("[data-group]:is(th, td)", table)) {
        if (place.dataset.group !== heading.dataset.group) continue;
        all(".strip", place).forEach((old) => old.remove());
        if (open) strip(table, place, heading.dataset.group);
      }
    });
  }

  // In the matrix the arrow keys go from cell to cell, and Tab leaves it: forty rows are one stop.
  for (const table of all(".matrix")) {
    const grid = all("tbody tr", table).map((row) => all(".cell", row));
    grid.flat().forEach((cell, n) => { cell.tabIndex = n ? -1 : 0; });
    const columnOf = (cell) => cell.closest("td").cellIndex;
    table.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const cell = event.target.closest?.(".cell");
      if (!step || !cell) return;
      event.preventDefault();
      const row = grid.findIndex((cells) => cells.includes(cell));
      let next;
      if (step[1]) next = grid[row][grid[row].indexOf(cell) + step[1]];
      for (let r = row + step[0]; step[0] && !next && r >= 0 && r < grid.length; r += step[0]) {
        next = grid[r].find((other) => columnOf(other) === columnOf(cell));
      }
      if (!next) return;
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      query.focus();
    }
  });

  // A link to one rule (report.html#PB-01) shows it whatever the filters say.
  function follow() {
    const target = location.hash && one(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.matches("details.rule")) return;
    if (target.hidden) showEverything();
    target.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  apply();
  follow();
})();
