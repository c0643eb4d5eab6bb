// The head of the page and the headline: held-out success before and after.

const TRAINING = { base: "untrained", cold: "cold start", final: "after GRPO" };
const PHASES = { ...TRAINING, model: "evaluation" };

/** Whether the run trains: an evaluation and a rollout only play. */
function isOfTraining(data) {
  return (!data.evals.length && !data.grid) || data.evals.some((line) => Object.hasOwn(TRAINING, line.phase))
    || data.iterations.length > 0 || data.cold_start.length > 0;
}

/** Whether what was played was to be an evaluation. */
function isHeldOut(data) {
  return isOfTraining(data) || data.grid || data.evals.some((line) => line.phase === "model");
}

function phaseName(phase) {
  return Object.hasOwn(PHASES, phase) ? PHASES[phase] : String(phase ?? "evaluation");
}

function temperatureName(temperature) {
  if (!isNumber(temperature)) return "";
  return temperature === 0 ? "greedy" : `temperature ${number(temperature)}`;
}

function masthead(data) {
  const run = data.run;
  const seconds = [...data.iterations, ...data.evals].map((line) => line.wall_s).filter(isNumber);
  const facts = [
    ["run", run.name], ["seed", run.seed], ["engine", run.engine],
    ["model", run.model + (isNumber(run.parameters) ? ` (${millions(run.parameters)} parameters)` : "")],
    ["when", run.when],
    ["GRPO and evaluations took", seconds.length ? duration(seconds.reduce((a, b) => a + b, 0)) : null],
  ].filter(([, value]) => value);
  return h("div", { class: "masthead" },
    h("div", {}, h("p", { class: "brand" }, "muarl report"), h("h1", {}, run.domain)),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    themeButton());
}

function millions(count) {
  return count >= 1e6 ? `${number(count / 1e6)} M` : number(count);
}

function runsMasthead({ runs }) {
  const domains = [...new Set(runs.map(({ run }) => run.domain))];
  return h("div", { class: "masthead" },
    h("div", {}, h("p", { class: "brand" }, "muarl report"), h("h1", {}, `${runs.length} runs`)),
    h("dl", { class: "facts" }, h("div", {}, h("dt", {}, domains.length > 1 ? "domains" : "domain"), h("dd", {}, domains.join(", ")))),
    themeButton());
}

/** The evaluations to compare: first and last phase at the headline's temperature. */
function headline(evals) {
  if (!evals.length) return null;
  if (!evals.some((line) => Object.hasOwn(TRAINING, line.phase))) {
    // What was only played has no before and after.
    const shown = evals.findLast((line) => String(line.phase).startsWith("eval:final")) || evals[0];
    return { temperature: shown.temperature, before: shown, after: null };
  }
  const temperature = evals[0].temperature;
  const same = evals.filter((line) => line.temperature === temperature);
  const before = same.find((line) => line.phase === "cold") || same[0];
  const after = same.findLast((line) => line.phase === "final") || same[same.length - 1];
  return { temperature, before, after: after === before ? null : after };
}

function summarySection(data) {
  const section = h("section", { id: "summary" }, h("h2", {}, isHeldOut(data) ? "Held-out success" : "Success"));
  const found = headline(data.evals);
  const grid = found ? null : gridTable(data.grid);
  if (grid) {
    section.append(grid);
    return section;
  }
  if (!found) {
    section.append(h("p", { class: "empty" }, "No evaluation has finished yet."));
    return section;
  }
  section.append(h("div", { class: "hero" }, heroFigure(found, isHeldOut(data)), evalTable(data, found)), tiles(data, found));
  return section;
}

function heroFigure({ temperature, before, after }, heldOut) {
  const figure = (line) => h("div", { class: "score" },
    h("span", { class: "big" }, percent(interval(line.success)?.value)),
    h("span", { class: "range" }, rangeText(line.success)),
    h("span", { class: "phase" }, phaseName(line.phase)));
  const episodes = after || before;
  return h("div", { class: "headline" },
    h("div", { class: "scores" }, figure(before), after && h("span", { class: "arrow", "aria-label": "to" }, "→"), after && figure(after)),
    h("p", { class: "note" }, `${number(episodes.n)} ${heldOut ? "held-out dialogues per evaluation" : "dialogues"}`
      + (isNumber(temperature) ? `, sampled at ${temperatureName(temperature)}` : "")
      + (isNumber(episodes.faults) ? `; ${number(before.faults + (after ? after.faults : 0))} faults, not counted` : "")
      + ". Ranges are 95 % intervals."), caveats(episodes));
}

/** What scores leave out, such as a part that nobody judged. */
function caveats({ n, caveats: found }) {
  const told = found && typeof found === "object" ? Object.entries(found) : [];
  return told.filter(([, count]) => isNumber(count)).map(([what, count]) =>
    h("p", { class: "note caveat" }, `${number(count)} of ${number(n)} scores leave something out: ${what}`));
}

function rangeText(value) {
  const found = interval(value);
  if (!found) return "";
  // A bare number, such as of an older floor, claims nothing.
  if (!isNumber(found.low)) return isNumber(found.n) ? "no interval: it is of one task" : "";
  return `${(100 * found.low).toFixed(1)} – ${(100 * found.high).toFixed(1)} %`;
}

function floorOf(data) {
  const scores = data.floors.map((line) => interval(line.success)?.value).filter(isNumber);
  return scores.length ? Math.max(...scores) : null;
}

/** As muarl.evaluate.floor.above_floor. */
function aboveFloor(score, floor) {
  return score < floor ? "the policy is below it" : `${percent((score - floor) / (1 - floor))} of the rest is earned`;
}

function scoreText(value) {
  return [h("b", {}, percent(interval(value)?.value)), " ", h("span", { class: "range" }, rangeText(value))];
}

/** One row per temperature, then per domain and persona: numbers, and the same drawn on one scale. */
function evalTable(data, found) {
  const phases = [...new Set(data.evals.map((line) => line.phase))];
  const temperatures = [...new Set(data.evals.map((line) => line.temperature))];
  const at = (phase, temperature) => data.evals.find((line) => line.phase === phase && line.temperature === temperature);
  const floor = floorOf(data);
  const rows = temperatures.map((temperature) => evalRow(temperatureName(temperature) || "all",
    phases.map((phase) => at(phase, temperature)?.success), floor));
  const personas = [...new Set(data.evals.flatMap((line) => Object.keys(line.by_persona || {})))];
  const personaRows = personas.map((persona) => evalRow(persona,
    phases.map((phase) => at(phase, found.temperature)?.by_persona?.[persona]), floor));
  const domains = [...new Set(data.evals.flatMap((line) => Object.keys(line.by_row || {})))];
  const domainRows = domains.map((name) => evalRow(name,
    phases.map((phase) => at(phase, found.temperature)?.by_row?.[name]?.success), null));
  const floorRows = data.floors.map((line) => h("tr", {}, h("th", { scope: "row" }, String(line.name ?? "unnamed").replaceAll("_", " ")),
    h("td", { colspan: phases.length }, scoreText(line.success)), h("td", { class: "scale" }, plot([line.success], ["m9"], null))));
  const group = (title, body) => body.length ? h("tbody", {},
    h("tr", { class: "group" }, h("th", { colspan: phases.length + 2, scope: "rowgroup" }, title)), body) : null;
  return scrolling("Success by kind of dialogue", h("table", { class: "evals" },
    h("thead", {}, h("tr", {}, h("td"), phases.map((phase, i) => h("th", { scope: "col" }, swatchDot(i, phases.length), phaseName(phase))),
      h("th", { scope: "col", class: "scale" }, ["0", "50 %", "100 %"].map((text) => h("span", {}, text))))),
    group("all dialogues", rows), group(`by domain, ${temperatureName(found.temperature)}`, domainRows), group(`by persona, ${temperatureName(found.temperature)}`, personaRows),
    group("trivial policies (the floor)", floorRows)));
}

function tone(index, count) {
  return count > 1 && index === count - 1 ? 0 : index === 0 ? 1 : 2 + index;
}

function swatchDot(index, count) {
  return h("span", { class: `mark m${tone(index, count)}`, "aria-hidden": "true" });
}

function evalRow(name, values, floor) {
  const marks = values.map((_, i) => `m${tone(i, values.length)}`);
  return h("tr", {}, h("th", { scope: "row" }, name),
    values.map((value) => h("td", {}, scoreText(value))),
    h("td", { class: "scale" }, plot(values, marks, floor)));
}

/** Dots with whiskers on a scale from 0 to 1. */
function plot(values, marks, floor) {
  const box = h("div", { class: "plot" });
  if (isNumber(floor)) {
    const line = h("span", { class: "floor", title: `floor ${percent(floor)}` });
    line.style.setProperty("--value", floor);
    box.append(line);
  }
  values.forEach((value, i) => {
    const found = interval(value);
    if (!found) return;
    const mark = h("span", { class: `whisker ${marks[i]}` });
    for (const [key, bound] of [["value", found.value], ["low", found.low ?? found.value], ["high", found.high ?? found.value]]) {
      mark.style.setProperty(`--${key}`, bound);
    }
    box.append(mark);
  });
  return box;
}

/** Why dialogues ended, the most frequent first. */
function endings(outcomes) {
  return Object.entries(outcomes || {}).sort((a, b) => b[1] - a[1]).map(([outcome, count]) => `${number(count)} ${outcome.replaceAll("_", " ")}`);
}

function tiles(data, { before, after }) {
  const last = after || before;
  const floor = floorOf(data);
  const ended = endings(last.outcomes);
  const lines = data.iterations;
  const worst = (key) => lines.map((line) => line[key]).filter(isNumber).reduce((a, b) => Math.max(a, b), -Infinity);
  const change = (key, format) => after && interval(before[key]) ? `${format(interval(before[key]).value)} before` : "";
  const score = interval(last.success)?.value;
  const speeds = lines.map((line) => line.sampled_tokens_per_s).filter(isNumber).sort((a, b) => a - b);
  const list = [
    ["writes the user confirmed", interval(last.confirmed) && percent(interval(last.confirmed).value), change("confirmed", percent)],
    ["floor: best trivial policy", isNumber(floor) && percent(floor),
      isNumber(floor) && floor < 1 && isNumber(score) ? aboveFloor(score, floor) : ""],
    ["ended most often", ended[0], ended.slice(1).join(", ")],
    ["turns per dialogue", interval(last.turns) && number(interval(last.turns).value), change("turns", number)],
    ["sampled tokens per dialogue", interval(last.sampled_tokens) && number(interval(last.sampled_tokens).value), change("sampled_tokens", number)],
    ["tool calls answered with an error", isNumber(last.tool_errors) && percent(last.tool_errors), change("tool_errors", percent)],
    ["token drift", lines.some((line) => isNumber(line.token_drift)) && number(worst("token_drift")), "tokens trained but not sampled so"],
    ["sampler and trainer differ by", Number.isFinite(worst("max_logprob_gap")) && number(worst("max_logprob_gap")), "largest log-prob gap of the run"],
    ["sampled tokens per second", speeds.length && number(speeds[speeds.length >> 1]), "median iteration"],
  ].filter(([, value]) => value);
  return h("dl", { class: "tiles" }, list.map(([name, value, note]) =>
    h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value), note && h("dd", { class: "under" }, note))));
}
