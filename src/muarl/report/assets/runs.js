// Several runs side by side: what they ended with, in which settings they differ, and their curves.

const CURVES = [
  { title: "Reward", key: "reward_mean", low: "reward_low", high: "reward_high", format: percent, tickFormat: shortPercent, domain: [0, 1] },
  { title: "Groups that teach", of: (line) => share(line, "groups_mixed"), format: percent, tickFormat: shortPercent, domain: [0, 1] },
  { title: "Entropy on sampled tokens", key: "entropy" },
  { title: "KL to the cold start", key: "kl" },
  { title: "Turns per dialogue", key: "turns_mean", fromZero: false },
  { title: "Sampled tokens per dialogue", key: "response_tokens_mean", fromZero: false },
  { title: "Tool calls per dialogue", of: (line) => (line.tool_calls ? Object.values(line.tool_calls).filter(isNumber).reduce((a, b) => a + b, 0) : null) },
  { title: "Distinct 3-grams", of: (line) => line.distinct?.["3"], format: percent, tickFormat: shortPercent },
  { title: "Gradient norm", key: "grad_norm" },
  { title: "Largest ratio", key: "ratio_max", fromZero: false },
  { title: "Clipped tokens", key: "clip_fraction", format: percent, tickFormat: shortPercent },
  { title: "Versions behind", key: "lag_mean" },
  { title: "Mismatch of sampler and trainer", of: (line) => line.mismatch?.kl, log: true },
  { title: "Sampled tokens per second", key: "sampled_tokens_per_s" },
  { title: "Seconds per iteration", key: "wall_s" },
];
const MOST_RUNS_DRAWN = 8;
const MOST_BANDS = 3;  // more would hide each other

function share(line, key) {
  const all = ["groups_all_pass", "groups_mixed", "groups_all_fail"].reduce((sum, name) => sum + (line[name] || 0), 0);
  return all ? (line[key] || 0) / all : null;
}

function runsSection({ runs, settings, trainings }) {
  if (runs.length < 2) return "";
  const section = h("section", { id: "runs" }, h("h2", {}, "Side by side"), endingTable(runs, trainings));
  if (settings.length) {
    section.append(titled("In what they differ", ["", ...runs.map(({ run }) => run.name)],
      settings.map(({ path, values }) => [h("code", {}, path), ...values.map((value) => h("code", {}, value ?? "–"))])));
  }
  const charts = comparedCharts(runs.slice(0, MOST_RUNS_DRAWN));
  if (charts.length) section.append(h("h3", {}, "Training"), h("div", { class: "charts" }, charts));
  if (runs.length > MOST_RUNS_DRAWN) section.append(h("p", { class: "note" }, `Curves of the first ${MOST_RUNS_DRAWN} runs; more colours could not be told apart.`));
  section.append(h("p", { class: "downloads" }, "Download ",
    download("all iterations.csv", "runs.csv", "text/csv", () => toCsv(runs.flatMap(({ run, iterations }) => iterations.map((line) => ({ run: run.name, ...line }))))),
    download("all evaluations.csv", "runs-evaluations.csv", "text/csv", () => toCsv(runs.flatMap(({ run, evals }) => evals.map((line) => ({ run: run.name, ...line })))))));
  return section;
}

/** What each run ended with, at the temperature of its headline. */
function endingTable(runs, trainings) {
  const rows = runs.map((data, i) => {
    const found = headline(data.evals);
    const last = found && (found.after || found.before);
    const rewards = data.iterations.map((line) => line.reward_mean).filter(isNumber);
    return h("tr", {}, h("th", { scope: "row" }, swatch(i), data.run.name), h("td", {}, data.run.seed),
      h("td", {}, found?.after ? scoreText(found.before.success) : "–"), h("td", {}, last ? scoreText(last.success) : "–"),
      h("td", { class: "scale" }, plot([last?.success], [`s${i % 8}`], floorOf(data))),
      h("td", {}, last ? number(last.n) : "–"), h("td", {}, rewards.length ? percent(rewards[rewards.length - 1]) : "–"), h("td", {}, number(data.iterations.length)));
  });
  return h("div", { class: "card" }, scrolling("Runs side by side", h("table", { class: "evals of-runs" },
    h("thead", {}, h("tr", {}, ["run", "seed", "before", "success", "0 to 100 %", "dialogues", "last training reward", "iterations"].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows))), h("p", { class: "note" }, "Success of the last evaluation with its 95 % interval; the dashed line is the floor. Intervals that overlap do not show a difference: muarl compare compares runs task by task."),
    trainings.map(({ runs: names, says }) => h("p", { class: "note" }, `Trainings of one kind, which differ by the seed alone: ${names.join(", ")}. Success: ${says}.`)));
}

function comparedCharts(runs) {
  const lines = runs.map((data) => new Map(data.iterations.filter((line) => isNumber(line.iteration)).map((line) => [line.iteration, line])));
  const xs = [...new Set(lines.flatMap((of) => [...of.keys()]))].sort((a, b) => a - b);
  if (!xs.length) return [];
  const cursor = makeCursor();
  const validations = runs.map((data) => new Map(data.validations.map((line) => [line.iteration - 1, interval(line.success)?.value])));
  const validation = { title: "Validation success", format: percent, tickFormat: shortPercent, domain: [0, 1],
    series: runs.map((data, i) => ({ name: data.run.name, colour: i, values: xs.map((x) => validations[i].get(x) ?? null) })) };
  const at = (i, key) => xs.map((x) => lines[i].get(x)?.[key] ?? null);
  const values = (curve, i) => (curve.of ? xs.map((x) => (lines[i].has(x) ? curve.of(lines[i].get(x)) ?? null : null)) : at(i, curve.key));
  const band = (curve, i) => (curve.low && runs.length <= MOST_BANDS ? { low: at(i, curve.low), high: at(i, curve.high) } : {});
  const charts = CURVES.map((curve) => ({ ...curve, series: runs.map((data, i) => ({ name: data.run.name, colour: i, values: values(curve, i), ...band(curve, i) })) }));
  return [charts[0], validation, ...charts.slice(1)].map((chart) => lineChart({ ...chart, xs, xName: "iteration" }, cursor)).filter(Boolean);
}

/** Each run by itself, one at a time. */
function runTabs(runs, drawRun) {
  const body = h("div", { class: "onerun" });
  const buttons = runs.map(({ run }, i) => h("button", { type: "button", class: "tab", "aria-pressed": "false", on: { click: () => show(i, true) } }, run.name));
  const show = (i, chosen) => {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === i)));
    if (chosen) history.replaceState(null, "", `#run=${encodeURIComponent(runs[i].run.name)}`);
    body.replaceChildren(...drawRun(runs[i], i));
  };
  const linked = new URLSearchParams(location.hash.slice(1)).get("run");
  show(Math.max(0, runs.findIndex(({ run }) => run.name === linked)), false);
  return [h("nav", { class: "tabs", "aria-label": "One run by itself" }, h("span", { class: "note" }, "one by itself"), buttons), body];
}
