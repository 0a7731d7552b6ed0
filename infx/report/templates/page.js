// Controls, the address, and what happens first.
const tools = one(".tools");
const status = document.getElementById("showing");
const say = (text) => { if (status) status.textContent = text; };
const pressed = (button, on) => button.setAttribute("aria-pressed", String(on));

const controls = () => {
  if (!tools) return;
  for (const name of ["x", "y"]) {
    tools.elements[name].value = state[name];
    const button = one(`[name=log][value=${name}]`, tools);
    pressed(button, isLog(name));
    button.disabled = !axisOf(name).log;
  }
  if (tools.elements.baseline) pressed(tools.elements.baseline, state.baseline);
  tools.elements.reset.disabled = !toHash();
  for (const chips of all("[data-filter]")) {
    const { values } = filters.find((filter) => filter.key === chips.dataset.filter);
    for (const chip of all("button", chips)) {
      const index = chips.dataset.filter === "line" ? values.indexOf(chip.value) : Number(chip.value);
      pressed(chip, state.chosen[chips.dataset.filter].has(index));
    }
  }
  const rows = everyRow.filter(shown).length;
  say(rows === count ? `All ${count} points are shown.` : `${rows} of ${count} points are shown.`);
};

const update = () => { draw(); narrow(); controls(); remember(); };

if (tools) {
  tools.hidden = false;
  one(".filters").hidden = false;
  for (const name of ["x", "y"]) {
    tools.elements[name].addEventListener("change", (event) => { state[name] = event.target.value; state.log = null; update(); });
  }
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("click", ({ target }) => {
    if (target.name === "log") {
      state.log = ["x", "y"].filter((name) => isLog(name) !== (name === target.value)).join("");
      update();
    } else if (target.name === "baseline") { state.baseline = !state.baseline; update(); }
    else if (target.name === "reset") { close(); state = initial(); sort(); update(); }
  });
  for (const chips of all("[data-filter]")) {
    const { key, values } = filters.find((filter) => filter.key === chips.dataset.filter);
    chips.addEventListener("click", (event) => {
      const chip = event.target.closest("button");
      if (!chip) return;
      const chosen = state.chosen[key], index = key === "line" ? values.indexOf(chip.value) : Number(chip.value);
      if (!chosen.delete(index)) chosen.add(index);
      update();
    });
  }
}

const arrive = () => {
  const hash = location.hash;
  if (hash && !hash.includes("=")) {
    const target = document.getElementById(decoded(hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded) { folded.open = true; target.scrollIntoView(); }
    return;
  }
  if (hash === toHash()) return;
  state = fromHash(hash);
  sort();
  draw();
  narrow();
  controls();
  if (state.point) open(data.rows.id.indexOf(state.point), true); else close();
};

document.documentElement.classList.add("scripted");
draw();
controls();
arrive();
addEventListener("hashchange", arrive);
