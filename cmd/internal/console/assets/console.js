// What the console does in the browser beside htmx: it draws the charts with uPlot, and says when something takes long
// or fails. Everything that it shows comes from the console's server.
"use strict";

const drawn = new Map(); // charts by their elements
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColor = (i) => color("--s" + ((i % 8) + 1));
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// dayText is a day as the server writes it, such as 2 Jan 2026.
function dayText(iso) {
  const [year, month, day] = iso.split("-").map(Number);
  return day + " " + months[month - 1] + " " + year;
}

// dateName is a period at the axis: 2 Jan, or Jan 2026 of a month.
function dateName(seconds, unit) {
  const [day, month, year] = dayText(new Date(seconds * 1000).toISOString().slice(0, 10)).split(" ");
  return unit === "month" ? month + " " + year : day + " " + month;
}

// wholes are the distances of marks at the axis of what is counted: half a run says nothing.
const wholes = Array.from({ length: 48 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

// rateText is a rate as the server writes it: with the decimals that tell it from none and from all.
function rateText(v) {
  for (let decimals = 1; ; decimals++) {
    const percent = Math.round(v * 10 ** (decimals + 2)) / 10 ** decimals;
    if (decimals === 10 || ((percent !== 0 || v === 0) && (percent !== 100 || v === 1))) return digits(percent, decimals) + "%";
  }
}

// digits are those of a number, without an exponent and zeros at the end.
const digits = (v, decimals) => v.toFixed(decimals).replace(/\.?0+$/, "");

// valueText is a value as the server writes it.
function valueText(rate, v) {
  if (rate) return rateText(v);
  return v < 10000 ? String(v) : v.toLocaleString("en").replaceAll(",", "\u202f");
}

// markText is a mark of an axis with all of its digits: one that is rounded stands elsewhere than it says.
const markText = (rate, v) => (rate ? digits(v * 100, 10) + "%" : valueText(rate, v));

// spread is every so-manieth period, so that at most a number of them is left.
const spread = (days, most) => days.filter((d, i) => i % Math.ceil(days.length / Math.max(most, 2)) === 0);

// A segment is dashed if a period at one of its ends is open: the dashed line has the values of such periods and of
// their neighbours, the other line those of all others.
function split(values, open) {
  const whole = values.slice(), part = values.map(() => null);
  for (const i of open) {
    whole[i] = null;
    for (const j of [i - 1, i, i + 1]) if (j >= 0 && j < values.length) part[j] = values[j];
  }
  return [whole, part];
}

// alone reports whether a value has no neighbour, so that no line leads to it.
const alone = (values, i) => values[i] != null && values[i - 1] == null && values[i + 1] == null;

function lonely(u, seriesIndex) {
  const values = u.data[seriesIndex], found = [];
  for (let i = 0; i < values.length; i++) if (alone(values, i)) found.push(i);
  return found;
}

// named says what a series is called.
const named = (chart, s) => (s.name || chart.name) + (s.before ? ", before" : "");

function seriesStroke(chart, s) {
  if (s.before) return color("--before");
  if (s.others) return color("--before");
  return seriesColor(chart.series.filter((other) => !other.before).findIndex((other) => other.name === s.name));
}

function options(element, chart) {
  const bars = chart.kind === "bar";
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const series = [{}], data = [chart.days], from = [null]; // from says which series of the chart a line is of
  const add = (s, line, values) => { series.push(line); data.push(values); from.push(s); };
  chart.series.forEach((s, n) => {
    const stroke = seriesStroke(chart, s);
    const line = { label: named(chart, s), stroke, width: s.before ? 1.5 : 2, spanGaps: false, dash: s.others ? [2, 3] : undefined,
      points: { show: chart.days.length < 40 || lonely, size: 5, fill: stroke, filter: chart.days.length < 40 ? undefined : lonely } };
    if (bars) {
      add(s, { ...line, fill: stroke, width: 0, points: { show: false }, paths: barsBeside(n, chart.series.length, s.before ? [] : chart.open) }, s.values);
      return;
    }
    const [whole, part] = s.before ? [s.values, null] : split(s.values, chart.open);
    add(s, line, whole);
    if (part && chart.open.length > 0) add(s, { ...line, dash: [5, 5] }, part);
  });
  const labelled = chart.series.length > 1;
  return [{
    width: element.clientWidth || 600, height: 280, tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
    series, legend: { show: false }, from, padding: [null, labelled ? labelWidth(element, chart) : null, null, null],
    cursor: { sync: { key: "days" }, drag: { x: chart.zoom, y: false, setScale: false }, points: { show: !bars }, focus: { prox: bars ? -1 : 40 } },
    focus: { alpha: 0.25 },
    select: { show: chart.zoom },
    scales: { x: { time: true, range: bars ? (u, low, high) => [low - pitch(chart) / 2, high + pitch(chart) / 2] : undefined },
      y: { range: (u, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.06 || 1] } },
    axes: [{ ...axis, size: 34, splits: (u) => spread(chart.days, u.width / 80), values: (u, days) => days.map((d) => dateName(d, chart.unit)) },
      { ...axis, size: 58, incrs: chart.rate ? undefined : wholes, values: (u, values) => values.map((v) => markText(chart.rate, v)) }],
    hooks: {
      init: [(u) => bars && chart.zoom && u.over.addEventListener("click", () => pick(u, chart))],
      setSelect: [(u) => chart.zoom && zoom(u, chart)],
      setSeries: [(u, n) => { u.near = n == null ? null : from[n]; showTip(u); }],
      setCursor: [(u) => showTip(u)],
      draw: [(u) => labelled && drawLabels(u)],
    },
  }, data];
}

// ---- names at the ends of lines, and values at the pointer

const labelFont = (scale) => 12 * scale + "px system-ui, sans-serif";
const labelText = (chart, s) => (s.before && chart.series.length === 2 ? "before" : named(chart, s));

// labelWidth is the room right of the lines, in pixels: that of the longest name, but not too much of a small chart.
function labelWidth(element, chart) {
  const g = document.createElement("canvas").getContext("2d");
  g.font = labelFont(1);
  const longest = Math.max(...chart.series.map((s) => g.measureText(labelText(chart, s)).width));
  return Math.min(longest + 16, element.clientWidth < 500 ? 90 : 190);
}

// drawLabels writes the name of each line, or of the bars of a color, behind them, as high as its last value that is
// over, one below the other where they would overlap.
function drawLabels(u) {
  const g = u.ctx, scale = devicePixelRatio, step = 14 * scale, left = u.bbox.left + u.bbox.width + 8 * scale;
  const room = (labelWidth(u.root.parentElement, u.chart) - 10) * scale;
  const labels = u.chart.series.filter((s) => s.values.some((v) => v != null)).map((s) => {
    const last = s.values.findLast((v, i) => v != null && !u.chart.open.includes(i)) ?? s.values.findLast((v) => v != null);
    return { text: labelText(u.chart, s), stroke: s.before || s.others ? color("--soft") : seriesStroke(u.chart, s), y: u.valToPos(last, "y", true) };
  }).sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => { if (i > 0) label.y = Math.max(label.y, labels[i - 1].y + step); });
  const over = (labels.at(-1)?.y ?? 0) - (u.bbox.top + u.bbox.height);
  for (let i = labels.length - 1, limit = u.bbox.top + u.bbox.height; over > 0 && i >= 0; i--, limit -= step) {
    labels[i].y = Math.min(labels[i].y, limit);
  }
  g.save();
  g.font = labelFont(scale);
  g.textAlign = "left";
  g.textBaseline = "middle";
  for (const label of labels) {
    let text = label.text;
    while (text.length > 3 && g.measureText(text).width > room) text = [...text].slice(0, -2).join("") + "…";
    g.fillStyle = label.stroke;
    g.fillText(text, left, label.y);
  }
  g.restore();
}

// showTip writes the values of the pointed period beside the pointer, with the nearest line in bold.
function showTip(u) {
  const i = u.cursor.idx, chart = u.chart;
  if (!chart || !u.tip) return;
  u.tip.hidden = i == null || u.cursor.left < 0 || chart.series.every((s) => s.values[i] == null);
  if (u.tip.hidden) return;
  const days = dayText(chart.firsts[i]) + (chart.lasts[i] !== chart.firsts[i] ? " to " + dayText(chart.lasts[i]) : "");
  const head = document.createElement("strong");
  head.textContent = days + (chart.part.includes(i) ? ", in part" : chart.open.includes(i) ? ", not over" : "");
  const lines = chart.series.filter((s) => s.values[i] != null).sort((a, b) => b.values[i] - a.values[i]).map((s) => {
    const line = document.createElement("div"), mark = document.createElement("i");
    mark.style.background = seriesStroke(chart, s);
    line.classList.toggle("near", s === u.near);
    line.append(mark, named(chart, s) + " ", Object.assign(document.createElement("b"), { textContent: valueText(chart.rate, s.values[i]) }));
    return line;
  });
  u.tip.replaceChildren(head, ...lines);
  const right = u.cursor.left + 14 + u.tip.offsetWidth > u.over.clientWidth;
  u.tip.style.left = Math.max(right ? u.cursor.left - u.tip.offsetWidth - 14 : u.cursor.left + 14, -50) + "px";
  u.tip.style.top = "4px";
}

// pitch is the seconds of one period.
const pitch = (chart) => ({ day: 1, week: 7, month: 30 })[chart.unit] * 86400;

// barsBeside draws the bars of one of several series, each of which has its part of a period's width. Where a period
// is open only the outline is drawn, dashed.
function barsBeside(n, count, unfinished) {
  return (u, seriesIndex, first, last) => {
    const chart = u.chart, values = u.data[seriesIndex], zero = u.valToPos(0, "y", true);
    const whole = u.valToPos(chart.days[0] + pitch(chart), "x", true) - u.valToPos(chart.days[0], "x", true);
    const width = Math.max((whole * 0.8) / count, 1), closed = new Path2D(), open = new Path2D();
    for (let i = first; i <= last; i++) {
      if (values[i] == null) continue;
      const x = u.valToPos(chart.days[i], "x", true) - whole * 0.4 + n * width, y = u.valToPos(values[i], "y", true);
      (unfinished.includes(i) ? open : closed).rect(x, y, Math.max(width - 1, 1), zero - y);
    }
    u.ctx.save();
    u.ctx.setLineDash([4, 4]);
    u.ctx.lineWidth = 1.5;
    u.ctx.strokeStyle = u.series[seriesIndex].fill(u, seriesIndex);
    u.ctx.stroke(open);
    u.ctx.restore();
    return { fill: closed, stroke: null, clip: null, flags: 2 };
  };
}

// zoom asks for the periods that were dragged over.
function zoom(u, chart) {
  if (u.select.width < 4) return;
  const from = u.posToIdx(u.select.left), to = u.posToIdx(u.select.left + u.select.width);
  narrow(chart.firsts[from], chart.lasts[to]);
}

// pick asks for the period of the bar that was clicked. The end of a drag is a click too.
function pick(u, chart) {
  const i = u.cursor.idx;
  if (i == null || u.select.width >= 4 || chart.days.length < 2 || chart.series.every((s) => s.values[i] == null)) return;
  narrow(chart.firsts[i], chart.lasts[i]);
}

function narrow(start, end) {
  const form = document.getElementById("zoom");
  form.elements.start.value = start;
  form.elements.end.value = end;
  form.requestSubmit();
}

function draw(element) {
  const chart = JSON.parse(element.nextElementSibling.textContent);
  drawn.get(element)?.destroy();
  element.replaceChildren();
  if (chart.series.length === 0) return; // the page says in words that there is nothing
  const [opts, data] = options(element, chart);
  const u = new uPlot(opts, data, (u, ready) => {
    u.chart = chart;
    element.append(u.root);
    u.tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    u.over.append(u.tip);
    ready();
  });
  drawn.set(element, u);
}

function drawAll() {
  for (const [element, u] of drawn) {
    if (!element.isConnected) {
      u.destroy();
      drawn.delete(element);
    }
  }
  for (const element of document.querySelectorAll("[data-chart]")) {
    if (drawn.has(element) || element.dataset.failed) continue;
    try {
      draw(element);
    } catch { // the next charts are drawn
      element.dataset.failed = "yes";
      element.textContent = "The browser cannot draw this chart; its values are in the rows.";
      continue;
    }
    new ResizeObserver(() => {
      const u = drawn.get(element);
      if (u && element.clientWidth > 0 && element.clientWidth !== u.width) u.setSize({ width: element.clientWidth, height: 280 });
    }).observe(element);
  }
}

// ---- pictures and copies

function save(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name + ".png";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}

// picture puts a drawing under the sentence of its figure and above the line that says as of when it is.
function picture(figure, drawing, width, height) {
  const scale = 2, canvas = document.createElement("canvas"), g = canvas.getContext("2d");
  const lines = [], words = figure.querySelector("figcaption").textContent.split(" ");
  g.font = "14px system-ui, sans-serif";
  for (const word of words) {
    const longer = (lines.at(-1) ?? "") + " " + word;
    if (lines.length === 0 || g.measureText(longer).width > width - 24) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  const top = 16 + lines.length * 20;
  canvas.width = width * scale;
  canvas.height = (height + top + 30) * scale;
  g.scale(scale, scale);
  g.fillStyle = color("--page");
  g.fillRect(0, 0, width, height + top + 30);
  g.fillStyle = color("--text");
  g.font = "14px system-ui, sans-serif";
  lines.forEach((line, i) => g.fillText(line.trim(), 12, 22 + i * 20));
  g.drawImage(drawing, 0, top, width, height);
  g.font = "12px system-ui, sans-serif";
  const asOf = figure.parentElement.querySelector(".asof");
  if (asOf) g.fillText("runlens. " + asOf.textContent, 12, height + top + 18);
  save(canvas, figure.querySelector("[data-file]").dataset.file);
}

function savePicture(id) {
  const element = document.getElementById(id), figure = element.closest("figure");
  const u = drawn.get(element);
  if (u) {
    picture(figure, u.ctx.canvas, u.width, u.height);
    return;
  }
  const copy = element.cloneNode(true), from = element.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    node.setAttribute("fill", style.fill);
    node.setAttribute("font-family", "sans-serif");
    node.setAttribute("font-size", "13");
  });
  const box = element.viewBox.baseVal;
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const image = new Image();
  image.onload = () => picture(figure, image, box.width, box.height);
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
}

async function copyText(button) {
  const pre = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(pre.textContent);
    button.firstChild.textContent = "Copied";
  } catch { // the browser does not allow it: a person can still press Ctrl-C
    getSelection().selectAllChildren(pre);
    button.firstChild.textContent = "Press Ctrl-C";
  }
}

// askAgain asks for the panel, or the answer, that a button is in.
function askAgain(button) {
  const panel = button.closest(".panel");
  if (panel) htmx.trigger(panel, "again");
  else htmx.ajax("GET", "answer" + location.search, { source: "#answer", target: "#answer", swap: "outerHTML" }).catch(() => {});
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.png) savePicture(button.dataset.png);
  else if (button && "copy" in button.dataset) copyText(button);
  else if (button && "again" in button.dataset) askAgain(button);
  else if (button && "later" in button.dataset) {
    button.parentElement.querySelectorAll("tr[data-later]").forEach((row) => { row.hidden = false; });
    button.remove();
  }
  else if (button?.id === "my-zone") {
    const zone = document.getElementById("timezone");
    zone.value = button.dataset.zone;
    zone.dispatchEvent(new Event("change", { bubbles: true }));
    button.hidden = true;
  }
});

// Links to another look replace the page's content. There can be a thousand of them in an answer, and attributes of htmx
// at each would take longer than to draw it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-look]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  htmx.ajax("GET", link.getAttribute("href"), { source: link, target: "main", select: "main", swap: "outerHTML" })
    .catch(() => {}); // its events say what failed
});

// A search shows the rows that have its text; without text the first ones again.
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-search]")) return;
  const text = event.target.value.trim().toLowerCase(), list = event.target.parentElement;
  for (const row of list.querySelectorAll("tbody tr")) {
    row.hidden = text ? !(row.innerText + (row.cells[0].title ?? "")).toLowerCase().includes(text) : "later" in row.dataset && !!list.querySelector("button[data-later]");
  }
});

// ---- the form

document.addEventListener("change", (event) => {
  if (event.target.id === "start" || event.target.id === "end") document.getElementById("period").value = "days";
}, true);

// The zone that was chosen last is the one of the next first page.
document.addEventListener("change", (event) => {
  if (event.target.id === "timezone") localStorage.setItem("zone", event.target.value);
}, true);

// A page that was opened with nothing is about the days of this machine's zone.
if (document.querySelector("[data-first]")) {
  location.replace("explore?zone=" + encodeURIComponent(localStorage.getItem("zone") || Intl.DateTimeFormat().resolvedOptions().timeZone));
}

function offerZone() {
  const button = document.getElementById("my-zone"), zone = document.getElementById("timezone");
  if (!button || !zone) return;
  button.dataset.zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  button.textContent = "Use " + button.dataset.zone;
  button.hidden = !button.dataset.zone || button.dataset.zone === zone.value;
}

// ---- slow and failed requests

let asked = 0, clock = 0, polls = 0, reason = "", answeredAt = Date.now();

function wait(event) {
  const target = event.detail.target;
  if (!target || (target.id !== "answer" && target.tagName !== "MAIN")) return;
  document.getElementById("answer")?.setAttribute("aria-busy", "true");
  asked = Date.now();
  polls = 0;
  reason = "";
  clearInterval(clock);
  clock = setInterval(() => {
    const waiting = document.getElementById("waiting"), seconds = (Date.now() - asked) / 1000;
    if (!waiting || seconds < 0.4) return;
    waiting.hidden = false;
    waiting.textContent = "Asking … " + Math.floor(seconds) + " s" + (reason && ". " + reason);
    if (seconds >= polls + 1) {
      polls++;
      fetch("waiting").then((r) => (r.ok ? r.text() : "")).then((text) => { reason = text; }, () => {});
    }
  }, 200);
}

function waited(event) {
  const target = event.detail.target;
  if (target && (target.id === "answer" || target.tagName === "MAIN")) {
    clearInterval(clock);
    const waiting = document.getElementById("waiting");
    if (waiting) waiting.hidden = true;
    document.getElementById("answer")?.removeAttribute("aria-busy");
  }
}

function lost(text) {
  const banner = document.getElementById("lost");
  banner.hidden = !text;
  banner.textContent = text;
}

document.addEventListener("htmx:beforeRequest", wait);
document.addEventListener("htmx:afterRequest", (event) => {
  waited(event);
  if (event.detail.successful) {
    answeredAt = Date.now();
    lost("");
  }
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) location.reload(); // the console was started again
  else lost("The console failed with " + event.detail.xhr.status + ". What is shown is older than that.");
});
document.addEventListener("htmx:sendError", () => {
  const minutes = Math.floor((Date.now() - answeredAt) / 60000);
  lost("The console does not answer; is it still running? What is shown is " + minutes + " min old.");
});

// ---- panels are asked again, each at its own time of the interval

const refreshing = new WeakSet();

function refreshPanels() {
  for (const panel of document.querySelectorAll("[data-refresh]")) {
    const seconds = Number(panel.dataset.refresh);
    if (!seconds || refreshing.has(panel)) continue;
    refreshing.add(panel);
    setTimeout(() => {
      const timer = setInterval(() => {
        if (!panel.isConnected) clearInterval(timer);
        else if (document.visibilityState === "visible") htmx.trigger(panel, "again");
      }, seconds * 1000);
    }, Number(panel.dataset.delay));
  }
}

// The browser lays out the first rows of a table with the chart, and the others when it has painted: they take longer.
function showRows() {
  for (const rows of document.querySelectorAll("tbody[hidden]")) {
    requestAnimationFrame(() => setTimeout(() => { rows.hidden = false; }));
  }
}

// What was opened of a page stays open in the next one.
const opened = new Set();
document.addEventListener("toggle", (event) => {
  if (event.target.id && event.target.isConnected) opened[event.target.open ? "add" : "delete"](event.target.id);
}, true);

// A menu is closed by a click elsewhere, and by Escape.
function closeMenus(...but) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!but.some((element) => menu.contains(element))) menu.removeAttribute("open");
  }
}
// Enter in a form clicks its button, which may be in another menu than what has the focus.
document.addEventListener("click", (event) => closeMenus(event.target, ...(event.detail === 0 ? [document.activeElement] : [])));
document.addEventListener("keydown", (event) => {
  const menu = document.activeElement.closest("details.menu[open]");
  if (event.key !== "Escape" || !menu) return;
  menu.querySelector("summary").focus();
  closeMenus();
});

function reopen() {
  for (const id of ["more", "rows"]) if (opened.has(id)) document.getElementById(id)?.setAttribute("open", "");
}

function complete() {
  reopen();
  drawAll();
  showRows();
  offerZone();
  refreshPanels();
  document.documentElement.dataset.shown = "yes"; // for tests
}

document.addEventListener("DOMContentLoaded", () => {
  complete();
});

// ---- what is asked again keeps where a person is in it

const places = "a, button, input, summary, [tabindex]";
let before = null; // the places of what is replaced, by their names

// placeName is the same for a place in an answer and in the next one.
const placeName = (place) => place.tagName + (place.getAttribute("href") ?? place.getAttribute("aria-label") ?? place.textContent.trim());

document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target, active = document.activeElement;
  before = null;
  if (!("refresh" in part.dataset)) return;
  before = { held: part.contains(active), places: new Map() };
  for (const place of part.querySelectorAll(places)) {
    before.places.set(placeName(place), { left: place.scrollLeft, top: place.scrollTop, open: place.parentElement.open, active: place === active });
  }
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (!before) return;
  const part = event.detail.target;
  for (const place of part.querySelectorAll(places)) {
    const was = before.places.get(placeName(place));
    if (!was) continue;
    if (place.tagName === "SUMMARY") place.parentElement.open = was.open;
    place.scrollTo({ left: was.left, top: was.top, behavior: "instant" });
    if (was.active) place.focus({ preventScroll: true });
  }
  if (!before.held || part.contains(document.activeElement)) return;
  part.tabIndex = -1; // what had the focus is gone
  part.focus({ preventScroll: true });
});

let focused = "", held = false; // the id of what had the focus, which may be in what is opened again; whether anything had it

document.addEventListener("htmx:beforeSwap", () => {
  focused = document.activeElement.id;
  held = document.activeElement !== document.body;
});
document.addEventListener("htmx:afterSettle", (event) => {
  complete();
  const answer = document.getElementById("answer"), said = document.getElementById("said");
  if (!answer?.contains(event.target) && event.target.tagName !== "MAIN") return;
  // What had the focus may be gone, as a filter that was removed.
  if (document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  if (document.activeElement === document.body && held) answer?.focus({ preventScroll: true });
  said.textContent = answer?.querySelector(".refused, .asof")?.textContent ?? "";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const element of drawn.keys()) draw(element);
});
