// The table of points: sorted over all lines, narrowed like the chart, linked with it.
const table = one("table.points");
const homes = new Map(table ? all("tr[data-i]", table).map((row) => [row, row.parentElement]) : []);
const heads = table ? all("thead th", table) : [];
const flat = make("tbody");
const value = (row, column) => {
  const text = (one("a", row.cells[column]) || row.cells[column].firstChild).textContent.trim();
  const factor = text.startsWith("×");  // of a change too large for percents
  const number = Number(text.replace("×", "").split(/[\s%]/)[0].replaceAll(",", "")) * (factor ? 100 : 1);
  return Number.isNaN(number) ? text : number;
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
};
const missing = (text) => text === "–";

const badges = () => {
  for (const [row, home] of homes) {
    if (!one("th .badge", row)) row.cells[0].prepend(one(".group .badge", home).cloneNode(true), " ");
  }
};

const sort = () => {
  if (!table) return;
  const column = state.sort ? heads.findIndex((headed) => headed.dataset.key === state.sort.key) : -1;
  heads.forEach((headed, index) => {
    if (index === column) headed.setAttribute("aria-sort", state.sort.down ? "descending" : "ascending");
    else headed.removeAttribute("aria-sort");
  });
  table.classList.toggle("flat", column >= 0);
  if (column < 0) {
    flat.remove();
    for (const [row, home] of homes) home.append(row);
  } else {
    badges();
    const keyed = [...homes.keys()].map((row) => [value(row, column), row]);
    const sign = state.sort.down ? -1 : 1;
    keyed.sort(([a], [b]) => missing(a) - missing(b) || sign * compare(a, b));
    table.append(flat);
    flat.append(...keyed.map(([, row]) => row));
  }
  place();
};

const narrow = () => {
  if (!table) return;
  for (const row of homes.keys()) row.hidden = !shown(Number(row.dataset.i));
  for (const group of all("tr.group", table)) {
    group.hidden = ![...homes].some(([row, home]) => home === group.parentElement && !row.hidden);
  }
  place();
};

if (table) {
  heads.forEach((headed) => one("button", headed).addEventListener("click", () => {
    const key = headed.dataset.key, before = state.sort && state.sort.key === key ? state.sort : null;
    state.sort = before && before.down ? null : { key, down: Boolean(before) };
    sort();
    remember();
  }));
  for (const row of homes.keys()) {
    const link = one("th > a", row), index = Number(row.dataset.i);
    link.setAttribute("role", "button");
    link.setAttribute("aria-expanded", "false");
    row.addEventListener("click", (event) => {
      if (event.target.closest("a, button") && event.target.closest("a") !== link) return;
      event.preventDefault();
      if (!String(getSelection())) toggle(index);
    });
    link.addEventListener("keydown", (event) => {
      if (event.key === " ") { event.preventDefault(); toggle(index); }
    });
    row.addEventListener("pointerenter", () => light(index));
    row.addEventListener("pointerleave", () => light(null));
    link.addEventListener("focus", () => light(index));
    link.addEventListener("blur", () => light(null));
  }
}
