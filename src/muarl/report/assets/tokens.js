// The token strip: what the policy sampled, coloured by what one wants to know of each token.

const SURE = [[0.9, "p0"], [0.5, "p1"], [0.1, "p2"], [0.01, "p3"], [0, "p4"]];
const APART = [[1, "p4"], [0.1, "p3"], [0.01, "p2"], [0.001, "p1"], [0, "p0"]];
const VERSIONS = 6;

function shadeOf(bounds, value) {
  return isNumber(value) ? bounds.find(([bound]) => value >= bound)[1] : "";
}

function advantageShade(value) {
  if (!isNumber(value)) return "";
  if (Math.abs(value) < 1e-9) return "z0";
  return `${value > 0 ? "up" : "down"}${Math.abs(value) >= 1 ? 2 : 1}`;
}

const keys = (pairs) => pairs.map(([name, text]) => [h("span", { class: `t s ${name}` }, text), " "]);

/** What tokens can be coloured by: `has` says whether a strip knows it, `shade` the class of a token. */
const COLOURS = {
  probability: { name: "probability", has: () => true, shade: (token) => shadeOf(SURE, Math.exp(token.logprob)),
    legend: () => [" with probability ", keys([["p0", "≥ .9"], ["p1", "≥ .5"], ["p2", "≥ .1"], ["p3", "≥ .01"], ["p4", "< .01"]])] },
  mask: { name: "mask", has: () => true, shade: () => "masked", legend: () => [" and trained"] },
  gap: { name: "log-prob gap", has: (tokens) => tokens.some((token) => isNumber(token.trainer)),
    shade: (token) => shadeOf(APART, Math.abs(token.trainer - token.logprob)),
    legend: () => [", and the trainer's log-prob is off by ", keys([["p0", "< .001"], ["p1", "≥ .001"], ["p2", "≥ .01"], ["p3", "≥ .1"], ["p4", "≥ 1"]])] },
  advantage: { name: "advantage", has: (tokens) => tokens.some((token) => isNumber(token.advantage)),
    shade: (token) => advantageShade(token.advantage),
    legend: () => [" with advantage ", keys([["down2", "≤ −1"], ["down1", "below 0"], ["z0", "0"], ["up1", "above 0"], ["up2", "≥ 1"]])] },
  version: { name: "policy version", has: () => true, shade: (token) => `v${token.version % VERSIONS}`,
    legend: () => [", one colour for each version of the weights"] },
};

/** Every token of a sample with what is known of it. `turns` are those of the dialogue that lie in it. */
function tokensOf(sample, turns, advantages) {
  const tokens = sample.ids.map((id) => ({ id, sampled: false }));
  let next = 0;
  for (const [start, end, version] of sample.spans) {
    for (let at = start; at < end && at < tokens.length; at++, next++) {
      Object.assign(tokens[at], { sampled: true, version, logprob: sample.logprobs[next], trainer: sample.trainer?.[next] });
    }
  }
  for (const { turn, number } of turns) {
    for (let at = turn.start; at < turn.end && at < tokens.length; at++) tokens[at].advantage = advantages?.[number];
  }
  return tokens;
}

/** All samples of a dialogue, and the choice of what their tokens are coloured by. */
function tokenPart(episode, samples, texts) {
  const strips = samples.map((sample, number) => {
    const turns = episode.turns.map((turn, at) => ({ turn, number: at })).filter(({ turn }) => turn.sample === number);
    return tokenStrip(tokensOf(sample, turns, episode.advantages), number, texts);
  });
  const all = strips.flatMap((strip) => strip.tokens);
  const legend = h("span");
  const paint = (name) => {
    legend.replaceChildren(...[h("span", { class: "t" }, "given"), ", not trained · ", h("span", { class: "t s" }, "sampled"),
      COLOURS[name].legend()].flat(Infinity));
    strips.forEach((strip) => strip.paint(COLOURS[name].shade));
  };
  const choose = h("select", { on: { change: (event) => paint(event.target.value) } }, Object.entries(COLOURS).map(([value, colour]) =>
    h("option", { value, disabled: !colour.has(all) }, colour.has(all) ? colour.name : `${colour.name} (not recorded)`)));
  paint("probability");
  const key = h("div", { class: "tokenkey" }, h("label", {}, "colour by ", choose), " ", legend);
  return { strips, parts: strips.length ? [h("h4", {}, "Tokens"), key, strips.map((strip) => strip.box)] : [] };
}

/** One sample's tokens. The prompt's head is folded: it is the same in every dialogue. */
function tokenStrip(tokens, index, texts) {
  const readout = h("output", { class: "readout" }, "Point at a token, or focus the strip and use ← → (Shift: next sampled).");
  const strip = h("div", { class: "strip", tabindex: 0, role: "group", "aria-label": `Tokens of sample ${index + 1}` });
  const head = tokens.findIndex((token) => token.sampled);
  const folded = Math.max(0, head - 24);
  const spans = new Map();
  let shade = () => "";
  const add = (from, to, before) => {
    for (let at = from; at < to; at++) {
      const span = h("span", { class: tokenClass(tokens[at], shade), "data-at": at }, tokenText(tokens[at].id, texts).replaceAll("\n", "↵\n"));
      spans.set(at, span);
      strip.insertBefore(span, before);
    }
  };
  if (folded) {
    const more = h("button", { type: "button", class: "more" }, `… ${folded} prompt tokens`);
    more.addEventListener("click", () => { add(0, folded, more); more.remove(); });
    strip.append(more);
  }
  add(folded, tokens.length, null);

  let current = null;
  const read = (at) => {
    const span = spans.get(at);
    if (!span) return;
    spans.get(current)?.classList.remove("current");
    span.classList.add("current");
    current = at;
    readout.textContent = tokenReading(tokens[at], at, texts);
  };
  strip.addEventListener("pointerover", (event) => {
    const at = event.target.dataset?.at;
    if (at !== undefined) read(Number(at));
  });
  strip.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    let at = (current ?? folded - 1) + direction;
    while (event.shiftKey && spans.has(at) && !tokens[at].sampled) at += direction;
    read(at);
    spans.get(at)?.scrollIntoView({ block: "nearest" });
  });
  const sampled = tokens.filter((token) => token.sampled).length;
  const box = h("div", { class: "sample" },
    h("p", { class: "note" }, `${number(tokens.length)} tokens, ${number(sampled)} sampled`), readout, strip);
  const point = (at) => { read(at); strip.focus(); spans.get(at)?.scrollIntoView({ block: "center" }); };
  const paint = (by) => {
    shade = by;
    for (const [at, span] of spans) span.className = tokenClass(tokens[at], shade) + (at === current ? " current" : "");
  };
  return { box, point, paint, tokens };
}

function tokenClass(token, shade) {
  return token.sampled ? `t s ${shade(token)}` : "t";
}

function tokenText(id, texts) {
  return Object.hasOwn(texts, id) ? texts[id] : `⟨${id}⟩`;
}

function tokenReading(token, at, texts) {
  const parts = [`${at}`, `id ${token.id}`, JSON.stringify(tokenText(token.id, texts))];
  if (!token.sampled) return [...parts, "given, not trained"].join(" · ");
  parts.push(`sampled by version ${token.version}`);
  if (isNumber(token.logprob)) parts.push(`log-prob ${token.logprob.toFixed(4)}`, `probability ${percent(Math.exp(token.logprob))}`);
  if (isNumber(token.trainer)) parts.push(`trainer's log-prob ${token.trainer.toFixed(4)}`);
  if (isNumber(token.advantage)) parts.push(`advantage ${number(token.advantage)}`);
  return parts.join(" · ");
}

/** Sum of a turn's log-probs, for the head of its message. */
function turnLogprob(tokens, turn) {
  return tokens.slice(turn.start, turn.end).reduce((sum, token) => sum + (token.sampled ? token.logprob ?? NaN : 0), 0);
}
