// Line charts and stacked shares over one shared x: moving along one chart moves along all of them.

const WIDTH = 380, HEIGHT = 176, LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 24, BAR = 24;
const MOST_SERIES = 8;  // more colours could not be told apart

/** The x position that is being read, shared by the charts of one group. */
function makeCursor() {
  const listeners = [];
  return {
    x: null,
    move(x) { this.x = x; listeners.forEach((listener) => listener(x)); },
    listen(listener) { listeners.push(listener); },
  };
}

function extent(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

function niceTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((candidate) => candidate >= rough * 0.999);
  const ticks = [];
  // The cap holds where the range is narrower than numbers of its size can be told apart.
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 20; i++) ticks.push(i * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  const every = Math.max(1, Math.ceil((high - low) / 4));
  for (let power = low; power <= high; power += every) ticks.push(10 ** power);
  return ticks;
}

/** The range of y and its ticks. */
function yAxis(chart, values) {
  if (chart.log) {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return yAxis({ ...chart, log: false }, values);
    const [least, most] = extent(positive);
    const low = Math.floor(Math.log10(least) + 1e-9);
    const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
    const at = (value) => (value > 0 ? (Math.log10(value) - low) / (high - low) : 0);
    return { ticks: logTicks(low, high), at };
  }
  let [low, high] = chart.domain || extent(values);
  if (!chart.domain) {
    if (chart.fromZero !== false) { low = Math.min(0, low); high = Math.max(0, high); }
    if (high - low < 1e-12) { high += Math.abs(high) * 0.1 || 1; low -= low ? Math.abs(low) * 0.1 : 0; }
    const ticks = niceTicks(low, high, 4);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
    low = Math.floor(low / step + 1e-9) * step;
    high = Math.ceil(high / step - 1e-9) * step;
  }
  return { ticks: niceTicks(low, high, 4), at: (value) => (value - low) / (high - low) };
}

/**
 * A chart as a figure.
 *
 * chart: { title, note, xs, xName, series: [{ name, values, low, high, colour }], format, domain, log,
 *          fromZero, stacked }. Values may be missing: a gap. Returns null when all are. Colours are numbers,
 *          by default those of the series that have values, in order.
 */
function lineChart(chart, cursor) {
  const known = chart.series.filter((one) => one.values.some(isNumber));
  const series = known.slice(0, MOST_SERIES).map((one, i) => ({ colour: i, ...one }));
  const left = known.length - series.length;
  if (!series.length) return null;
  const format = chart.format || number;
  const bounds = series.flatMap((one) => [one.values, one.low || [], one.high || []].flat()).filter(isNumber);
  const xs = chart.xs;
  const [first, last] = extent(xs);
  const share = (value) => (last > first ? (value - first) / (last - first) : 0.5);  // one point stands in the middle
  const x = (value) => LEFT + share(value) * (WIDTH - LEFT - RIGHT);
  const axis = yAxis(chart, bounds);
  // A value beyond a fixed scale is drawn at its edge.
  const y = (value) => TOP + (1 - Math.max(-0.03, Math.min(1.03, axis.at(value)))) * (HEIGHT - TOP - BOTTOM);

  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", tabindex: 0, role: "slider",
    "aria-label": describe(chart, series, format), "aria-valuemin": first, "aria-valuemax": last });
  for (const tick of axis.ticks) {
    svg.append(s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
      s("text", { class: "tick", x: LEFT - 6, y: y(tick) + 3.5, "text-anchor": "end" }, (chart.tickFormat || number)(tick)));
  }
  for (const tick of niceTicks(first, last, 6).filter(Number.isInteger)) {
    svg.append(s("text", { class: "tick", x: x(tick), y: HEIGHT - 7, "text-anchor": "middle" }, number(tick)));
  }
  svg.append(...(chart.stacked ? stack(series, xs, x, y) : series.flatMap((one) => curve(one, xs, x, y))));

  const rule = s("line", { class: "rule", y1: TOP, y2: HEIGHT - BOTTOM });
  const dots = series.map((one) => s("circle", { class: `dot c${one.colour % 8}`, r: 3.2 }));
  svg.append(rule, ...(chart.stacked ? [] : dots));
  const place = h("span", { class: "at" });
  const readings = series.map(() => h("b"));
  const legend = h("div", { class: "legend" }, series.map((one, i) => h("span", { class: "key" },
    swatch(one.colour, chart.stacked), one.name && `${one.name} `, readings[i])));

  const show = (value) => {
    const index = value === null ? xs.length - 1 : xs.indexOf(value);
    if (index < 0) return;
    svg.classList.toggle("reading", value !== null);
    place.textContent = `${chart.xName} ${number(xs[index])}`;
    rule.setAttribute("x1", x(xs[index]));
    rule.setAttribute("x2", x(xs[index]));
    const texts = series.map((one, i) => {
      const reading = one.values[index];
      dots[i].setAttribute("visibility", isNumber(reading) ? "visible" : "hidden");
      dots[i].setAttribute("cx", x(xs[index]));
      dots[i].setAttribute("cy", isNumber(reading) ? y(reading) : 0);
      const band = one.low && isNumber(one.low[index]) ? ` [${format(one.low[index])}, ${format(one.high[index])}]` : "";
      readings[i].textContent = format(reading) + band;
      return `${one.name || chart.title} ${readings[i].textContent}`;
    });
    svg.setAttribute("aria-valuenow", xs[index]);
    svg.setAttribute("aria-valuetext", `${place.textContent}: ${texts.join(", ")}`);
  };
  cursor.listen(show);
  show(cursor.x);
  steer(svg, xs, x, cursor);
  return h("figure", { class: "card" },
    h("figcaption", {}, h("span", { class: "name" }, chart.title), place), legend, svg,
    chart.note && h("p", { class: "note" }, chart.note),
    left > 0 && h("p", { class: "note" }, `${left} more are in the downloads.`));
}

/** Pointer and arrow keys move the cursor; leaving or Escape lets it go. */
function steer(svg, xs, x, cursor) {
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    return xs.reduce((best, value) => (Math.abs(x(value) - at) < Math.abs(x(best) - at) ? value : best), xs[0]);
  };
  svg.addEventListener("pointermove", (event) => cursor.move(nearest(event)));
  svg.addEventListener("pointerleave", () => cursor.move(null));
  svg.addEventListener("blur", () => cursor.move(null));
  svg.addEventListener("keydown", (event) => {
    const here = cursor.x === null ? xs.length - 1 : xs.indexOf(cursor.x);
    const moves = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: xs.length - 1 };
    if (event.key === "Escape") cursor.move(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    cursor.move(xs[Math.max(0, Math.min(xs.length - 1, moves[event.key]))]);
  });
}

function swatch(index, filled) {
  const svg = s("svg", { class: "swatch", viewBox: "0 0 18 10", "aria-hidden": "true" });
  svg.append(filled ? s("rect", { class: `area a${index % 8}`, x: 2, y: 0, width: 14, height: 10, rx: 2 })
    : s("path", { class: `line c${index % 8}`, d: "M0 5H18" }));
  return svg;
}

/** A path through the points there are; a missing one lifts the pen. */
function pathOf(xs, values, x, y) {
  let pen = "M";
  let path = "";
  values.forEach((value, i) => {
    if (!isNumber(value)) { pen = "M"; return; }
    path += `${pen}${x(xs[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function curve(one, xs, x, y) {
  const index = one.colour;
  const parts = [];
  if (one.low && one.high) {
    const known = xs.map((_, i) => i).filter((i) => isNumber(one.low[i]) && isNumber(one.high[i]));
    const there = known.map((i) => `${x(xs[i]).toFixed(1)} ${y(one.high[i]).toFixed(1)}`);
    const back = [...known].reverse().map((i) => `${x(xs[i]).toFixed(1)} ${y(one.low[i]).toFixed(1)}`);
    if (known.length > 1) parts.push(s("path", { class: `band a${index % 8}`, d: `M${there.concat(back).join("L")}Z` }));
  }
  parts.push(s("path", { class: `line c${index % 8}`, d: pathOf(xs, one.values, x, y) }));
  // A line needs two points: one between gaps is a dot, and its interval a whisker.
  const isLone = (value, i) => isNumber(value) && !isNumber(one.values[i - 1]) && !isNumber(one.values[i + 1]);
  one.values.forEach((value, i) => {
    if (!isLone(value, i)) return;
    parts.push(s("circle", { class: `dot lone c${index % 8}`, cx: x(xs[i]), cy: y(value), r: 3 }));
    if (!one.low || !one.high || !isNumber(one.low[i]) || !isNumber(one.high[i])) return;
    parts.push(s("path", { class: `line lone c${index % 8}`, d: `M${x(xs[i]).toFixed(1)} ${y(one.low[i]).toFixed(1)}V${y(one.high[i]).toFixed(1)}` }));
  });
  return parts;
}

function stack(series, xs, x, y) {
  let floor = xs.map(() => 0);
  return series.map((one) => {
    const top = floor.map((base, i) => base + (isNumber(one.values[i]) ? one.values[i] : 0));
    const base = floor;
    floor = top;
    // One point alone is a bar.
    const across = xs.length > 1 ? xs.map((value, i) => [x(value), i]) : [[x(xs[0]) - BAR / 2, 0], [x(xs[0]) + BAR / 2, 0]];
    const there = across.map(([at, i]) => `${at.toFixed(1)} ${y(top[i]).toFixed(1)}`);
    const back = across.map(([at, i]) => `${at.toFixed(1)} ${y(base[i]).toFixed(1)}`).reverse();
    return s("path", { class: `area a${one.colour % 8}`, d: `M${there.concat(back).join("L")}Z` });
  });
}

function describe(chart, series, format) {
  const ends = series.map((one) => {
    const known = one.values.filter(isNumber);
    return `${one.name || ""} from ${format(known[0])} to ${format(known[known.length - 1])}`;
  });
  return `${chart.title}: ${ends.join("; ")}. Arrow keys read single values.`;
}
