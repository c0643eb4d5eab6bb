"use strict";
// Texts of dialogues enter the page here, and only as text nodes.

const data = JSON.parse(document.getElementById("data").textContent);
const reviews = new Map();

function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function told(number) {
  const done = [...reviews.values()].filter((review) => "accepts" in review).length;
  document.getElementById("count").textContent = `${done} of ${data.dialogues.length} reviewed`;
  return number;
}

function choice(number, article, accepts, words) {
  const input = node("input", { type: "radio", name: `d${number}` });
  input.addEventListener("change", () => {
    reviews.set(number, { ...reviews.get(number), accepts });
    article.className = accepts ? "accepted" : "rejected";
    told(number);
  });
  return node("label", {}, input, ` ${words} `);
}

data.dialogues.forEach((dialogue, number) => {
  const lines = node("dl", {});
  for (const [who, text] of dialogue.lines) {
    lines.append(node("dt", {}, who), node("dd", { class: who.split(" ")[0] === "agent's" ? "call" : who.startsWith("answer") ? "tool" : "said" }, text));
  }
  const comment = node("input", { type: "text", "aria-label": "Why", placeholder: "why (optional)" });
  const article = node("article", {}, node("h2", {}, `${number + 1}. ${dialogue.task}`), node("p", {}, dialogue.goal), lines);
  comment.addEventListener("input", () => reviews.set(number, { ...reviews.get(number), comment: comment.value }));
  article.append(node("fieldset", {}, choice(number, article, true, "accept"), choice(number, article, false, "reject")), comment);
  document.getElementById("dialogues").append(article);
});

document.getElementById("save").addEventListener("click", () => {
  const reviewer = document.getElementById("reviewer").value.trim();
  if (!reviewer) {
    document.getElementById("reviewer").focus();
    return;
  }
  const found = [...reviews].filter(([, review]) => "accepts" in review);
  const said = found.map(([number, review]) => ({ key: data.dialogues[number].key, comment: "", ...review }));
  const text = JSON.stringify({ version: 1, reviewer, reviews: said }, null, 1);
  const out = document.getElementById("out");
  out.value = text;
  out.hidden = false;
  const link = node("a", { download: `reviews-${reviewer.replace(/\W+/g, "-")}.json`, href: URL.createObjectURL(new Blob([text], { type: "application/json" })) });
  document.body.append(link);
  link.click();
  link.remove();
});

told(0);
