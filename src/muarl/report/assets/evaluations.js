// Evaluations in full: pass^k, metrics, users, where dialogues ended, and the grid of policies and users.

function evaluationsSection(data) {
  const parts = [passTable(data.evals), metricsTable(data.evals), usersTable(data.evals), toolsTable(data.evals), endingsTable(data.evals), gridParts(data.grid)].flat().filter(Boolean);
  return parts.length ? h("section", { id: "evaluations" }, h("h2", {}, "Evaluations in full"), h("div", { class: "tables" }, parts)) : "";
}

function lineName(line) {
  return [phaseName(line.phase), temperatureName(line.temperature)].filter(Boolean).join(", ");
}

/** A table with a heading and a note; one that nothing stands in is none. */
function titled(title, heads, rows, note) {
  if (!rows.length) return null;
  return h("div", { class: "card" }, h("h3", {}, title), scrolling(title, h("table", { class: "numbers wide" },
    h("thead", {}, h("tr", {}, heads.map((head) => (head ? h("th", { scope: "col" }, head) : h("td"))))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell))))))),
    note && h("p", { class: "note" }, note));
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
  if (!grid || !Array.isArray(grid.cells)) return [];
  const users = [...new Set(grid.cells.map((cell) => cell.user))];
  const policies = [...new Set(grid.cells.map((cell) => cell.policy))];
  const cellOf = (policy, user) => grid.cells.find((cell) => cell.policy === policy && cell.user === user);
  const difference = (one) => [`${one.of} − ${one.minus}`, one.beside, intervalText(one.success, signedPercent)];
  const most = Math.max(0, ...grid.cells.flatMap((cell) => Object.keys(cell.pass_hat || {}).map(Number)));
  return [
    titled("Success, policies by users", ["", ...users], policies.map((policy) => [policy, ...users.map((user) => gridCell(cellOf(policy, user)))]), "Each with its 95 % interval; the stronger the colour, the more."),
    most > 1 && titled(`pass^${most}, policies by users`, ["", ...users], policies.map((policy) => [policy, ...users.map((user) => scoreText(cellOf(policy, user)?.pass_hat?.[most]))])),
    titled("Policies compared", ["", "with user", "success"], (grid.policies || []).map(difference), "Paired by task; an interval that holds 0 tells nothing."),
    titled("Users compared", ["", "of policy", "success"], (grid.users || []).map(difference), "Paired by task; an interval that holds 0 tells nothing."),
  ];
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
