// A link into a folded part opens it, also where the browser would not do so by itself.

function opened() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", opened);
addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[href^='#']");
  if (link && link.hash === location.hash) opened();
});
opened();
