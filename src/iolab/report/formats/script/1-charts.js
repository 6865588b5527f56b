// The charts of the page: what each holds, read when it is first pointed at. Foreign text is only
// ever set as text, nothing is fetched, and without this script the page is as whole as with it.
// The files of this folder stand in one function, in the order of their numbers.

const NEAR = 48; // pixels from a point within which the pointer means it
const COVERED = 7; // units within which markers cover one another
const READ = 30; // characters that have room beside a plot's heading
const LEAST = 6; // pixels that a selection must be wide, so that a click selects nothing
const DEEPEST = 1 / 64; // the smallest part of an axis that is shown
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400];
const SAYS = { valid: "valid", indicative: "indicative", invalid: "invalid",
  predicted: "predicted, not measured" };

const made = (name, cls, ...inside) => {
  const one = document.createElement(name);
  if (cls) one.className = cls;
  one.append(...inside);
  return one;
};
const drawn = (name, attributes) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  return one;
};
const number = (value) => typeof value !== "number" ? String(value ?? "–")
  : value.toLocaleString("en", { maximumSignificantDigits: 4 });
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const leaves = (group) => group.querySelectorAll("path, line, text");
const placed = (one) => /^translate\(([-\d.e]+)[ ,]+([-\d.e]+)\)(.*)$/
  .exec(one.getAttribute("transform") || "");

const tip = made("div", "tip");
tip.setAttribute("aria-hidden", "true");
tip.hidden = true;
const said = made("div", "unseen");
said.setAttribute("aria-live", "polite");
document.body.append(tip, said);
const groups = new Map();
let active = null;


function stageOf(block) {
  const figure = block.parentElement;
  const drawings = [...figure.querySelectorAll("svg.chart")];
  const svg = drawings.find((one) => one.getBoundingClientRect().width) || drawings[0];
  const stage = made("div", "stage");
  svg.replaceWith(stage);
  stage.append(svg);
  stage.tabIndex = 0;
  stage.setAttribute("role", "application");
  stage.setAttribute("aria-roledescription", "interactive chart");
  const title = figure.querySelector("h4");
  stage.setAttribute("aria-label", (title ? title.textContent : "Chart")
    + ". Arrow keys move along its points, plus and minus enlarge, Escape shows all.");
  const chart = { block, stage, svg, plots: null, marks: [], group: null, at: null };
  listen(chart);
  return chart;
}

function ready(chart) {
  if (chart.plots) return chart;
  const told = JSON.parse(chart.block.textContent);
  chart.x = told.x;
  chart.title = told.title;
  chart.plots = told.plots.map((plot, index) => plotOf(chart, plot, index)).filter(Boolean);
  const byIndex = new Map(chart.plots.map((plot) => [plot.index, plot]));
  told.marks.forEach((mark, index) => {
    const group = chart.svg.querySelector(`[data-m="${index}"]`);
    const plot = byIndex.get(mark.p);
    if (!group || !plot) return;
    const places = placesOf(group);
    const at = told.axes[mark.x];
    const points = places.map(([px, py], i) => pointOf(mark, at[i], i, px, py));
    points.sort((a, b) => a.px - b.px);
    chart.marks.push({ name: mark.n || "", plot, group, points });
  });
  chart.time = chart.plots.some((plot) => plot.k === "time");
  return chart;
}

function plotOf(chart, told, index) {
  const group = chart.svg.querySelector(`[data-plot="${index}"]`);
  if (!group.querySelector("[data-m]")) return null;
  const over = drawn("g", { class: "over" });
  group.append(over);
  const w = Number(group.dataset.w);
  return { ...told, w, index, chart, group, over, a: 0, b: w, moved: null, fresh: [] };
}

function pointOf(mark, x, i, px, py) {
  const one = (list) => (list ? (list.length === 1 ? list[0] : list[i]) : undefined);
  return { x, px, py, y: mark.y && mark.y[i], ends: mark.e && mark.e[i], verdict: one(mark.v),
    text: mark.s && mark.s[i] };
}

function placesOf(group) {
  const found = [];
  for (const one of leaves(group)) {
    const move = placed(one);
    if (move) found.push([Number(move[1]), Number(move[2])]);
    else if (one.getAttribute("fill") && one.getAttribute("fill") !== "none") {
      const box = one.getBBox();
      found.push([box.x + box.width / 2, box.y]);
    } else {
      for (const part of (one.getAttribute("d") || "").match(/[MLCQ][^A-Za-z]*/g) || []) {
        const numbers = part.slice(1).match(/-?[\d.]+(?:e-?\d+)?/g).map(Number);
        found.push(numbers.slice(-2));
      }
    }
  }
  return found;
}

// Charts over time of one run, and charts of one workload over time, move together.
function groupOf(chart) {
  if (chart.group) return chart.group;
  const around = chart.stage.closest(".inside, .workload, section") || document.body;
  const key = ready(chart).time ? around : chart;
  if (!groups.has(key)) groups.set(key, { time: chart.time, range: null, charts: null, key });
  chart.group = groups.get(key);
  return chart.group;
}

function members(group) {
  if (!group.charts) {
    group.charts = !group.time ? [group.key]
      : charts.filter((one) => group.key.contains(one.stage) && groupOf(one) === group);
  }
  return group.charts;
}
