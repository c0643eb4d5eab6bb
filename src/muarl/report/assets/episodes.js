// All episodes: a list with filters, and what is opened of it. A source finds and opens them: the page
// itself (embedded.js), or the server of `muarl view` (served.js).

const ROWS_AT_ONCE = 100;
const EMPTY_QUERY = { phase: "", verdict: "", outcome: "", persona: "", user: "", tool: "", task: "", iteration: "", above: "", least: "", most: "", text: "", order: "" };
const VERDICT_NAMES = { passed: "1: passed", failed: "below 1: failed", fault: "none: fault" };
const ABOVE_NAMES = { above: "better than its group", below: "worse than its group", level: "as its group" };
const ORDERS = { "": "as they are read", longest: "longest first", shortest: "shortest first", worst: "lowest reward first", above: "best against its group", below: "worst against its group" };

/** source: { facets, find(query, offset, limit), open(id), note }; find gives rows, how many fit (total) and of how many. */
function episodesSection(source, name) {
  const section = h("section", { id: "episodes", "data-run": name }, h("h2", {}, "Episodes"));
  if (!source.facets.total) {
    section.append(h("p", { class: "empty" }, "No episode to show."));
    return section;
  }
  const linked = readLink();
  const here = linked && (linked.run === null || linked.run === name);
  const state = { query: { ...EMPTY_QUERY, ...(here && linked.query) }, open: null, beside: [], asked: 0, opening: 0, rows: [] };
  const list = h("ol", { class: "list", "aria-label": "Episodes found" });
  const count = h("p", { class: "note", role: "status" });
  const reader = h("div", { class: "reader" });
  const buttons = new Map();

  const link = () => history.replaceState(null, "", linkTo(name, state));
  const mark = () => {
    for (const [id, button] of buttons) {
      if (id === state.open) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  };
  const show = async (focus) => {
    const turn = ++state.opening;
    reader.setAttribute("aria-busy", "true");
    mark();
    let all;
    try {
      all = await Promise.all([state.open, ...state.beside].map((id) => source.open(id)));
    } catch (error) {
      if (turn !== state.opening) return;
      reader.replaceChildren(h("p", { class: "empty" }, error.message));
      reader.setAttribute("aria-busy", "false");
      return;
    }
    if (turn !== state.opening) return;  // another one was opened meanwhile
    reader.setAttribute("aria-busy", "false");
    const held = reader.contains(document.activeElement) ? document.activeElement : null;
    viewer.classList.toggle("comparing", all.length > 1);
    const siblings = siblingsView(all[0], state.beside, toggle);
    const back = h("button", { type: "button", class: "small", on: { click: () => { state.beside = []; show(true); } } }, "← back to the list");
    reader.replaceChildren(...(all.length > 1
      ? [h("div", { class: "comparehead" }, back, siblings), guarded((opened) => compareView(opened, { only, close: toggle }), all)]
      : [h("article", { class: "dialogue", tabindex: 0, "aria-label": "Dialogue" }, guarded((opened) => dialogueView(opened, { siblings }), all[0]))]));
    if (held) keepFocus(held, all.length > 1 ? null : buttons.get(state.open));
    if (focus) {
      link();
      if (matchMedia("(max-width: 800px)").matches) reader.scrollIntoView();
    }
  };
  /** What had the focus was drawn anew: its like has it now, else the row in the list, else what is read. */
  const keepFocus = (held, row) => {
    const like = held.dataset.row && [...reader.querySelectorAll("[data-row]")].find((one) => one.dataset.row === held.dataset.row && !one.disabled);
    (like || row || reader.querySelector(".dialogue")).focus({ preventScroll: true });
  };
  const open = (id, focus) => { state.open = id; state.beside = []; return show(focus); };
  const only = (id) => open(id, true);
  const toggle = (id) => {
    const others = state.beside.filter((one) => one !== id);
    state.beside = others.length < state.beside.length ? others : [...state.beside, id].slice(1 - MOST_BESIDE);
    show(true);
  };
  const draw = (rows, from) => {
    for (const row of rows) {
      const button = listRow(row);
      button.addEventListener("click", () => open(row.id, true));
      buttons.set(row.id, button);
      list.append(h("li", {}, button));
    }
    state.rows = from ? [...state.rows, ...rows] : rows;
    mark();
  };
  const refresh = async (from = 0) => {
    const turn = ++state.asked;
    list.setAttribute("aria-busy", "true");
    let found;
    try {
      found = await source.find(state.query, from, ROWS_AT_ONCE, (note) => { count.textContent = note; });
    } catch (error) {
      if (turn !== state.asked) return;
      count.textContent = error.message;
      list.setAttribute("aria-busy", "false");
      return;
    }
    if (turn !== state.asked) return;
    list.setAttribute("aria-busy", "false");
    list.querySelector(".morerows")?.remove();
    if (!from) { buttons.clear(); list.replaceChildren(); }
    draw(found.rows, from);
    if (from) buttons.get(found.rows[0]?.id)?.focus();  // the button that asked for them is gone
    const left = found.total - state.rows.length;
    if (left > 0) {
      list.append(h("li", { class: "morerows" }, h("button", { type: "button", class: "row", on: { click: () => refresh(state.rows.length) } }, `${number(Math.min(left, ROWS_AT_ONCE))} more of ${number(left)}`)));
    }
    if (!found.total) list.append(h("li", { class: "none" }, "Nothing fits these filters. ", h("button", { type: "button", class: "small", on: { click: reset } }, "Take them away")));
    count.textContent = `${number(found.total)} of ${number(found.of)} episodes`;
  };
  list.addEventListener("keydown", (event) => {
    const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const all = [...list.querySelectorAll("button")];
    const next = all[all.indexOf(document.activeElement) + direction];
    if (next) { next.focus(); if (!next.parentElement.classList.contains("morerows")) next.click(); }
  });
  const look = () => { link(); return refresh(); };
  const form = filters(source.facets, state, look);
  const reset = () => { state.query = { ...EMPTY_QUERY }; fillIn(form, state.query); form.elements.namedItem("text").focus(); look(); };
  fillIn(form, state.query);
  const viewer = h("div", { class: "viewer" }, h("div", { class: "browse" }, form, count, list), reader);
  section.append(source.note || "", viewer);

  const begin = async () => {
    await refresh();
    if (here && linked.open) {
      state.open = linked.open;
      state.beside = linked.beside.slice(0, MOST_BESIDE - 1);
      await show(false);
    } else if (state.rows.length) {
      await open((state.rows.find((row) => row.readable !== false) || state.rows[0]).id, false);
    }
    performance.mark("ready");
    section.dataset.ready = "";
  };
  // What is packed in the page lies behind this script.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
  const follow = () => {
    if (!section.isConnected) return removeEventListener("hashchange", follow);  // it was drawn anew
    const given = readLink();
    if (!given || (given.run !== null && given.run !== name)) return;
    Object.assign(state.query, EMPTY_QUERY, given.query);
    fillIn(form, state.query);
    refresh();
    if (!given.open) return;
    Object.assign(state, { open: given.open, beside: given.beside });
    show(false);
  };
  addEventListener("hashchange", follow);
  return section;
}

/** A link that opens the same episodes again, with the same filters, in this page or another of the same run. */
function linkTo(run, { open, beside, query }) {
  const parts = [...(run ? [["run", run]] : []), ...(open ? [["episode", open]] : []), ...beside.map((id) => ["beside", id]), ...Object.entries(query).filter(([, value]) => value !== "")];
  return `#${parts.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

function readLink() {
  const found = new URLSearchParams(location.hash.slice(1));
  const query = Object.fromEntries(Object.keys(EMPTY_QUERY).filter((key) => found.has(key)).map((key) => [key, found.get(key)]));
  if (!found.has("episode") && !Object.keys(query).length) return null;
  return { run: found.get("run"), open: found.get("episode"), beside: found.getAll("beside"), query };
}

/** Show in the form what is looked for; what a list does not have is not looked for. */
function fillIn(form, query) {
  for (const [name, value] of Object.entries(query)) {
    const field = form.elements.namedItem(name);
    if (field) field.value = value;
    if (field ? field.value !== value : value) query[name] = "";
  }
}

function filters(facets, state, refresh) {
  const set = (key) => (event) => { state.query[key] = event.target.value.trim(); refresh(); };
  const select = (key, label, values, names = (value) => value) => values.length > 1 && h("label", {}, label,
    h("select", { name: key, on: { change: set(key) } }, h("option", { value: "" }, "all"), values.map((value) => h("option", { value }, names(value)))));
  const bound = (key, label, inputs) => h("input", { name: key, type: "number", min: 0, max: 1, step: "any", "aria-label": label, placeholder: inputs, on: { input: set(key) } });
  return h("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
    h("label", { class: "search" }, "text", h("input", { name: "text", type: "search", placeholder: "any words, task, ids, tools", on: { input: (event) => { state.query.text = event.target.value; refresh(); } } })),
    h("label", {}, "task", h("input", { name: "task", type: "search", placeholder: "part of its id", on: { input: set("task") } })),
    select("phase", "phase", facets.phase),
    select("verdict", "result", facets.verdict, (value) => VERDICT_NAMES[value]),
    select("persona", "persona", facets.persona),
    select("user", "user", facets.user, (value) => value || "(none)"),
    select("outcome", "ended", facets.outcome, (value) => value.replaceAll("_", " ")),
    select("tool", "calls", facets.tool),
    select("iteration", "iteration", facets.iteration),
    select("above", "advantage", Object.keys(ABOVE_NAMES), (value) => ABOVE_NAMES[value]),
    h("div", { class: "range", role: "group", "aria-label": "Reward from and to" }, h("span", {}, "reward"),
      h("span", {}, bound("least", "Reward at least", "from"), bound("most", "Reward at most", "to"))),
    h("label", {}, "order", h("select", { name: "order", on: { change: set("order") } }, Object.entries(ORDERS).map(([value, text]) => h("option", { value }, text)))));
}

function listRow(row) {
  const partly = isNumber(row.reward) && row.reward > 0 && row.reward < 1 ? ` · ${number(row.reward)}` : "";
  return h("button", { type: "button", class: `row ${row.verdict}${row.readable === false ? " unreadable" : ""}` },
    h("span", { class: "verdict", title: row.verdict }, VERDICT_MARKS[row.verdict]),
    h("span", { class: "task" }, row.task),
    h("span", { class: "meta" }, `${row.persona} · ${placeOf(row)} #${row.sample} · ${row.turns} turns${partly}`));
}
