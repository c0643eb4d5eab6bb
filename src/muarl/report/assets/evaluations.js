// Evaluations in full: what stands beside the scores, why dialogues failed, what they took, pass^k, metrics,
// users, where dialogues ended, and the grid of policies and users.

function evaluationsSection(data) {
  const lines = [...data.evals, ...cellLines(data)];
  const parts = [gridParts(data.grid), besideTable(lines), perturbedTable(data.perturbed), failuresTable(lines), spentTable(lines), passTable(data.evals), metricsTable(lines), usersTable(data.evals), toolsTable(lines), endingsTable(lines)].flat().filter(Boolean);
  return parts.length ? h("section", { id: "evaluations" }, h("h2", {}, "Evaluations in full"), h("div", { class: "tables" }, parts)) : "";
}

function lineName(line) {
  return [phaseName(line.phase), temperatureName(line.temperature)].filter(Boolean).join(", ");
}

const BROAD = 4;  // columns; a table of more takes the whole width

/** A table with a heading and a note; one that nothing stands in is none. */
function titled(title, heads, rows, note) {
  if (!rows.length) return null;
  return h("div", { class: heads.length > BROAD ? "card broad" : "card" }, h("h3", {}, title), scrolling(title, h("table", { class: "numbers wide" },
    h("thead", {}, h("tr", {}, heads.map((head) => (head ? h("th", { scope: "col" }, head) : h("td"))))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell))))))),
    note && h("p", { class: "note" }, note));
}

/** Cells of a grid as evaluations. */
function cellLines({ grid, observed }) {
  return listOf(grid?.cells).filter((cell) => cell?.summary).map((cell) => ({ ...cell.summary, ...cell, phase: `${cell.policy} with ${cell.user}`,
    observed: observed.find((line) => line.policy === cell.policy && line.user === cell.user) }));
}

/** The score, what no skill earns, what is left of the one above the other, and what was trained on. */
function besideTable(lines) {
  const rows = lines.filter((line) => interval(line.above_floor) || line.contamination).map((line) => [
    lineName(line), scoreText(line.success), interval(line.floor) ? scoreText(line.floor) : "–", interval(line.above_floor) ? scoreText(line.above_floor) : "–",
    line.contamination?.says ?? "nobody looked"]);
  return titled("Beside the scores", ["", "success", "floor", "above the floor", "trained on"], rows,
    "Floor: the best policy without skill. Above it: the share earned of what the floor leaves.");
}

/** What perturbations cost. */
function perturbedTable(lines) {
  const acted = (line) => Object.entries(line.acted || {}).map(([kind, share]) => `${kind} ${intervalText(share, percent)}`).join("; ");
  return titled("Perturbed", ["by", "success", "without", "difference", "dialogues", "where a kind acted", "found"], lines.map((line) => [
    [String(line.name ?? "unnamed"), temperatureName(line.temperature)].filter(Boolean).join(", "), scoreText(line.success), scoreText(line.clean), intervalText(line.difference?.success ?? line.difference, signedPercent),
    number(line.n), h("span", { class: "says" }, acted(line)), h("span", { class: "says" }, line.difference?.why ?? "")]), "Difference: paired by task. A kind acts more often in long dialogues, which are the harder ones.");
}

const FAILURES = {
  rules_broken: "broke a rule", invented_fact: "named what nobody had told", misread_result: "misread a result", cut_off: "cut by a cap",
  stopped_early: "stopped early", wrong_outcome: "changed something else", user_fault: "user fault", infrastructure: "infrastructure",
};

function failuresTable(lines) {
  const kinds = [...new Set(lines.flatMap((line) => Object.keys(line.failures || {})))];
  const known = [...Object.keys(FAILURES).filter((kind) => kinds.includes(kind)), ...kinds.filter((kind) => !Object.hasOwn(FAILURES, kind))];
  if (!known.length) return null;
  return titled("Why dialogues failed", ["", "failed", ...known.map((kind) => FAILURES[kind] ?? kind.replaceAll("_", " "))],
    lines.filter((line) => line.failures).map((line) => [lineName(line), number(Object.values(line.failures).reduce((a, b) => a + b, 0)),
      ...known.map((kind) => number(line.failures[kind] ?? 0))]),
    "Dialogues, each of the first kind that holds, by rules that read the record; faults are scored nowhere.");
}

const SPENT = [
  ["turns", (line) => intervalText(line.turns, number)],
  ["sampled tokens", (line) => intervalText(line.sampled_tokens, number)],
  ["tokens sent", (line) => number(line.spent?.prompt_tokens)],
  ["tokens written", (line) => number(line.spent?.completion_tokens)],
  ["cost", (line) => number(line.spent?.cost)],
  ["message, median ms", (line) => number(line.observed?.message_p50_ms)],
  ["99th percentile", (line) => number(line.observed?.message_p99_ms)],
  ["tokens a second", (line) => number(line.observed?.sampled_tokens_per_s)],
];

function spentTable(lines) {
  const rows = lines.map((line) => SPENT.map(([, of]) => of(line)));
  const shown = SPENT.map((_, at) => rows.some((row) => row[at] !== "–"));
  const kept = (row) => row.filter((_, at) => shown[at]);
  return titled("What a dialogue took", ["", ...kept(SPENT.map(([name]) => name))], shown.includes(true) ? lines.map((line, at) => [lineName(line), ...kept(rows[at])]) : [],
    shown[2] ? "Tokens sent and written as an endpoint counts them; cost by the grid's prices. A message takes waits and tries with it." : "A message takes waits and tries with it.");
}

function passTable(evals) {
  const kinds = [["pass_at", "pass@k"], ["pass_hat", "pass^k"]];
  const ks = [...new Set(evals.flatMap((line) => kinds.flatMap(([key]) => Object.keys(line[key] || {}))))].sort((a, b) => a - b);
  const rows = evals.flatMap((line) => kinds.filter(([key]) => Object.keys(line[key] || {}).length)
    .map(([key, name]) => [`${name}, ${lineName(line)}`, ...ks.map((k) => (line[key][k] ? scoreText(line[key][k]) : "–"))]));
  return titled("Several trials of a task", ["", ...ks.map((k) => `k = ${k}`)], rows,
    "pass@k: the chance that one of k dialogues on a task succeeds; pass^k: that all of them do.");
}

function toolsTable(evals) {
  const names = [...new Set(evals.flatMap((line) => Object.keys(line.tool_calls || {})))].sort();
  return titled("Tool calls per dialogue", ["", ...evals.map(lineName)], names.map((name) => [name || "(unreadable)", ...evals.map((line) => number(line.tool_calls?.[name] ?? 0))]));
}

function metricsTable(evals) {
  const names = [...new Set(evals.flatMap((line) => Object.keys(line.metrics || {})))].sort();
  return titled("Metrics", ["", ...evals.map(lineName)], names.map((name) => [name, ...evals.map((line) => intervalText(line.metrics?.[name], number))]),
    "Means over the dialogues that a metric applies to, with 95 % intervals; none of them is in the reward.");
}

function usersTable(evals) {
  const names = [...new Set(evals.flatMap((line) => Object.keys(line.by_user || {})))].sort();
  return titled("Success by user", ["", ...evals.map(lineName)], names.map((name) => [name, ...evals.map((line) => scoreText(line.by_user?.[name]))]));
}

function endingsTable(evals) {
  const names = [...new Set(evals.flatMap((line) => Object.keys(line.outcomes || {})))].sort();
  if (names.length < 2) return null;
  return titled("How dialogues ended", ["", ...names.map((name) => name.replaceAll("_", " "))],
    evals.map((line) => [lineName(line), ...names.map((name) => number(line.outcomes?.[name] ?? 0))]), "Faults are scored nowhere.");
}

/** Policies by users, what differs, and what of a gain is kept. */
function gridParts(grid) {
  const cells = listOf(grid?.cells).filter((cell) => cell?.summary);
  if (!cells.length) return [];
  const users = [...new Set(cells.map((cell) => cell.user))];
  const policies = [...new Set(cells.map((cell) => cell.policy))];
  const cellOf = (policy, user) => cells.find((cell) => cell.policy === policy && cell.user === user);
  const difference = (one) => [`${one.of} − ${one.minus}`, one.beside, intervalText(one.success, signedPercent), number(one.adjusted ?? one.p), one.found ?? "", h("span", { class: "says" }, one.why ?? "")];
  const told = ["success", "p", "found", "why"];
  const adjusted = [...listOf(grid.policies), ...listOf(grid.users)].some((one) => isNumber(one.adjusted)) ? " p is adjusted for all comparisons of the grid (Holm)." : "";
  const paired = `Paired by task; an interval that holds 0 tells nothing.${adjusted}`;
  const most = Math.max(0, ...cells.flatMap((cell) => Object.keys(cell.pass_hat || {}).map(Number)));
  return [
    most > 1 && titled(`pass^${most}, policies by users`, ["", ...users], policies.map((policy) => [policy, ...users.map((user) => scoreText(cellOf(policy, user)?.pass_hat?.[most]))])),
    titled("Policies compared", ["", "with user", ...told], listOf(grid.policies).map(difference), paired),
    titled("Users compared", ["", "of policy", ...told], listOf(grid.users).map(difference), paired),
    titled("What is kept of the gain", ["with user", "kept", "verdict", "why"], Object.entries(grid.kept || {}).map(([user, one]) => [user, intervalText(one?.kept, percent), String(one?.verdict ?? ""), h("span", { class: "says" }, one?.why ?? "")])),
    titled("Other trainings", ["", "with user", "mean of trainings", "", ""], cells.filter((cell) => cell.trainings).map((cell) => [cell.policy, cell.user,
      intervalText(cell.trainings.mean, percent), Object.entries(cell.by_seed || {}).map(([seed, value]) => `seed ${seed}: ${percent(interval(value)?.value)}`).join(", "), h("span", { class: "says" }, cell.trainings.says)]),
      "How well another training of the same kind would do: each training counts once, however many its dialogues."),
  ];
}

/** Every policy with every user; null where this is no grid. */
function gridTable(grid) {
  const cells = listOf(grid?.cells).filter((cell) => cell?.summary);
  const users = [...new Set(cells.map((cell) => cell.user))];
  const policies = [...new Set(cells.map((cell) => cell.policy))];
  return titled("Success, policies by users", ["", ...users], policies.map((policy) => [policy, ...users.map((user) =>
    gridCell(cells.find((cell) => cell.policy === policy && cell.user === user)))]), "Each with its 95 % interval; the stronger the colour, the more.");
}

function gridCell(cell) {
  const value = interval(cell?.success)?.value;
  const box = h("span", { class: "heatcell" }, scoreText(cell?.success));
  if (isNumber(value)) box.style.setProperty("--share", value);
  return box;
}

function signedPercent(value) {
  return isNumber(value) ? `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)} %` : "–";
}
