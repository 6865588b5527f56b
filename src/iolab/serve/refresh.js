"use strict";
(() => {
  const main = document.getElementById("main");
  const pulse = document.getElementById("pulse");
  const pause = document.getElementById("pause");
  const said = pulse.textContent;
  let seen = new Date();
  let paused = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    pulse.textContent = paused ? "Paused at " + seen.toLocaleTimeString() + "." : said;
    if (!paused) refresh();
  });
  function later() {
    setTimeout(refresh, SECONDS * 1000);
  }
  let asking = false;
  async function refresh() {
    if (paused || asking) return;
    if (document.hidden) return later();
    asking = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const text = await answer.text();
      if (answer.status >= 500) throw new Error();
      // A page of another kind has a policy of its own: ours would object to it when it is parsed.
      if (!answer.ok || !text.includes('id="pulse"')) return location.reload();
      const next = new DOMParser().parseFromString(text, "text/html");
      const fresh = next.getElementById("main");
      if (!fresh) return location.reload();
      if (!paused) {
        const chosen = [...main.querySelectorAll("input:checked")].map((one) => [one.name, one.value]);
        const held = document.activeElement && document.activeElement.getAttribute("aria-label");
        document.title = next.title;
        main.replaceChildren(...fresh.childNodes);
        for (const one of main.querySelectorAll("input")) {
          one.checked = chosen.some(([name, value]) => one.name === name && one.value === value);
        }
        if (held) {
          for (const one of main.querySelectorAll("[aria-label]")) {
            if (one.getAttribute("aria-label") === held) one.focus();
          }
        }
        seen = new Date();
        if (pulse.textContent !== said) pulse.textContent = said;
      }
    } catch {
      pulse.textContent = "No answer; what is shown is of " + seen.toLocaleTimeString() + ".";
    }
    asking = false;
    later();
  }
  later();
})();
