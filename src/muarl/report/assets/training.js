// Curves per iteration, and the numbers behind them.

function trainingSection(data) {
  const lines = [...data.iterations].filter((line) => isNumber(line.iteration)).sort((a, b) => a.iteration - b.iteration);
  const section = h("section", { id: "training" }, h("h2", {}, "Training"));
  if (lines.length) {
    section.append(h("p", { class: "note" }, "Hover or use the arrow keys on a chart: all charts read the same iteration."),
      h("div", { class: "charts" }, iterationCharts(lines, data.validations)));
  } else {
    section.append(h("p", { class: "empty" }, isOfTraining(data)
      ? "No iteration of reinforcement learning has finished." : "Nothing was trained here: these dialogues were only played."));
  }
  const cold = coldStartChart(data.cold_start);
  if (cold) section.append(h("h3", {}, "Cold start"), h("div", { class: "charts" }, cold));
  section.append(numbersTable(lines) || "", downloads(data));
  return section;
}

function iterationCharts(lines, validations) {
  const cursor = makeCursor();
  const xs = lines.map((line) => line.iteration);
  const of = (key) => lines.map((line) => line[key]);
  const one = (key) => [{ name: "", values: of(key) }];
  const groups = ["groups_all_pass", "groups_mixed", "groups_all_fail"];
  const total = lines.map((line) => groups.reduce((sum, key) => sum + (line[key] || 0), 0));
  const share = (key) => lines.map((line, i) => (total[i] ? (line[key] || 0) / total[i] : null));
  const tools = [...new Set(lines.flatMap((line) => Object.keys(line.tool_calls || {})))].sort();
  const validated = new Map(validations.map((line) => [line.iteration - 1, line.success]));
  const validation = (key) => xs.map((x) => validated.get(x)?.[key] ?? null);
  const charts = [
    { title: "Reward", format: percent, tickFormat: shortPercent, domain: [0, 1], note: "Mean of the iteration's training episodes; band: 95 % interval.",
      series: [{ name: "", values: of("reward_mean"), low: of("reward_low"), high: of("reward_high") }] },
    { title: "Groups", format: percent, tickFormat: shortPercent, domain: [0, 1], stacked: true, note: "Only mixed groups carry a gradient.",
      series: [["all pass", groups[0]], ["mixed", groups[1]], ["all fail", groups[2]]].map(([name, key]) => ({ name, values: share(key) })) },
    { title: "Tool calls per dialogue", series: tools.map((tool) => ({ name: tool || "unreadable", values: lines.map((line) => line.tool_calls?.[tool] ?? (line.tool_calls ? 0 : null)) })) },
    { title: "Turns per dialogue", series: one("turns_mean"), fromZero: false },
    { title: "Sampled tokens per dialogue", series: one("response_tokens_mean"), fromZero: false },
    { title: "Validation success", format: percent, tickFormat: shortPercent, domain: [0, 1], skip: !validations.some((line) => line.iteration > 0), note: "After the iteration, on the tasks by which weights are chosen; band: 95 % interval.",
      series: [{ name: "", values: validation("value"), low: validation("low"), high: validation("high") }] },
    { title: "Entropy on sampled tokens", series: one("entropy"), note: "Nats per token, trainable tokens only." },
    { title: "KL to the cold start", series: one("kl") },
    { title: "Largest ratio", series: [{ name: "all updates", values: of("ratio_max") }, { name: "first", values: of("first_ratio_max") }], fromZero: false, note: "Trainer over sampler probability; 1 is on-policy." },
    { title: "Clipped tokens", format: percent, tickFormat: shortPercent, series: one("clip_fraction") },
    { title: "Gradient norm", series: one("grad_norm") },
    { title: "Log-prob gap, sampler to trainer", log: true, note: "Largest in the iteration: at its first update, and right after new weights reached the sampler.",
      series: [{ name: "update", values: of("max_logprob_gap") }, { name: "sync", values: of("sync_gap") }] },
    { title: "Sampled tokens per second", series: one("sampled_tokens_per_s") },
    { title: "Seconds per iteration", series: [{ name: "all", values: of("wall_s") }, { name: "rollouts", values: of("rollout_s") }] },
    { title: "Versions behind", series: [{ name: "mean", values: of("lag_mean") }, { name: "most", values: of("lag_max") }], skip: !lines.some((line) => line.lag_max > 0), note: "From the weights that sampled a token to those that learned from it." },
    { title: "Sampled while learning", format: percent, tickFormat: shortPercent, domain: [0, 1], series: one("overlap"), skip: !lines.some((line) => line.overlap > 0), note: "Share of the time of updates and weight syncs in which dialogues were under way." },
    { title: "Faults", series: one("faults"), skip: !lines.some((line) => line.faults > 0), note: "Not scored, not trained." },
    { title: "Forks per dialogue", series: one("fork_rate"), skip: !lines.some((line) => line.fork_rate > 0), note: "How often the chat template rewrote history." },
    { title: "Token drift", series: one("token_drift"), skip: !lines.some((line) => line.token_drift > 0) },
  ];
  return charts.filter((chart) => !chart.skip).map((chart) => lineChart({ ...chart, xs, xName: "iteration" }, cursor));
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
  const keys = [...new Set(lines.flatMap((line) => Object.keys(line)))].filter((key) => key !== "tool_calls");
  const text = (value) => (isNumber(value) ? number(value) : value === undefined ? "" : String(value));
  const table = () => h("div", { class: "scroll" }, h("table", { class: "numbers" },
    h("thead", {}, h("tr", {}, keys.map((key) => h("th", { scope: "col" }, key)))),
    h("tbody", {}, lines.map((line) => h("tr", {}, keys.map((key) => h("td", {}, text(line[key]))))))));
  // Long runs have many rows: they are made when somebody wants to see them.
  const fill = (event) => { if (event.target.open && event.target.childElementCount === 1) event.target.append(table()); };
  return h("details", { class: "fold", on: { toggle: fill } }, h("summary", {}, "All numbers, per iteration"));
}

function downloads(data) {
  const { episodes, tokens, ...numbers } = data;
  const { systems, toolsets, shown, ...metrics } = numbers;
  return h("p", { class: "downloads" }, "Download ",
    download("iterations.csv", "iterations.csv", "text/csv", () => toCsv(data.iterations)),
    download("evaluations.csv", "evaluations.csv", "text/csv", () => toCsv(data.evals)),
    download("metrics.json", "metrics.json", "application/json", () => JSON.stringify(metrics, null, 1)),
    download("shown episodes.json", "episodes.json", "application/json", () => JSON.stringify({ systems, toolsets, episodes })));
}
