// The card of a point: beside the pointer, or beside the mark that has the focus. One mark is a stop
// of the Tab key; arrows lead along a line and from line to line.
const card = document.getElementById("card");
const textOf = (key, row) => {
  const figure = data.figures.find((known) => known.key === key);
  return figure && figure.of[row] ? `${figure.of[row]} ${figure.unit}` : "";
};
const nameOf = (row) => one(`tr[data-i="${row}"] > th > a`).textContent;
const lineOf = (row) => {
  const group = one(`.legend [value="${data.rows.line[row]}"]`);
  return group ? group.textContent.trim() : "";
};

const changed = (key, row) => {
  const found = data.changes[key] && data.changes[key][row];
  return found ? [found.slice(1), data.verdicts[found[0]].replaceAll("-", " ")] : null;
};
const change = (key, row) => {
  const found = changed(key, row);
  return found ? `${found[0]} against the baseline: ${found[1]}` : "";
};

const told = (row) => {
  const { runs, chance, valid } = data.rows, front = Object.values(chartOf().lines).some((rows) => rows.includes(row));
  return [
    `${nameOf(row)} · ${lineOf(row)}`,
    textOf(state.y, row), change(state.y, row),
    `${textOf(state.x, row)}, ${axisOf("x").title}`, change(state.x, row),
    valid[row] ? "" : data.rows.status[row],
    valid[row] && front ? "on the frontier" : "",
    valid[row] && chance[row] ? `on the deciding frontier with a chance of ${chance[row]}` : "",
    valid[row] ? (runs[row] > 1 ? `${runs[row]} runs` : "one run") : "",
    data.rows.reused[row] ? `reused from ${data.rows.reused[row]}` : "",
  ].filter(Boolean).join("\n");
};

let lit = null;
const light = (row) => {
  if (row === lit) return;
  if (lit !== null) for (const part of all(`[data-i="${lit}"]`)) part.classList.remove("on");
  lit = row;
  if (row === null) { card.hidden = true; return; }
  for (const part of all(`[data-i="${row}"]`)) part.classList.add("on");
};

const showCard = (row) => {
  light(row);
  const box = one("path, use", marks.get(row)).getBoundingClientRect();
  card.textContent = told(row);
  card.hidden = false;
  const left = box.right + 14 + card.offsetWidth > innerWidth ? box.left - 14 - card.offsetWidth : box.right + 14;
  const top = Math.min(box.top - 6, innerHeight - card.offsetHeight - 8);
  card.style.left = `${Math.max(8, Math.min(left, innerWidth - card.offsetWidth - 8))}px`;
  card.style.top = `${Math.max(8, top)}px`;
};

const REACH = 26;
const nearest = (event) => {
  const box = plot.getBoundingClientRect(), x = placedOf("x"), y = placedOf("y");
  let found = null, least = REACH;
  for (const row of marks.keys()) {
    if (!drawn(row)) continue;
    const away = Math.hypot(box.left + x.at[row] / 1e4 * box.width - event.clientX, box.top + y.at[row] / 1e4 * box.height - event.clientY);
    if (away < least) [found, least] = [row, away];
  }
  return found;
};

let stop = null;
const stops = () => {
  if (stop === null || !drawn(stop)) stop = [...marks.keys()].sort((a, b) => placedOf("x").at[a] - placedOf("x").at[b]).find(drawn) ?? null;
  for (const [row, mark] of marks) mark.setAttribute("tabindex", row === stop ? 0 : -1);
};

const along = (line) => [...marks.keys()].filter((row) => drawn(row) && data.rows.line[row] === line)
  .sort((a, b) => placedOf("x").at[a] - placedOf("x").at[b] || a - b);
const neighbour = (row, key) => {
  const line = data.rows.line[row], here = along(line), at = here.indexOf(row);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key], turn = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (step) return here[at + step];
  if (key === "Home") return here[0];
  if (key === "End") return here.at(-1);
  if (!turn) return undefined;
  const open = lines.filter((other) => along(other).length);
  const x = placedOf("x").at, next = along(open[(open.indexOf(line) + turn + open.length) % open.length]);
  return next.reduce((best, other) => (Math.abs(x[other] - x[row]) < Math.abs(x[best] - x[row]) ? other : best));
};

if (plot) {
  const area = plot.closest("figure");
  for (const mark of marks.values()) one("title", mark).remove();
  plot.setAttribute("aria-label", one(":scope > title", plot).textContent);
  one(":scope > title", plot).remove();
  area.addEventListener("pointermove", (event) => {
    const row = nearest(event);
    if (row === null) light(null); else if (row !== lit) showCard(row);
  });
  area.addEventListener("pointerleave", () => light(null));
  area.addEventListener("click", (event) => {
    const mark = event.target.closest(".mark"), row = event.detail === 0 && mark ? Number(mark.dataset.i) : nearest(event);
    if (mark) event.preventDefault();
    if (row !== null) open(row, true);
  });
  plot.addEventListener("focusin", (event) => {
    const mark = event.target.closest(".mark");
    if (mark) { stop = Number(mark.dataset.i); stops(); showCard(stop); }
  });
  plot.addEventListener("focusout", () => light(null));
  plot.addEventListener("keydown", (event) => {
    const mark = event.target.closest(".mark");
    if (!mark) return;
    if (event.key === "Escape") light(null);
    const next = neighbour(Number(mark.dataset.i), event.key);
    if (next !== undefined) { event.preventDefault(); marks.get(next).focus(); }
  });
}
