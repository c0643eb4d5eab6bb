// Simulated users: their figures with intervals, and the monitors that watch them for collapse.

const FAULTS = { lower: "less is better", higher: "more is better" };
const UNKNOWN = { metric: null, says: "", unit: "", better: "compare" };

/** what: { figures, metrics, monitors, patience } of the page. */
function usersSection(data, what) {
  const parts = [
    measuredTable(data.users, what, (figure) => figure.better !== "compare", "Faults of users",
      "Of the words, the ledger and the tools' record. Where a figure says much, users have to be mended before they train a policy."),
    monitorsTable(data.iterations, what),
  ].filter(Boolean);
  const manner = measuredTable(data.users, what, (figure) => figure.better === "compare", "How users are",
    "Neither good nor bad by itself: to be held against people, or other users (muarl users --reference).");
  const missing = !data.users.length && data.evals.length > 0
    && h("p", { class: "note" }, `This run did not measure its users; muarl users ${data.run.path} does.`);
  if (!parts.length && !manner && !missing) return "";
  return h("section", { id: "users" }, h("h2", {}, "Users"), missing, h("div", { class: "tables" }, parts),
    manner && h("details", { class: "fold" }, h("summary", {}, "How users are: further figures"), manner));
}

function measuredName(line) {
  return [line.policy !== undefined ? `${line.policy} with ${line.user}` : lineName(line), `${number(line.dialogues)} dialogues`].join(", ");
}

/** The figures that `of` takes, by metric; a figure that nothing could be said about is left out. */
function measuredTable(lines, { figures, metrics }, of, title, note) {
  const rows = [];
  let metric;
  const others = lines.flatMap((line) => Object.keys(line.figures || {})).filter((name) => !Object.hasOwn(figures, name));
  const all = [...Object.entries(figures), ...[...new Set(others)].map((name) => [name, UNKNOWN])];
  for (const [name, figure] of all) {
    if (!of(figure) || !lines.some((line) => interval(line.figures?.[name]))) continue;
    if (figure.metric !== metric) rows.push(h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: lines.length + 2 }, figure.metric === null ? "of another version" : `${figure.metric} ${metrics[figure.metric]}`)));
    metric = figure.metric;
    rows.push(h("tr", {}, h("th", { scope: "row" }, h("code", {}, name), h("span", { class: "says" }, figure.says)),
      lines.map((line) => h("td", {}, intervalText(line.figures?.[name], figure.unit === "share" ? thousandths : number))), h("td", { class: "unit" }, [figure.unit, FAULTS[figure.better]].filter(Boolean).join("; "))));
  }
  if (!rows.length) return null;
  return h("div", { class: "card broad" }, h("h3", {}, title), scrolling(title, h("table", { class: "numbers wide measured" },
    h("thead", {}, h("tr", {}, h("td"), lines.map((line) => h("th", { scope: "col" }, measuredName(line))), h("th", { scope: "col" }, "unit"))),
    h("tbody", {}, rows))), h("p", { class: "note" }, note));
}

function thousandths(value) {
  return isNumber(value) ? value.toFixed(3) : "–";
}

/** Each monitor: what it watches, where that began and ended, and for how long it was beyond. */
function monitorsTable(lines, { monitors, patience }) {
  const watched = lines.filter((line) => line.users?.figures);
  const rows = monitors.map((monitor) => {
    const known = watched.map((line) => [line.iteration, line.users.figures[monitor.figure]]).filter(([, value]) => isNumber(value));
    if (!known.length) return null;
    const threshold = monitor.relative ? monitor.threshold * known[0][1] : monitor.threshold;
    const beyond = known.filter(([, value]) => (monitor.side === "above" ? value > threshold : value < threshold));
    return [h("code", {}, monitor.figure), `${monitor.side} ${number(threshold)}`, number(known[0][1]), number(known[known.length - 1][1]),
      beyond.length ? h("b", { class: "bad" }, `${number(beyond.length)} of ${number(known.length)}`) : `0 of ${number(known.length)}`,
      h("span", { class: "says" }, monitor.means)];
  }).filter(Boolean);
  return titled("Collapse, watched", ["figure", "a sign if", "first", "last", "iterations beyond", "of what"], rows,
    `A monitor fires after ${number(patience)} iterations in a row beyond its threshold; those that fired stand above the curves.`);
}
