// Moves the chart: every place, tick and member of a line was computed before; here is no arithmetic
// of values.
const plot = document.getElementById("plot");
const marks = new Map(plot ? all(".mark", plot).map((mark) => [Number(mark.dataset.i), mark]) : []);
const percent = (place) => `${place / 100}%`;
const axisOf = (name) => axes[name].find((axis) => axis.key === state[name]);
const isLog = (name) => {
  const axis = axisOf(name);
  return Boolean(axis.log) && (state.log === null ? axis.logFirst : state.log.includes(name));
};
const scaleOf = (name) => (isLog(name) ? "log" : "linear");
const placedOf = (name) => axisOf(name)[scaleOf(name)];
const pair = () => `${state.x} ${state.y}`;
const chartOf = () => data.charts[pair()] || { lines: {}, bands: {} };
const drawn = (row) => marks.has(row) && !marks.get(row).hasAttribute("hidden");

const grid = (x, y) => {
  one(".grid.x", plot).innerHTML = x.ticks.map(([at, text]) =>
    `<line x1="${percent(at)}" x2="${percent(at)}" y2="100%"/><text x="${percent(at)}" y="100%" dy="17">${text}</text>`).join("");
  one(".grid.y", plot).innerHTML = y.ticks.map(([at, text]) =>
    `<line x2="100%" y1="${percent(at)}" y2="${percent(at)}"/><text y="${percent(at)}" dx="-9" dy="4">${text}</text>`).join("");
};

const steps = (members, x, y) => {
  const acrossFirst = axisOf("x").better === "less";
  return members.map((row, index) => {
    if (!index) return `M${x.at[row]} ${y.at[row]}`;
    return acrossFirst ? `H${x.at[row]}V${y.at[row]}` : `V${y.at[row]}H${x.at[row]}`;
  }).join("");
};

const path = (kind, line, d) => `<path class="${kind} ${data.styles[line]}" data-line="${line}" d="${d}"/>`;
const outline = (band) => {
  const x = band.x[scaleOf("x")], y = band.y[scaleOf("y")];
  return `M${x.map((at, index) => `${at} ${y[index]}`).join("L")}z`;
};

const drawLines = (x, y) => {
  const chart = chartOf(), before = state.baseline && data.before.charts ? data.before.charts[pair()] || {} : {};
  const whole = (line) => everyRow.some((row) => data.rows.line[row] === Number(line) && shown(row));
  const parts = [];
  for (const [line, band] of Object.entries(chart.bands)) if (whole(line)) parts.push(path("band", line, outline(band)));
  for (const [line, rows] of Object.entries(before)) if (whole(line)) parts.push(path("before", line, steps(rows, x, y)));
  for (const [line, rows] of Object.entries(chart.lines)) {
    const members = rows.filter(drawn);
    if (members.length) parts.push(path("frontier", line, steps(members, x, y)));
  }
  parts.push(`<path class="whiskers" d="${whiskers([...marks.keys()].filter(drawn), x, y)}"/>`);
  one(".lines", plot).innerHTML = parts.join("");
};

const whiskers = (rows, x, y) => rows.map((row) => {
  const part = (placed) => (placed.spread || []).slice(2 * row, 2 * row + 2);
  const [left, right] = part(x), [low, high] = part(y), across = x.at[row], up = y.at[row];
  return (left || right ? `M${across + left} ${up}H${across + right}` : "") + (low || high ? `M${across} ${up + low}V${up + high}` : "");
}).join("");

const move = (element, x, y, row) => {
  element.setAttribute("x", percent(x.at[row]));
  element.setAttribute("y", percent(y.at[row]));
};

const named = (name) => {
  const axis = axisOf(name);
  return [make("b", axis.title), `, ${axis.unit}${isLog(name) ? ", log scale" : ""} (${axis.better} is better)`];
};

const decides = () => {
  const first = initial(), north = state.x === first.x;
  if (north && state.y === first.y) return "This chart decides which points are on a frontier.";
  return north ? "This chart decides which points are on a frontier of this figure."
    : "The line joins points that are on this frontier and on that of E2E-normalised interactivity.";
};

const draw = () => {
  if (!plot) return;
  const x = placedOf("x"), y = placedOf("y"), front = new Set(Object.values(chartOf().lines).flat());
  grid(x, y);
  for (const [row, mark] of marks) {
    const there = x.at[row] !== null && y.at[row] !== null;
    mark.toggleAttribute("hidden", !there || !shown(row));
    mark.classList.toggle("front", front.has(row));
    if (there) move(mark.firstElementChild, x, y, row);
    mark.setAttribute("aria-label", told(row).replaceAll("\n", ", "));
  }
  drawLines(x, y);
  for (const ghost of all(".ghosts use", plot)) {
    const row = Number(ghost.dataset.i), there = x.at[row] !== null && y.at[row] !== null;
    ghost.toggleAttribute("hidden", !there || !state.baseline);
    if (there) move(ghost, x, y, row);
  }
  const untouched = pair() === `${axes.x[0].key} ${axes.y[0].key}` && ["x", "y"].every((name) => isLog(name) === Boolean(axisOf(name).log && axisOf(name).logFirst));
  one(".labels", plot).toggleAttribute("hidden", !untouched || filters.some(({ key }) => state.chosen[key].size));
  one("figcaption .up").replaceChildren(...named("y"));
  one(".across").replaceChildren(...named("x"));
  document.getElementById("decides").textContent = decides();
  stops();
};
