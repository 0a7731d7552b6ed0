// A point that is opened: its exact commands, environment, evidence and provenance, under its row.
const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
const filled = (words, values) => words.map((word) => (typeof word === "number" ? values[word] : word));
const command = (words) => words.map((word, index) => (index ? (word.startsWith("--") ? " \\\n  " : " ") : "") + shell(word)).join("");

const copied = async (text) => {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea", text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};
const copier = (text, what) => {
  const button = make("button", "copy", { type: "button", class: "copy", "aria-label": `Copy ${what}` });
  button.addEventListener("click", async () => {
    await copied(text);
    button.textContent = "copied";
    say(`Copied ${what}`);
    setTimeout(() => { button.textContent = "copy"; }, 1600);
  });
  return button;
};

const block = (title, text) => [
  make("h3", [title, copier(text, title.toLowerCase())], { class: "has-copy" }), make("pre", text, { tabindex: 0 }),
];

const pointOf = (row) => Object.fromEntries(Object.entries(data.points).map(([name, of]) => [name, of[row]]));
const commands = (point) => {
  const family = data.families[point.of[0]], values = family.columns.map((column) => column[point.of[1]]);
  const parts = [];
  if (family.server.length) parts.push(...block("Command of the server", command(filled(family.server, values))));
  if (point.client.length) parts.push(...block("Command of the client", command(filled(family.clients[point.client[0]], point.client.slice(1)))));
  const env = Object.entries(family.env).map(([name, value]) => `${name}=${typeof value === "number" ? values[value] : value}`);
  if (env.length) parts.push(...block("Environment", env.join("\n")));
  return make("div", parts);
};

const cells = (texts) => make("tr", texts.map((text, index) => make(index ? "td" : "th", text, index ? {} : { scope: "row", class: "text" })));
const head = (titles) => make("thead", make("tr", titles.map((title) => make("th", title, { scope: "col" }))));

const figures = (row) => {
  const compared = Object.values(data.changes).some((changes) => changes[row]);
  const rows = data.figures.filter((figure) => figure.of[row]).map((figure) => {
    const found = changed(figure.key, row);
    return cells([`${figure.title}, ${figure.unit}`, figure.of[row], ...(compared ? [found ? found.join(" ") : ""] : [])]);
  });
  if (!rows.length) return [];
  const titles = ["Figure", "Value", ...(compared ? ["Since the baseline"] : [])];
  return [make("h3", "Figures"), make("table", [head(titles), make("tbody", rows)])];
};

const repeats = (point) => !point.repeats.length ? [] : [
  make("h3", "Repeats"),
  make("table", [head(["Run", "Repeat", "tok/s/GPU", "tok/s/user"]), make("tbody", point.repeats.map(([run, number, ...rest]) => cells([data.texts[run], String(number), ...rest])))]),
];

const evidence = (row, point) => {
  const parts = [];
  const said = point.said.map((text) => make("li", data.texts[text]));
  if (said.length) parts.push(make("h3", "What the checks say"), make("ul", said));
  parts.push(...figures(row), ...repeats(point));
  parts.push(make("h3", "Provenance"), make("p", point.facts.map((text) => data.texts[text]).join(" · "), { class: "facts" }));
  parts.push(make("p", data.texts[point.made], { class: "facts" }));
  const [folder, ...files] = point.files.map((text) => data.texts[text]);
  if (files.length) {
    const place = folder.replaceAll("{name}", nameOf(row)).replaceAll("{id}", data.rows.id[row]);
    parts.push(make("p", `In ${place || "the run’s folder"}: ${files.join(", ")}`, { class: "facts" }));
  }
  return make("div", parts);
};

const article = (row) => {
  const point = pointOf(row), repro = data.rows.repro[row], family = data.families[point.of[0]];
  const top = make("p", [make("code", repro), copier(repro, "the command that measures it again"),
    make("a", "all servers of this entry", { href: `#${family.id}` })], { class: "top" });
  return make("article", [top, commands(point), evidence(row, point)], { "aria-label": `Point ${nameOf(row)}` });
};

let opened = null;
const close = () => {
  if (!opened) return;
  opened.row.removeAttribute("aria-current");
  one("th > a", opened.row).setAttribute("aria-expanded", "false");
  opened.extra.remove();
  opened = null;
};
const place = () => {
  if (!opened) return;
  opened.row.after(opened.extra);
  opened.extra.hidden = opened.row.hidden;
};
const open = (row, jump) => {
  close();
  state.point = data.rows.id[row];
  const line = one(`tr[data-i="${row}"]`), cell = make("td", article(row), { colspan: line.cells.length });
  opened = { row: line, extra: make("tr", cell, { class: "opened" }) };
  line.setAttribute("aria-current", "true");
  one("th > a", line).setAttribute("aria-expanded", "true");
  place();
  if (jump) {
    one("th > a", line).focus({ preventScroll: true });
    line.scrollIntoView({ block: "start" });
  }
  remember();
};
const toggle = (row) => {
  const same = state.point === data.rows.id[row];
  if (!same) { open(row, false); return; }
  close();
  state.point = null;
  remember();
};
