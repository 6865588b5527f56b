// On a narrow screen only the first page of the brief stands open. A link into a folded part opens
// it, also where the browser would not do so by itself.

const narrow = matchMedia("screen and (max-width:44rem)");
function fold() {
  for (const part of document.querySelectorAll("details.part")) part.open = !narrow.matches;
}
narrow.addEventListener("change", fold);
fold();

function opened() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const own = target.querySelector(":scope > details.part");
  if (own) own.open = true;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", opened);
addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[href^='#']");
  if (link && link.hash === location.hash) opened();
});
opened();
