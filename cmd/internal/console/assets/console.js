// What the console does in the browser beside htmx: it draws the charts with uPlot, and says when something takes long
// or fails. Everything that it shows comes from the console's server.
"use strict";

const drawn = new Map(); // charts by their elements
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColor = (i) => color("--s" + ((i % 8) + 1));
const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

const dayName = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

function valueText(rate, v) {
  if (v == null) return "–";
  if (rate) return +(v * 100).toFixed(1) + "%";
  return v.toLocaleString("en").replaceAll(",", "\u202f");
}

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

function options(element, chart) {
  const bars = chart.kind === "bar";
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const series = [{ label: chart.unit, value: (u, v) => (v == null ? "–" : day(v) + (chart.open.includes(u.cursor.idx) ? " (not over)" : "")) }];
  const data = [chart.days];
  const groups = chart.series.filter((s) => !s.before);
  const many = groups.length > 12; // the legend would be longer than the chart
  chart.series.forEach((s) => {
    const i = groups.findIndex((g) => g.name === s.name);
    const stroke = s.before ? color("--before") : seriesColor(i);
    const label = (s.name || chart.metric.replaceAll("_", " ")) + (s.before ? ", before" : "");
    const line = { label, stroke, width: s.before ? 1.5 : 2, spanGaps: false, value: (u, v) => valueText(chart.rate, v),
      points: { show: chart.days.length < 40 || lonely, size: 5, fill: stroke, filter: chart.days.length < 40 ? undefined : lonely } };
    if (bars) {
      const paths = barsBeside(chart.series.indexOf(s), chart.series.length, s.before ? [] : chart.open);
      series.push({ ...line, fill: stroke, width: 0, points: { show: false }, paths });
      data.push(s.values);
      return;
    }
    const [whole, part] = s.before ? [s.values, null] : split(s.values, chart.open);
    series.push({ ...line, value: (u, v, si, i) => valueText(chart.rate, i == null ? null : s.values[i]) });
    data.push(whole);
    if (part && chart.open.length > 0) {
      series.push({ ...line, label: label + " (not over)", dash: [5, 5], class: "u-off-legend" });
      data.push(part);
    }
  });
  return [{
    width: element.clientWidth || 600, height: 250, tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
    series, legend: { show: !many, live: true },
    cursor: { sync: { key: "days" }, drag: { x: chart.zoom, y: false, setScale: false }, points: { show: !bars } },
    select: { show: chart.zoom },
    scales: { x: { time: true, range: bars ? (u, low, high) => [low - pitch(chart) / 2, high + pitch(chart) / 2] : undefined },
      y: { range: (u, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.06 || 1] } },
    axes: [{ ...axis, splits: (u) => spread(chart.days, u.width / 80), values: (u, days) => days.map(dayName) }, { ...axis, size: 58, values: (u, values) => values.map((v) => valueText(chart.rate, v)) }],
    hooks: {
      init: [(u) => bars && chart.zoom && u.over.addEventListener("click", () => pick(u, chart))],
      setSelect: [(u) => chart.zoom && zoom(u, chart)],
      ready: [(u) => u.root.querySelectorAll(".u-off-legend").forEach((row) => row.setAttribute("hidden", ""))],
    },
  }, data];
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
  const [opts, data] = options(element, chart);
  drawn.get(element)?.destroy();
  element.replaceChildren();
  const u = new uPlot(opts, data, (u, ready) => {
    u.chart = chart;
    element.append(u.root);
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
    if (!drawn.has(element)) {
      draw(element);
      new ResizeObserver(() => {
        const u = drawn.get(element);
        if (u && element.clientWidth > 0 && element.clientWidth !== u.width) u.setSize({ width: element.clientWidth, height: 250 });
      }).observe(element);
    }
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
  save(canvas, figure.querySelector("[id]").id);
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

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.png) savePicture(button.dataset.png);
  else if (button && "copy" in button.dataset) copyText(button);
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

// ---- the form

document.addEventListener("change", (event) => {
  if (event.target.id === "start" || event.target.id === "end") document.getElementById("period").value = "days";
}, true);

// A value is typed once: when it has been answered, it is a filter.
document.addEventListener("htmx:afterRequest", (event) => {
  const value = document.getElementById("filter-value");
  const sent = event.detail.requestConfig?.formData?.get("filter-value");
  if (value && event.detail.successful && event.target.id === "question" && sent === value.value) value.value = "";
});

function offerZone() {
  const button = document.getElementById("my-zone"), zone = document.getElementById("timezone");
  if (!button || !zone) return;
  button.dataset.zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  button.textContent = "Use " + button.dataset.zone;
  button.hidden = !button.dataset.zone || button.dataset.zone === zone.value;
}

// ---- slow and failed requests

let asked = 0, clock = 0, answeredAt = Date.now();

function wait(event) {
  const target = event.detail.target;
  if (!target || (target.id !== "answer" && target.tagName !== "MAIN")) return;
  document.getElementById("answer")?.setAttribute("aria-busy", "true");
  asked = Date.now();
  clearInterval(clock);
  clock = setInterval(() => {
    const waiting = document.getElementById("waiting"), seconds = (Date.now() - asked) / 1000;
    if (!waiting || seconds < 0.4) return;
    waiting.hidden = false;
    waiting.textContent = "Asking … " + Math.floor(seconds) + " s" +
      (seconds > 5 ? ". The server is slow, or the key's rate is used up and the console waits for it." : "");
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

function complete() {
  drawAll();
  showRows();
  offerZone();
  refreshPanels();
  document.documentElement.dataset.shown = "yes"; // for tests
}

document.addEventListener("DOMContentLoaded", () => {
  if (matchMedia("(max-width: 800px)").matches) document.querySelector(".controls")?.removeAttribute("open");
  complete();
});
document.addEventListener("htmx:afterSettle", (event) => {
  complete();
  const answer = document.getElementById("answer"), said = document.getElementById("said");
  if (!answer?.contains(event.target) && event.target.tagName !== "MAIN") return;
  // What had the focus may be gone, as a filter that was removed.
  if (document.activeElement === document.body) answer.focus({ preventScroll: true });
  said.textContent = answer.querySelector(".refused, .asof")?.textContent ?? "";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const element of drawn.keys()) draw(element);
});
