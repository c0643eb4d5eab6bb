// Curves per iteration, and the numbers behind them.

function trainingSection(data) {
  const lines = [...data.iterations].filter((line) => isNumber(line.iteration)).sort((a, b) => a.iteration - b.iteration);
  const section = h("section", { id: "training" }, h("h2", {}, "Training"));
  if (lines.length) {
    section.append(h("p", { class: "note" }, "Hover or use the arrow keys on a chart: all charts read the same iteration."), alarmsList(lines));
    const cursor = makeCursor();
    for (const [title, charts] of chartGroups(lines, data.validations)) {
      const drawn = charts.filter((chart) => !chart.skip).map((chart) => lineChart({ ...chart, xs: lines.map((line) => line.iteration), xName: "iteration" }, cursor)).filter(Boolean);
      if (drawn.length) section.append(h("h3", {}, title), h("div", { class: "charts" }, drawn));
    }
  } else {
    section.append(h("p", { class: "empty" }, isOfTraining(data)
      ? "No iteration of reinforcement learning has finished." : "Nothing was trained here: these dialogues were only played."));
  }
  const cold = coldStartChart(data.cold_start);
  if (cold) section.append(h("h3", {}, "Cold start"), h("div", { class: "charts" }, cold));
  const hers = coldStartChart(data.user_cold_start);
  if (hers) section.append(h("h3", {}, "Cold start of the user"), h("div", { class: "charts" }, hers));
  section.append(numbersTable(lines) || "", downloads(data));
  return section;
}

/** What monitors said while it trained: of the users, and of sampler and trainer. */
function alarmsList(lines) {
  const told = lines.flatMap((line) => [
    ...listOf(line.users?.alarms).map(String),
    ...listOf(line.alarms).map((alarm) => `iteration ${line.iteration}: ${alarm}`),
    ...listOf(line.skipped).map((skipped) => `iteration ${line.iteration}: an update was skipped: ${skipped?.why ?? "its loss is not finite"}`),
  ]);
  if (!told.length) return "";
  return h("ul", { class: "notices" }, told.slice(0, 12).map((text) => h("li", {}, text)), told.length > 12 && h("li", {}, `and ${told.length - 12} more, in metrics.jsonl`));
}

function listOf(value) {
  return Array.isArray(value) ? value : [];
}

const OF_USERS = [
  ["Users repeat themselves", [["the words", "repeats_text"], ["the act", "repeats_act"]], "Share of the commonest draw at the same prefix; 1 is collapse."],
  ["What users do varies", [["", "act_entropy"]], "Entropy of what she does given what she answers, in nats."],
  ["Groups that teach nothing", [["flat", "flat_groups"], ["all fail", "all_fail_groups"], ["all pass", "all_pass_groups"]], "Share of groups; flat: all earn the same."],
  ["Reward told by who the user is", [["", "user_variance_share"]], "Share of the reward's variance."],
];

/** Charts by what they are about, each group with its heading. */
function chartGroups(lines, validations) {
  const xs = lines.map((line) => line.iteration);
  const of = (key) => lines.map((line) => line[key]);
  const within = (outer, key) => lines.map((line) => line[outer]?.[key]);
  const one = (key) => [{ name: "", values: of(key) }];
  const has = (key) => lines.some((line) => line[key] > 0);
  const inPercent = { format: percent, tickFormat: shortPercent };
  const groups = ["groups_all_pass", "groups_mixed", "groups_all_fail"];
  const total = lines.map((line) => groups.reduce((sum, key) => sum + (line[key] || 0), 0));
  const share = (key) => lines.map((line, i) => (total[i] ? (line[key] || 0) / total[i] : null));
  const named = (outer, missing) => [...new Set(lines.flatMap((line) => Object.keys(line[outer] || {})))].sort()
    .map((name) => ({ name: name || "unreadable", values: lines.map((line) => line[outer]?.[name] ?? (line[outer] ? missing : null)) }));
  const validated = new Map(validations.map((line) => [line.iteration - 1, line.success]));
  const validation = (key) => xs.map((x) => validated.get(x)?.[key] ?? null);
  const grams = (n) => within("distinct", n);
  const faults = [...new Set(lines.flatMap((line) => Object.keys(line.observed?.faults_by_kind || {})))].sort();
  return [
    ["Reward", [
      { title: "Reward", ...inPercent, domain: [0, 1], note: "Mean of the iteration's training episodes; band: 95 % interval.",
        series: [{ name: "", values: of("reward_mean"), low: of("reward_low"), high: of("reward_high") }] },
      { title: "Groups", ...inPercent, domain: [0, 1], stacked: true, note: "Only mixed groups carry a gradient.",
        series: [["all pass", groups[0]], ["mixed", groups[1]], ["all fail", groups[2]]].map(([name, key]) => ({ name, values: share(key) })) },
      { title: "Validation success", ...inPercent, domain: [0, 1], skip: !validations.some((line) => line.iteration > 0), note: "After the iteration, on the tasks by which weights are chosen; band: 95 % interval.",
        series: [{ name: "", values: validation("value"), low: validation("low"), high: validation("high") }] },
    ]],
    ["What the policy does", [
      { title: "Tool calls per dialogue", series: named("tool_calls", 0) },
      { title: "Calls answered with an error", ...inPercent, series: named("tool_errors", null), note: "Share of a tool's calls." },
      { title: "Turns per dialogue", series: one("turns_mean"), fromZero: false },
      { title: "Sampled tokens per dialogue", series: one("response_tokens_mean"), fromZero: false },
      { title: "Distinct n-grams", ...inPercent, series: ["1", "2", "3"].map((n) => ({ name: `${n} tokens`, values: grams(n) })), note: "Share of the n-grams in what was sampled that are the first of their kind; falling towards 0, the policy says the same again and again." },
      { title: "Cut by a cap", ...inPercent, skip: !lines.some((line) => Object.keys(line.outcomes || {}).some((name) => name.startsWith("truncated"))), note: "Dialogues that ended at a limit of turns, tokens or context.",
        series: [{ name: "", values: lines.map((line) => (line.outcomes && line.episodes ? Object.entries(line.outcomes).filter(([name]) => name.startsWith("truncated")).reduce((sum, [, count]) => sum + count, 0) / line.episodes : null)) }] },
    ]],
    ["Updates", [
      { title: "Entropy on sampled tokens", series: one("entropy"), note: "Nats per token, trainable tokens only." },
      { title: "KL to the cold start", series: one("kl") },
      { title: "Largest ratio", series: [{ name: "all updates", values: of("ratio_max") }, { name: "first", values: of("first_ratio_max") }], fromZero: false, note: "Trainer over sampler probability; 1 is on-policy." },
      { title: "Clipped tokens", ...inPercent, series: one("clip_fraction") },
      { title: "Gradient norm", series: one("grad_norm") },
      { title: "Learning rate", series: one("lr") },
      { title: "Credit moved between turns", ...inPercent, skip: !lines.some((line) => line.credit?.moved > 0), series: [{ name: "", values: within("credit", "moved") }], note: "Share of turns whose advantage is not their episode's." },
    ]],
    ["Sampler and trainer", [
      { title: "Mismatch at the same weights", log: true, series: [{ name: "", values: within("mismatch", "kl") }], note: "KL a token of what the sampler says it sampled from, and what the trainer believes." },
      { title: "Log-prob gap, sampler to trainer", log: true, note: "Largest in the iteration: at its first update, and right after new weights reached the sampler.",
        series: [{ name: "update", values: of("max_logprob_gap") }, { name: "sync", values: of("sync_gap") }] },
      { title: "Importance weights cut", ...inPercent, skip: !has("importance_truncated"), series: one("importance_truncated") },
      { title: "Versions behind", series: [{ name: "mean", values: of("lag_mean") }, { name: "most", values: of("lag_max") }], note: "From the weights that sampled a token to those that learned from it; 0 is on-policy." },
      { title: "Forks per dialogue", series: one("fork_rate"), skip: !has("fork_rate"), note: "How often the chat template rewrote history." },
      { title: "Token drift", series: one("token_drift"), skip: !has("token_drift") },
    ]],
    ["Users", OF_USERS.map(([title, series, note]) => ({ title, note, domain: title.startsWith("What") ? undefined : [0, 1],
      series: series.map(([name, key]) => ({ name, values: lines.map((line) => line.users?.figures?.[key]) })) }))],
    ["The user who is trained", [["Her reward", "reward_mean", "Highest where half of a group's dialogues succeed."], ["Groups that are even", "groups_even"], ["Messages thrown away", "rejected", "By her guard, before anybody read them."],
      ["Her entropy", "entropy"], ["Her gradient norm", "grad_norm"]].map(([title, key, note]) => ({ title, note, series: [{ name: "", values: within("user_model", key) }] }))],
    ["Throughput and faults", [
      { title: "Sampled tokens per second", series: one("sampled_tokens_per_s") },
      { title: "Seconds per iteration", series: [["all", "wall_s"], ["rollouts", "rollout_s"], ["learning", "learn_s"], ["weight sync", "sync_s"]].map(([name, key]) => ({ name, values: of(key) })) },
      { title: "Sampled while learning", ...inPercent, domain: [0, 1], series: one("overlap"), skip: !has("overlap"), note: "Share of the time of updates and weight syncs in which dialogues were under way." },
      { title: "Dialogues at once", series: [["live", "live_mean"], ["at the policy", "in_flight_mean"], ["queued in the engine", "queue_mean"]].map(([name, key]) => ({ name, values: within("observed", key) })) },
      { title: "Engine memory in use", ...inPercent, domain: [0, 1], series: [{ name: "", values: within("observed", "kv_use_mean") }], note: "Keys and values, where the engine says so." },
      { title: "Event loop lag, ms", series: [["median", "loop_lag_p50_ms"], ["99th percentile", "loop_lag_p99_ms"]].map(([name, key]) => ({ name, values: within("observed", key) })) },
      { title: "Faults", series: one("faults"), skip: !has("faults"), note: "Not scored, not trained." },
      { title: "Faulty attempts by kind", series: faults.map((name) => ({ name, values: lines.map((line) => line.observed?.faults_by_kind?.[name] ?? (line.observed ? 0 : null)) })), note: "Those that were tried again included." },
    ]],
  ];
}

function shortPercent(value) {
  return `${number(100 * value)} %`;
}

/** At most 400 points: the mean of each stretch of steps. */
function coldStartChart(lines) {
  const known = lines.filter((line) => isNumber(line.step) && isNumber(line.loss)).sort((a, b) => a.step - b.step);
  if (!known.length) return null;
  const every = Math.ceil(known.length / 400);
  const stretches = [];
  for (let i = 0; i < known.length; i += every) stretches.push(known.slice(i, i + every));
  const average = (stretch, key) => stretch.reduce((sum, line) => sum + line[key], 0) / stretch.length;
  const xs = stretches.map((stretch) => stretch[stretch.length - 1].step);
  const cursor = makeCursor();
  const charts = ["loss", "lr"].map((key) => lineChart({ title: key === "loss" ? "Loss per sampled token" : "Learning rate", xs, xName: "step",
    series: [{ name: "", values: stretches.map((stretch) => average(stretch, key)) }],
    note: every > 1 ? `Each point is the mean of ${every} steps.` : undefined }, cursor));
  const apart = known.filter((line) => isNumber(line.held_out_loss));
  if (apart.length) charts.push(lineChart({ title: "Loss on held-out tasks", xs: apart.map((line) => line.step), xName: "step",
    series: [{ name: "", values: apart.map((line) => line.held_out_loss) }],
    note: "Of the cold start only: what it leads to shows after reinforcement learning." }, makeCursor()));
  return charts;
}

function numbersTable(lines) {
  if (!lines.length) return null;
  const keys = [...new Set(lines.flatMap((line) => Object.keys(line)))].filter((key) => lines.every((line) => line[key] === null || typeof line[key] !== "object"));
  const text = (value) => (isNumber(value) ? number(value) : value === undefined ? "" : String(value));
  const table = () => scrolling("All numbers", h("table", { class: "numbers" },
    h("thead", {}, h("tr", {}, keys.map((key) => h("th", { scope: "col" }, key)))),
    h("tbody", {}, lines.map((line) => h("tr", {}, keys.map((key) => h("td", {}, text(line[key]))))))));
  // Long runs have many rows: they are made when somebody wants to see them.
  const fill = (event) => { if (event.target.open && event.target.childElementCount === 1) event.target.append(table()); };
  return h("details", { class: "fold", on: { toggle: fill } }, h("summary", {}, "All numbers, per iteration"));
}

function downloads(data) {
  const { table, tokens, systems, toolsets, shown, ...metrics } = data;
  return h("p", { class: "downloads" }, "Download ",
    download("iterations.csv", "iterations.csv", "text/csv", () => toCsv(data.iterations)),
    download("evaluations.csv", "evaluations.csv", "text/csv", () => toCsv([...data.evals, ...cellLines(data)])),
    data.users.length > 0 && download("users.csv", "users.csv", "text/csv", () => toCsv(userRows(data.users))),
    download("metrics.json", "metrics.json", "application/json", () => JSON.stringify(metrics, null, 1)),
    download("episodes.csv", "episodes.csv", "text/csv", () => toCsv(tableRows(table))));
}

/** Figures of users, one a row. */
function userRows(lines) {
  return lines.flatMap(({ figures, ...about }) => Object.entries(figures || {}).map(([figure, found]) => ({ ...about, figure, ...interval(found) })));
}

/** The table of all episodes, row by row. */
function tableRows(table) {
  const { count, pack, place, ...columns } = table;
  const value = (column, i) => (Array.isArray(column) ? column[i] : column.values[column.at[i]]);
  return Array.from({ length: count }, (_, i) => Object.fromEntries(Object.entries(columns).map(([name, column]) => {
    const found = value(column, i);
    return [name, Array.isArray(found) ? found.join(" ") : found];
  })));
}
