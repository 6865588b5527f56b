// The page as PDF, by the browser's own print, and its runs as CSV, for those who go on with them.

const FORMULA = /^[=+@\t\r|%-](?![\d.])/; // what a spreadsheet would take for a formula

function field(cell) {
  const text = [...cell.childNodes].map((part) => part.tagName === "SMALL"
    ? ` (${part.textContent})` : part.textContent).join("").trim();
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function saveRuns() {
  const rows = document.querySelectorAll("#results tr");
  const lines = [...rows].map((row) => [...row.cells].map(field).join(","));
  const link = made("a");
  link.href = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  link.download = "runs.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function saves() {
  const wanted = [["PDF", "Print this page, or save it as PDF", () => print()]];
  if (document.querySelector("#results td")) wanted.push(["CSV", "Save every run as CSV", saveRuns]);
  const buttons = wanted.map(([name, title, act]) => {
    const button = made("button", "toggle", name);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", act);
    return button;
  });
  document.querySelector(".masthead").prepend(made("div", "saves", ...buttons));
}
saves();
