// What the reader chose, and its form in the address: #x=…&y=…&log=xy&tp=4,8&sort=conc:desc&point=…
const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const data = await new Response(unpacked).json();
const one = (query, root = document) => root.querySelector(query);
const all = (query, root = document) => [...root.querySelectorAll(query)];
const make = (tag, parts = [], attributes = {}) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...[parts].flat());
  return element;
};
const axes = { x: data.x, y: data.y };
const count = data.rows.id.length;
const everyRow = [...Array(count).keys()];
const lines = [...new Set(data.rows.line)];
const filters = [
  { key: "line", values: lines.map(String), of: data.rows.line.map((line) => lines.indexOf(line)) },
  ...data.filters,
];

const initial = () => ({
  x: axes.x.length ? axes.x[0].key : "", y: axes.y.length ? axes.y[0].key : "",
  log: null, sort: null, point: null, baseline: true,
  chosen: Object.fromEntries(filters.map((filter) => [filter.key, new Set()])),
});
let state = initial();

const toHash = () => {
  const first = initial(), parts = [];
  for (const name of ["x", "y"]) if (state[name] !== first[name]) parts.push(`${name}=${state[name]}`);
  if (state.log !== null) parts.push(`log=${state.log || "none"}`);
  for (const { key, values } of filters) {
    const chosen = values.filter((_, index) => state.chosen[key].has(index));
    if (chosen.length) parts.push(`${key}=${chosen.map(encodeURIComponent).join(",")}`);
  }
  if (!state.baseline) parts.push("baseline=off");
  if (state.sort) parts.push(`sort=${state.sort.key}${state.sort.down ? ":desc" : ""}`);
  if (state.point) parts.push(`point=${state.point}`);
  return parts.length ? `#${parts.join("&")}` : "";
};

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

const fromHash = (hash) => {
  const read = initial();
  for (const part of hash.slice(1).split("&")) {
    const at = part.indexOf("="), key = part.slice(0, at), value = part.slice(at + 1);
    const filter = filters.find((known) => known.key === key);
    if (filter) {
      for (const text of value.split(",")) {
        const index = filter.values.indexOf(decoded(text));
        if (index >= 0) read.chosen[key].add(index);
      }
    } else if (key === "x" || key === "y") {
      if (axes[key].some((axis) => axis.key === value)) read[key] = value;
    } else if (key === "log") read.log = value.replace(/[^xy]/g, "");
    else if (key === "baseline") read.baseline = value !== "off";
    else if (key === "sort") read.sort = { key: value.split(":")[0], down: value.endsWith(":desc") };
    else if (key === "point" && data.rows.id.includes(value)) read.point = value;
  }
  return read;
};

const remember = () => {
  const hash = toHash();
  if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname + location.search);
};

const shown = (row) => filters.every(({ key, of }) => !state.chosen[key].size || state.chosen[key].has(of[row]));
