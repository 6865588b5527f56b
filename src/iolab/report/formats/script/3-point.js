// What the pointer or the keys mean: the nearest point's values as text, and of charts over time the
// same moment in all of them.

const local = (plot, event) => new DOMPoint(event.clientX, event.clientY)
  .matrixTransform(plot.group.getScreenCTM().inverse());
const seen = (plot, x) => (x - plot.a) * plot.w / (plot.b - plot.a);
const isShown = (mark) => !mark.group.classList.contains("off");
const isIn = (plot, one) => one.px >= plot.a - 0.5 && one.px <= plot.b + 0.5;

function plotAt(chart, event) {
  return ready(chart).plots.find((plot) => {
    const { x, y } = local(plot, event);
    return x > -8 && x < plot.w + 8 && y > -16 && y < plot.h + 14;
  });
}

function nearest(chart, event) {
  const plot = plotAt(chart, event);
  if (!plot) return null;
  const at = local(plot, event);
  const unit = plot.group.getScreenCTM().a;
  let best = null;
  for (const mark of chart.marks) {
    if (mark.plot !== plot || !isShown(mark)) continue;
    mark.points.forEach((one, index) => {
      if (!isIn(plot, one)) return;
      const dx = seen(plot, one.px) - at.x;
      const far = Math.hypot(dx, plot.k === "time" ? (one.py - at.y) / 8 : one.py - at.y) * unit;
      if (!best || far < best.far) best = { mark, index, far };
    });
  }
  return best && (best.far < NEAR || plot.k === "time") ? best : null;
}

function xText(chart, plot, one) {
  if (plot.k === "time") return `${number(one.x)} s`;
  if (plot.k === "nines") {
    const percent = 100 - 100 * 10 ** -one.x;
    return `${number(Number(percent.toFixed(Math.max(1, Math.ceil(one.x)))))} %`;
  }
  let best = null;
  for (const label of plot.group.querySelectorAll('[data-x="label"] text')) {
    const far = Math.abs(Number((placed(label) || [0, 1e9])[1]) - seen(plot, one.px));
    if (far < 0.8 && (!best || far < best.far)) best = { far, text: label.textContent };
  }
  return best ? best.text : number(one.x);
}

function rows(chart, mark, one) {
  const { plot } = mark;
  const value = one.y === undefined ? `${number(one.x)} ${chart.x}`
    : [number(one.y), plot.u].filter(Boolean).join(" ");
  const first = mark.name || plot.t || chart.title;
  const at = one.y === undefined ? "" : (chart.x ? `${chart.x}: ` : "") + xText(chart, plot, one);
  const told = [first, [at, one.text].filter(Boolean).join(" · "), value];
  if (one.ends) told.push(`95 % interval ${number(one.ends[0])} to ${number(one.ends[1])}`);
  if (one.verdict) told.push(SAYS[one.verdict] || one.verdict);
  return [...told.filter(Boolean), ...covered(chart, mark, one)];
}

// Points of other lines that this one covers.
function covered(chart, mark, one) {
  const told = [];
  for (const other of chart.marks) {
    if (other === mark || other.plot !== mark.plot || !isShown(other)) continue;
    const found = other.points.find((two) => two.x === one.x && Math.abs(two.py - one.py) < COVERED
      && Math.abs(two.px - one.px) < COVERED);
    if (found && found.y !== undefined) {
      const value = [number(found.y), mark.plot.u].filter(Boolean).join(" ");
      const verdict = found.verdict ? `, ${SAYS[found.verdict] || found.verdict}` : "";
      told.push(`Here too: ${other.name ? `${other.name}, ` : ""}${value}${verdict}`);
    }
  }
  return told.slice(0, 3);
}

function timeRows(mark, one) {
  const told = [`${number(one.x)} s${mark.plot.t ? ` · ${mark.plot.t}` : ""}`];
  for (const other of mark.plot.chart.marks) {
    const found = other.plot === mark.plot && isShown(other) && closest(other, one.x);
    if (found) told.push([other.name, number(found.y), mark.plot.u].filter(Boolean).join(" "));
  }
  return told;
}

function closest(mark, x) {
  let best = null;
  for (const one of mark.points) {
    if (!best || Math.abs(one.x - x) < Math.abs(best.x - x)) best = one;
  }
  const step = mark.points.length > 1 ? (mark.points.at(-1).x - mark.points[0].x) /
    (mark.points.length - 1) : Infinity;
  return best && Math.abs(best.x - x) <= step ? best : null;
}

function point(chart, mark, index, aloud) {
  unpoint();
  const one = mark.points[index];
  active = { chart, mark, index };
  const isTime = mark.plot.k === "time";
  const told = isTime ? timeRows(mark, one) : rows(chart, mark, one);
  tip.replaceChildren(...told.map((text, i) => made("div", i ? "" : "first", text)));
  tip.hidden = false;
  if (isTime) for (const other of members(groupOf(chart))) lines(other, one.x, mark.plot);
  if (isIn(mark.plot, one)) {
    mark.plot.over.append(drawn("circle",
      { class: "ring", cx: seen(mark.plot, one.px), cy: one.py, r: 6 }));
  }
  place(mark.plot, one);
  if (aloud) said.textContent = told.join(", ");
}

function lines(chart, x, own) {
  for (const plot of ready(chart).plots) {
    if (plot.k !== "time" || !plot.d || x < plot.d[0] || x > plot.d[1]) continue;
    const px = seen(plot, toPixel(plot, x));
    if (px < -0.5 || px > plot.w + 0.5) continue;
    plot.over.append(drawn("line", { class: "cross", x1: px, x2: px, y1: 0, y2: plot.h }));
    if (plot === own) continue;
    const told = [];
    for (const mark of chart.marks) {
      const found = mark.plot === plot && isShown(mark) && closest(mark, x);
      if (found && told.length < 3) told.push([mark.name, number(found.y)]);
    }
    const named = told.length > 1 && told.flat().join("  ").length <= READ;
    const text = drawn("text", { class: "read", x: plot.w + 92, y: -7, "text-anchor": "end",
      "font-size": "12px" });
    text.textContent = told.map((one) => (named ? one.join(" ") : one[1])).join(" · ");
    plot.over.append(text);
  }
}

function place(plot, one) {
  const at = new DOMPoint(seen(plot, clamp(one.px, plot.a, plot.b)), one.py)
    .matrixTransform(plot.group.getScreenCTM());
  const { width, height } = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = at.x + 14 + width > room ? at.x - 14 - width : at.x + 14;
  tip.style.left = `${clamp(left, 4, Math.max(4, room - width - 4))}px`;
  tip.style.top = `${clamp(at.y - height - 12, 4, Math.max(4, innerHeight - height - 4))}px`;
}

function unpoint() {
  if (!active) return;
  for (const chart of members(groupOf(active.chart))) {
    for (const plot of chart.plots) plot.over.replaceChildren();
  }
  active = null;
  tip.hidden = true;
}
