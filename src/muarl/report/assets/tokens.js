// The token strip: what the policy sampled, and how sure it was of each token.

const SURE = [[0.9, "p0"], [0.5, "p1"], [0.1, "p2"], [0.01, "p3"], [0, "p4"]];

function sureness(logprob) {
  const probability = Math.exp(logprob);
  return SURE.find(([bound]) => probability >= bound)[1];
}

function tokenLegend() {
  const keys = [["p0", "≥ .9"], ["p1", "≥ .5"], ["p2", "≥ .1"], ["p3", "≥ .01"], ["p4", "< .01"]];
  return h("p", { class: "tokenkey" }, h("span", { class: "t" }, "given"), ", not trained · ",
    h("span", { class: "t s" }, "sampled"), " with probability ",
    keys.map(([name, text]) => [h("span", { class: `t s ${name}` }, text), " "]));
}

/** One sample's tokens. The prompt's head is folded: it is the same in every dialogue. */
function tokenStrip(sample, index, texts) {
  const logprobs = new Map();
  const version = new Map();
  let next = 0;
  for (const [start, end, policyVersion] of sample.spans) {
    for (let at = start; at < end; at++) {
      logprobs.set(at, sample.logprobs[next++]);
      version.set(at, policyVersion);
    }
  }
  const readout = h("output", { class: "readout" }, "Point at a token, or focus the strip and use ← → (Shift: next sampled).");
  const strip = h("div", { class: "strip", tabindex: 0, role: "group", "aria-label": `Tokens of sample ${index + 1}` });
  const head = sample.spans.length ? sample.spans[0][0] : 0;
  const folded = Math.max(0, head - 24);
  const spans = new Map();
  const add = (from, to, before) => {
    for (let at = from; at < to; at++) {
      const span = tokenSpan(sample.ids[at], version.has(at), logprobs.get(at), texts);
      span.dataset.at = at;
      spans.set(at, span);
      strip.insertBefore(span, before);
    }
  };
  if (folded) {
    const more = h("button", { type: "button", class: "more" }, `… ${folded} prompt tokens`);
    more.addEventListener("click", () => { add(0, folded, more); more.remove(); });
    strip.append(more);
  }
  add(folded, sample.ids.length, null);

  let current = null;
  const read = (at) => {
    const span = spans.get(at);
    if (!span) return;
    spans.get(current)?.classList.remove("current");
    span.classList.add("current");
    current = at;
    readout.textContent = tokenReading(sample.ids[at], at, version.get(at), logprobs.get(at), texts);
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
    while (event.shiftKey && spans.has(at) && !version.has(at)) at += direction;
    read(at);
    spans.get(at)?.scrollIntoView({ block: "nearest" });
  });
  const box = h("div", { class: "sample" },
    h("p", { class: "note" }, `${number(sample.ids.length)} tokens, ${number(version.size)} sampled`), readout, strip);
  const point = (at) => { read(at); strip.focus(); spans.get(at)?.scrollIntoView({ block: "center" }); };
  return { box, point };
}

function tokenText(id, texts) {
  return Object.hasOwn(texts, id) ? texts[id] : `⟨${id}⟩`;
}

function tokenSpan(id, sampled, logprob, texts) {
  const kind = sampled ? `t s ${isNumber(logprob) ? sureness(logprob) : ""}` : "t";
  return h("span", { class: kind }, tokenText(id, texts).replaceAll("\n", "↵\n"));
}

function tokenReading(id, at, policyVersion, logprob, texts) {
  const parts = [`${at}`, `id ${id}`, JSON.stringify(tokenText(id, texts))];
  if (policyVersion === undefined) return [...parts, "given, not trained"].join(" · ");
  parts.push(`sampled by version ${policyVersion}`);
  if (isNumber(logprob)) parts.push(`log-prob ${logprob.toFixed(4)}`, `probability ${percent(Math.exp(logprob))}`);
  return parts.join(" · ");
}

/** Sum of a turn's log-probs, for the head of its message. */
function turnLogprob(sample, turn) {
  let next = 0;
  let sum = 0;
  for (const [start, end] of sample.spans) {
    for (let at = start; at < end; at++, next++) {
      if (at >= turn.start && at < turn.end) sum += sample.logprobs[next] ?? NaN;
    }
  }
  return sum;
}
