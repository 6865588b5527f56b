// A part of the x axis enlarged: marks, ticks and grid are moved, y stays. Charts over time of one
// run move together.

function whole(group) {
  if (!group.time) return [0, 1];
  const ends = members(group).flatMap((chart) => chart.plots.filter((plot) => plot.d)
    .map((plot) => plot.d));
  return [Math.min(...ends.map((d) => d[0])), Math.max(...ends.map((d) => d[1]))];
}

function enlarge(group, range) {
  const [low, high] = whole(group);
  let next = null;
  if (range) {
    const span = clamp(range[1] - range[0], (high - low) * DEEPEST, high - low);
    const from = clamp(range[0], low, high - span);
    next = span >= (high - low) * 0.999 ? null : [from, from + span];
  }
  group.range = next;
  for (const chart of members(group)) {
    for (const plot of chart.plots) show(plot, next && next.map((one) => toPixel(plot, one)));
    chart.stage.classList.toggle("enlarged", Boolean(next));
  }
  if (active) point(active.chart, active.mark, active.index, false);
}

const toPixel = (plot, value) => plot.k === "time" && plot.d
  ? (value - plot.d[0]) / (plot.d[1] - plot.d[0]) * plot.w : value * plot.w;
const toValue = (plot, pixel) => plot.k === "time" && plot.d
  ? plot.d[0] + pixel / plot.w * (plot.d[1] - plot.d[0]) : pixel / plot.w;

function scaled(group, factor, about) {
  const [low, high] = group.range || whole(group);
  const middle = about ?? (low + high) / 2;
  enlarge(group, [middle - (middle - low) * factor, middle + (high - middle) * factor]);
}

function show(plot, ends) {
  [plot.a, plot.b] = ends || [0, plot.w];
  if (!plot.moved) {
    if (!ends) return;
    plot.moved = movedBy(plot);
  }
  for (const one of plot.moved) {
    one.apply(one, plot, (x) => (x - plot.a) * plot.w / (plot.b - plot.a));
  }
  ticks(plot, Boolean(ends));
}

function movedBy(plot) {
  const found = [];
  for (const group of plot.group.querySelectorAll("[data-m]")) {
    group.setAttribute("clip-path", `url(#${clipOf(plot)})`);
    for (const one of leaves(group)) found.push(...moving(one));
  }
  for (const group of plot.group.querySelectorAll("[data-x]")) {
    for (const one of group.children) {
      found.push(...moving(one).map((move) => ({ ...move, axis: true })));
    }
  }
  return found;
}

function moving(one) {
  const move = placed(one);
  if (move) {
    const wide = Number(one.getAttribute("x2") || 0);
    return [{ one, x: Number(move[1]), y: move[2], rest: move[3], wide, apply: shift }];
  }
  const d = one.getAttribute("d");
  return d ? [{ one, parts: d.match(/[A-Za-z][^A-Za-z]*/g) || [], apply: redraw }] : [];
}

function shift(told, plot, to) {
  const x = to(told.x);
  told.one.setAttribute("transform", `translate(${x.toFixed(2)},${told.y})${told.rest}`);
  if (told.wide) told.one.setAttribute("x2", (to(told.x + told.wide) - x).toFixed(2));
  if (told.axis) told.one.classList.toggle("out", x < -0.6 || x > plot.w + 0.6);
}

function redraw(told, plot, to) {
  const stretch = to(1) - to(0);
  told.one.setAttribute("d", told.parts.map((part) => {
    const kind = part[0];
    const numbers = (part.match(/-?[\d.]+(?:e-?\d+)?/g) || []).map(Number);
    if (kind === "H") return kind + numbers.map(to).map((x) => x.toFixed(2)).join(",");
    if (kind === "h") return kind + numbers.map((x) => (x * stretch).toFixed(2)).join(",");
    if ("VvZzAa".includes(kind)) return part;
    const map = kind === kind.toUpperCase() ? to : (x) => x * stretch;
    return kind + numbers.map((n, i) => (i % 2 ? n : map(n).toFixed(2))).join(",");
  }).join(""));
}

let clips = 0;
function clipOf(plot) {
  if (!plot.clip) {
    plot.clip = `enlarged-${++clips}`;
    const clip = drawn("clipPath", { id: plot.clip });
    clip.append(drawn("rect", { x: -4, y: -60, width: plot.w + 8, height: plot.h + 120 }));
    plot.group.append(clip);
  }
  return plot.clip;
}

// Of time the ticks are made anew, so that a short part has some.
function ticks(plot, enlarged) {
  for (const one of plot.fresh) one.remove();
  plot.fresh = [];
  if (plot.k !== "time" || !plot.d) return;
  const [low, high] = [toValue(plot, plot.a), toValue(plot, plot.b)];
  const step = STEPS.find((one) => (high - low) / one <= 6) || 28800;
  for (const group of plot.group.querySelectorAll("[data-x]")) {
    const old = [...group.children];
    for (const one of old) one.classList.toggle("anew", enlarged);
    const move = old.length && placed(old[0]);
    if (!enlarged || !move) continue;
    for (let at = Math.ceil(low / step) * step; at <= high + 1e-9; at += step) {
      const one = old[0].cloneNode(true);
      one.removeAttribute("class");
      const x = (toPixel(plot, at) - plot.a) * plot.w / (plot.b - plot.a);
      one.setAttribute("transform", `translate(${x.toFixed(2)},${move[2]})${move[3]}`);
      if (group.dataset.x === "label") one.textContent = number(Number(at.toFixed(3)));
      plot.fresh.push(one);
      group.append(one);
    }
  }
}
