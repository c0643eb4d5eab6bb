// Episodes that lie in the page: their table in its data, their dialogues packed behind the script.

/** A source of the episodes of one run of the page; `at` is its number. */
function embeddedSource(run, at) {
  const table = run.table;
  const coded = (column) => (i) => table[column].values[table[column].at[i]];
  const plain = (column) => (i) => table[column][i];
  const of = Object.fromEntries([
    ...["phase", "task", "persona", "user", "verdict", "outcome", "tools"].map((column) => [column, coded(column)]),
    ...["iteration", "sample", "reward", "turns", "tokens", "version", "errors", "above", "pack", "place"].map((column) => [column, plain(column)]),
  ]);
  const idOf = (i) => `${of.phase(i)}/${of.iteration(i)}/${of.task(i)}/${of.sample(i)}`;
  const rowAt = (i) => ({ id: idOf(i), phase: of.phase(i), iteration: of.iteration(i), task: of.task(i), sample: of.sample(i), persona: of.persona(i),
    user: of.user(i), verdict: of.verdict(i), outcome: of.outcome(i), reward: of.reward(i), turns: of.turns(i), above: of.above(i), readable: of.pack(i) >= 0 });
  const all = Array.from({ length: table.count }, (_, i) => i);
  const packs = new Map();
  const unpacked = (kind, pack) => {
    const name = `${kind}-${at}-${pack}`;
    if (!packs.has(name)) packs.set(name, unpack(document.getElementById(name).textContent));
    return packs.get(name);
  };
  const texts = new Map();
  /** Everything said and done in every dialogue of the page, in lower case; read once. */
  const readTexts = async (tell) => {
    const last = all.reduce((most, i) => Math.max(most, of.pack(i)), -1);
    for (let pack = 0; pack <= last; pack++) {
      if (texts.has(pack)) continue;
      tell(`reading the dialogues: ${Math.round((100 * pack) / (last + 1))} %`);
      texts.set(pack, (await unpacked("dialogues", pack)).map(textOf));
    }
  };
  let found = { key: null, numbers: all };

  const find = async (query, offset, limit, tell) => {
    const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) await readTexts(tell);
    const key = JSON.stringify(query);
    if (found.key !== key) found = { key, numbers: sorted(all.filter(test(query, words)), query.order) };
    return { total: found.numbers.length, of: all.length, rows: found.numbers.slice(offset, offset + limit).map(rowAt) };
  };
  const test = (query, words) => {
    const tests = ["phase", "verdict", "outcome", "persona", "user"].filter((key) => query[key] !== "").map((key) => {
      const wanted = table[key].values.map((value) => value === query[key]);
      return (i) => wanted[table[key].at[i]];
    });
    if (query.tool) {
      const wanted = table.tools.values.map((tools) => tools.includes(query.tool));
      tests.push((i) => wanted[table.tools.at[i]]);
    }
    if (query.task) {
      const wanted = table.task.values.map((task) => task.toLowerCase().includes(query.task.toLowerCase()));
      tests.push((i) => wanted[table.task.at[i]]);
    }
    if (query.iteration !== "") tests.push((i) => of.iteration(i) === Number(query.iteration));
    if (query.above) tests.push((i) => isNumber(of.above(i)) && side(of.above(i)) === query.above);
    if (query.least !== "") tests.push((i) => isNumber(of.reward(i)) && of.reward(i) >= Number(query.least));
    if (query.most !== "") tests.push((i) => isNumber(of.reward(i)) && of.reward(i) <= Number(query.most));
    const saidIn = (i) => (of.pack(i) < 0 ? "" : texts.get(of.pack(i))[of.place(i)]);
    if (words.length) tests.push((i) => words.every((word) => idOf(i).toLowerCase().includes(word) || saidIn(i).includes(word)));
    return (i) => tests.every((one) => one(i));
  };
  const sorted = (numbers, order) => {
    const by = { longest: (i) => -of.turns(i), shortest: of.turns, worst: (i) => of.reward(i) ?? 2, above: (i) => -(of.above(i) ?? -9), below: (i) => of.above(i) ?? 9 }[order];
    return by ? numbers.map((i) => [by(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, i]) => i) : numbers;
  };
  const open = async (id) => {
    const i = all.find((one) => idOf(one) === id);
    if (i === undefined) throw new Error(`No episode ${id} is in this page.`);
    if (of.pack(i) < 0) throw new Error(`There was no room for this dialogue in the page. Read it with: muarl view ${run.run.path}`);
    const [dialogues, samples] = await Promise.all([unpacked("dialogues", of.pack(i)), unpacked("tokens", of.pack(i))]);
    const episode = dialogues[of.place(i)];
    const same = all.filter((one) => table.task.at[one] === table.task.at[i] && of.pack(one) >= 0);
    const isGroup = (one) => of.phase(one) === of.phase(i) && of.iteration(one) === of.iteration(i);
    return { row: rowAt(i), episode, system: run.systems[episode.system], toolset: run.toolsets[episode.tools], samples: samples[of.place(i)], tokens: run.tokens,
      group: same.filter(isGroup).sort((a, b) => of.sample(a) - of.sample(b)).map(rowAt), across: elsewhere(same.filter((one) => !isGroup(one)).map(rowAt)) };
  };
  const used = (column) => table[column].values.slice().sort();
  const facets = { total: table.count, phase: table.phase.values, verdict: used("verdict"), outcome: used("outcome"), persona: used("persona"), user: used("user"),
    tool: [...new Set(table.tools.values.flat())].sort(), iteration: [...new Set(table.iteration)].sort((a, b) => a - b) };
  return { facets, find, open, note: shownTable(run.shown, run.run.path) };
}

const SIDES = 1e-9;

/** Whether an episode did better or worse than its group. */
function side(above) {
  return above > SIDES ? "above" : above < -SIDES ? "below" : "level";
}

/** One dialogue for each other place that a task was played in, in order. */
function elsewhere(rows) {
  const firsts = new Map();
  for (const row of rows) if (!firsts.has(placeOf(row))) firsts.set(placeOf(row), row);
  return [...firsts.values()].slice(0, 40);
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Every text of a value, in lower case. */
function textOf(value) {
  const found = [];
  const walk = (one) => {
    if (typeof one === "string") found.push(one);
    else if (one && typeof one === "object") Object.values(one).forEach(walk);
  };
  walk(value);
  return found.join("\n").toLowerCase();
}

function shownTable(shown, name) {
  const total = shown.reduce((sum, row) => sum + row.total, 0);
  const visible = shown.reduce((sum, row) => sum + row.shown, 0);
  if (visible === total) return null;
  const phases = [...new Set(shown.map((row) => row.phase))];
  const cell = (phase, verdict) => {
    const row = shown.find((one) => one.phase === phase && one.verdict === verdict);
    return h("td", {}, row ? `${number(row.shown)} of ${number(row.total)}` : "");
  };
  return h("details", { class: "fold" },
    h("summary", {}, `${number(visible)} of ${number(total)} dialogues are in this page, chosen by a hash; muarl view ${name} shows all.`),
    h("table", { class: "numbers" }, h("thead", {}, h("tr", {}, ["phase", "failed", "passed", "faults"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, phases.map((phase) => h("tr", {}, h("th", { scope: "row" }, phase), ["failed", "passed", "fault"].map((verdict) => cell(phase, verdict)))))));
}
