"use strict";
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const card = document.getElementById("card");

  const tabs = all("[role=tab]");
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const select = (chosen) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      panel(tab).hidden = !on;
    }
  };
  const step = { ArrowRight: 1, ArrowLeft: -1 };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => {
      select(tab);
      history.replaceState(null, "", tab.dataset.hash);
    });
    tab.addEventListener("keydown", (event) => {
      const next = tabs[(index + (step[event.key] || 0) + tabs.length) % tabs.length];
      if (next !== tab) { next.focus(); next.click(); }
    });
  });
  if (tabs.length) {
    tabs[0].parentElement.hidden = false;
    select(tabs.find((tab) => tab.dataset.hash === location.hash) || tabs[0]);
  }

  const show = (mark) => {
    const box = mark.getBoundingClientRect();
    card.textContent = mark.dataset.card;
    card.hidden = false;
    const left = Math.min(box.right + 8, innerWidth - card.offsetWidth - 8);
    const top = Math.min(box.top, innerHeight - card.offsetHeight - 8);
    card.style.left = Math.max(8, left) + "px";
    card.style.top = Math.max(8, top) + "px";
  };
  const light = (point, on) => {
    for (const part of all("[data-point='" + point + "']")) part.classList.toggle("on", on);
  };
  const texts = {};
  const key = (mark) => mark.closest("figure").id + mark.dataset.point;
  for (const mark of all("a.mark")) {
    const title = mark.querySelector("title");
    if (title) { texts[key(mark)] = title.textContent; title.remove(); }
    mark.dataset.card = texts[key(mark)];
    mark.setAttribute("aria-label", mark.dataset.card.replaceAll("\n", ", "));
    for (const name of ["mouseenter", "focus"]) {
      mark.addEventListener(name, () => { show(mark); light(mark.dataset.point, true); });
    }
    for (const name of ["mouseleave", "blur"]) {
      mark.addEventListener(name, () => { card.hidden = true; light(mark.dataset.point, false); });
    }
  }
  for (const row of all("tr[data-point]")) {
    row.addEventListener("mouseenter", () => light(row.dataset.point, true));
    row.addEventListener("mouseleave", () => light(row.dataset.point, false));
  }

  const order = (cell) => (cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v));
  const compare = (a, b) => (typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), "en", { numeric: true }));
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      for (const group of table.tBodies) {
        const rows = all("tr[data-point]", group);
        rows.sort((a, b) => compare(order(a.cells[column]), order(b.cells[column])) * (down ? -1 : 1));
        group.append(...rows);
      }
    }));
  }

  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
