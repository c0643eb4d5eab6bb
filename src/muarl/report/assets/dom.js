"use strict";
// Elements and numbers. Text from the run enters the page here, and only as text nodes.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `on` holds listeners; every other attribute is set as is; strings become text. */
function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
function s(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** What may be wider than the page: it scrolls by itself, by keys too. */
function scrolling(name, ...children) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, children);
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A number for people: three significant digits, thousands in groups. */
function number(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(1).replace("e+", "e");
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

function percent(value) {
  return isNumber(100 * (value ?? NaN)) ? `${(100 * value).toFixed(1)} %` : "–";
}

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 100) return `${number(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

/** An interval struct, or a bare number from a run that recorded no interval. */
function interval(value) {
  if (isNumber(value)) return { value, low: null, high: null, n: null };
  return value && isNumber(value.value) ? value : null;
}

function intervalText(value, format) {
  const found = interval(value);
  if (!found) return "–";
  const bounds = isNumber(found.low) && isNumber(found.high);
  return format(found.value) + (bounds ? ` [${format(found.low)}, ${format(found.high)}]` : "");
}

/** One cell of a CSV file; a leading = + - @ would be a formula to a spreadsheet. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
}

/** Rows of flat or nested objects as CSV; `a.b` names the field b of a. */
function toCsv(rows) {
  const flat = rows.map((row) => flatten(row, ""));
  const columns = [...new Set(flat.flatMap((row) => [...row.keys()]))];
  const lines = flat.map((row) => columns.map((column) => csvCell(row.get(column))).join(","));
  return [columns.map(csvCell).join(","), ...lines].join("\r\n") + "\r\n";
}

function flatten(row, prefix, into = new Map()) {
  for (const [key, value] of Object.entries(row)) {
    if (value && typeof value === "object" && !Array.isArray(value)) flatten(value, `${prefix}${key}.`, into);
    else into.set(prefix + key, value);
  }
  return into;
}

/** A button that saves text as a file. */
function download(label, filename, type, makeText) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([makeText()], { type }));
    h("a", { href: url, download: filename }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return h("button", { type: "button", class: "download", on: { click: save } }, label);
}

/** A part of the page; if its data is not what it can draw, the others still stand. */
function guarded(draw, data) {
  try {
    return draw(data);
  } catch (error) {
    reportError(error);
    return h("p", { class: "empty error" }, `This part could not be drawn: ${error.message}`);
  }
}

/** Light or dark, whatever the system says. */
function themeButton() {
  const root = document.documentElement;
  const flip = () => {
    const dark = root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
  };
  return h("button", { type: "button", class: "theme", title: "Light or dark", "aria-label": "Switch between light and dark",
    on: { click: flip } }, "◐");
}
