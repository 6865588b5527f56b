// Pointer, wheel, fingers and keys. The page's own scrolling is never taken: a wheel counts with
// Ctrl alone (as a pinch on a touchpad does), one finger scrolls, two on a chart enlarge it.

const tools = made("div", "tools");
for (const [text, name, act] of [
  ["+", "Enlarge", (chart) => scaled(groupOf(chart), 0.5, middle(chart))],
  ["−", "Show more", (chart) => scaled(groupOf(chart), 2, middle(chart))],
  ["⤢", "Show all", (chart) => enlarge(groupOf(chart), null)],
]) {
  const button = made("button", "", text);
  button.type = "button";
  button.title = name;
  button.setAttribute("aria-label", name);
  button.addEventListener("click", () => act(tools.chart));
  tools.append(button);
}
tools.addEventListener("pointerdown", (event) => event.stopPropagation());
tools.addEventListener("dblclick", (event) => event.stopPropagation());

// Where the last point that was shown lies on the axis that is enlarged.
function middle(chart) {
  if (!active || active.chart !== chart) return undefined;
  const { mark, index } = active;
  return toValue(mark.plot, mark.points[index].px);
}

function listen(chart) {
  const { stage } = chart;
  const fingers = new Map();
  let from = null;
  stage.addEventListener("pointerenter", () => take(chart));
  stage.addEventListener("focusin", () => take(chart));
  stage.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    fingers.set(event.pointerId, event);
    if (event.pointerType === "mouse") {
      const plot = plotAt(chart, event);
      from = plot ? { plot, event, x: clamp(local(plot, event).x, 0, plot.w) } : null;
    } else {
      follow(chart, event);
    }
  });
  stage.addEventListener("pointermove", (event) => {
    if (fingers.size === 2 && fingers.has(event.pointerId)) {
      pinch(chart, fingers, event);
    } else if (from && event.buttons) {
      select(chart, from, event);
    } else {
      follow(chart, event);
    }
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event);
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    if (from && event.type === "pointerup") selected(chart, from, event);
    unselect(chart);
    from = null;
  };
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
  stage.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !from) unpoint();
  });
  stage.addEventListener("dblclick", () => enlarge(groupOf(chart), null));
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const plot = plotAt(chart, event);
    if (plot) scaled(groupOf(chart), Math.exp(event.deltaY * 0.004), under(plot, event));
  }, { passive: false });
  stage.addEventListener("keydown", (event) => {
    if (event.target === stage && !event.altKey && !event.ctrlKey && !event.metaKey) {
      keyed(chart, event);
    } else if (event.key === "Escape") {
      dismiss(chart);
    }
  });
  stage.addEventListener("blur", () => unpoint());
}

function take(chart) {
  if (!ready(chart).marks.length || tools.chart === chart) return;
  tools.chart = chart;
  chart.stage.append(tools);
}

const under = (plot, event) => toValue(plot,
  plot.a + clamp(local(plot, event).x, 0, plot.w) * (plot.b - plot.a) / plot.w);

function follow(chart, event) {
  const found = nearest(chart, event);
  if (!found) return unpoint();
  if (!active || active.mark !== found.mark || active.index !== found.index) {
    point(chart, found.mark, found.index, false);
  }
}

function pinch(chart, fingers, event) {
  const other = [...fingers.values()].find((one) => one.pointerId !== event.pointerId);
  const before = fingers.get(event.pointerId);
  const far = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
  const plot = plotAt(chart, other);
  if (!plot || !far(event)) return;
  unpoint();
  scaled(groupOf(chart), far(before) / far(event), under(plot, {
    clientX: (event.clientX + other.clientX) / 2, clientY: other.clientY }));
}

function select(chart, from, event) {
  const to = clamp(local(from.plot, event).x, 0, from.plot.w);
  if (Math.abs(event.clientX - from.event.clientX) < LEAST) return;
  unpoint();
  if (!from.held) {
    from.held = true;
    chart.stage.setPointerCapture(event.pointerId);
  }
  const [low, high] = [Math.min(from.x, to), Math.max(from.x, to)];
  unselect(chart);
  for (const other of members(groupOf(chart))) {
    for (const plot of other.plots) {
      if (plot !== from.plot && !groupOf(chart).time) continue;
      plot.over.append(drawn("rect",
        { class: "selected", x: low, y: 0, width: high - low, height: plot.h }));
    }
  }
}

function selected(chart, from, event) {
  if (Math.abs(event.clientX - from.event.clientX) < LEAST) return;
  const { plot } = from;
  const value = (x) => toValue(plot, plot.a + x * (plot.b - plot.a) / plot.w);
  const to = clamp(local(plot, event).x, 0, plot.w);
  enlarge(groupOf(chart), [value(Math.min(from.x, to)), value(Math.max(from.x, to))]);
}

function unselect(chart) {
  if (!chart.plots) return;
  for (const other of members(groupOf(chart))) {
    for (const one of other.stage.querySelectorAll(".selected")) one.remove();
  }
}

function dismiss(chart) {
  unpoint();
  enlarge(groupOf(chart), null);
}

function keyed(chart, event) {
  const shown = ready(chart).marks.filter((mark) => isShown(mark));
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const line = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const group = groupOf(chart);
  const own = active && active.chart === chart && isShown(active.mark) ? active : null;
  if (event.key === "Escape") dismiss(chart);
  else if (event.key === "+" || event.key === "=") scaled(group, 0.5, middle(chart));
  else if (event.key === "-") scaled(group, 2, middle(chart));
  else if (event.key === "0") enlarge(group, null);
  else if (!shown.length) return;
  else if ((step || line) && !own) move(chart, shown[0], 0);
  else if (step) move(chart, own.mark, own.index + step);
  else if (line) other(chart, shown, own, line);
  else if (event.key === "Home") move(chart, own ? own.mark : shown[0], 0);
  else if (event.key === "End") move(chart, own ? own.mark : shown[0], Infinity);
  else return;
  event.preventDefault();
}

function move(chart, mark, wanted) {
  const index = clamp(wanted, 0, mark.points.length - 1);
  const group = groupOf(chart);
  const one = mark.points[index];
  if (group.range && !isIn(mark.plot, one)) {
    const half = (group.range[1] - group.range[0]) / 2;
    const at = toValue(mark.plot, one.px);
    enlarge(group, [at - half, at + half]);
  }
  point(chart, mark, index, true);
}

// The next line or plot, at the point nearest to where the last one was.
function other(chart, shown, own, line) {
  const mark = shown[(shown.indexOf(own.mark) + line + shown.length) % shown.length];
  const { px } = own.mark.points[own.index];
  let best = 0;
  mark.points.forEach((one, i) => {
    if (Math.abs(one.px - px) < Math.abs(mark.points[best].px - px)) best = i;
  });
  move(chart, mark, best);
}

// ---- Configurations, hidden and shown on all charts ----

const buttons = new Map();

function legend() {
  const first = document.querySelector("ul.legend .one");
  if (!first || !document.querySelector("[data-c]")) return;
  for (const entry of document.querySelectorAll("ul.legend .one")) {
    const fill = entry.querySelector("rect").getAttribute("fill");
    const token = /^var\(--([\w-]+)\)$/.exec(fill)[1];
    if (!document.querySelector(`[data-c="${token}"]`)) continue;
    const button = made("button", "toggle", ...entry.childNodes);
    button.type = "button";
    button.title = "Show or hide it on all charts";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => toggle(token));
    entry.replaceChildren(button);
    if (!buttons.has(token)) buttons.set(token, []);
    buttons.get(token).push(button);
  }
}

function toggle(token) {
  const own = buttons.get(token);
  const hide = own[0].getAttribute("aria-pressed") === "true";
  for (const button of own) button.setAttribute("aria-pressed", String(!hide));
  for (const one of document.querySelectorAll(`[data-c="${token}"]`)) {
    one.classList.toggle("off", hide);
  }
  unpoint();
}

// ---- Start ----

const charts = [...document.querySelectorAll('figure > script[type="application/json"]')]
  .map(stageOf);
legend();

// Paper shows everything, and nothing of the pointer.
function onPaper() {
  unpoint();
  for (const group of groups.values()) if (group.range) enlarge(group, null);
}
addEventListener("beforeprint", onPaper);
matchMedia("print").addEventListener("change", (event) => event.matches && onPaper());
// The tip stays with its point.
addEventListener("scroll", () => {
  if (active) place(active.mark.plot, active.mark.points[active.index]);
}, { passive: true });
