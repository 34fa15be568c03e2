"use strict";
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
document.documentElement.classList.add("scripted");

// Tables: sorted by a click, and downloaded as CSV
for (const button of all("th[scope=col] button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
function sortBy(header) {
  const ascending = header.getAttribute("aria-sort") !== "ascending";
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = header.closest("table").tBodies[0];
  const valueOf = (row) => row.children[header.cellIndex].dataset.value;
  const rows = Array.from(body.rows);
  const areNumbers = rows.every((row) => valueOf(row) !== "" && !isNaN(valueOf(row)));
  rows.sort((a, b) => {
    const order = areNumbers
      ? Number(valueOf(a)) - Number(valueOf(b))
      : valueOf(a).localeCompare(valueOf(b), undefined, { numeric: true });
    return ascending ? order : -order;
  });
  body.append(...rows);
}
for (const button of all("button[data-csv]")) {
  const table = button.closest(".table").querySelector("table");
  button.addEventListener("click", () => download(`${button.dataset.csv}.csv`, "text/csv", csvOf(table)));
}
function csvOf(table) {
  const rows = Array.from(table.tBodies[0].rows);
  const hasSpread = (place) => rows.some((row) => row.children[place].dataset.spread !== undefined);
  const names = all("th[scope=col] button", table).flatMap((button, place) => {
    const name = button.textContent;
    return hasSpread(place) ? [name, `${name}, standard deviation`] : [name];
  });
  const lines = rows.map((row) => Array.from(row.children).flatMap((cell, place) => {
    const value = cell.classList.contains("number") ? cell.dataset.value : harmless(cell.dataset.value);
    return hasSpread(place) ? [value, cell.dataset.spread ?? ""] : [value];
  }));
  return [names, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
}
// A spreadsheet would run a text that begins like a formula.
function harmless(text) {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// The whole result, and code to copy
for (const button of all("button[data-json]")) {
  const result = document.getElementById("result").textContent;
  button.addEventListener("click", () => download(button.dataset.json, "application/json", result));
}
function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
for (const button of all(".code button")) button.addEventListener("click", () => copy(button));
async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2500);
}

// A finger cannot point: a tap writes the numbers below the figure
document.addEventListener("click", (event) => {
  const tip = event.target.closest(".tips rect");
  if (!tip) return;
  const caption = tip.closest("figure").querySelector("figcaption");
  const told = caption.querySelector("output") ?? caption.appendChild(document.createElement("output"));
  told.textContent = tip.textContent;
});

// Sections: opened by their link and for print, and marked in the contents while they are read
function unfold(id) {
  const details = document.getElementById(id)?.querySelector("details");
  if (details) details.open = true;
}
for (const link of all("nav a")) link.addEventListener("click", () => unfold(link.hash.slice(1)));
addEventListener("hashchange", () => unfold(location.hash.slice(1)));
addEventListener("beforeprint", () => all("details").forEach((details) => { details.open = true; }));
for (const button of all("button[data-fold]")) {
  button.addEventListener("click", () => {
    const open = button.textContent === "Unfold all";
    for (const details of all("section > details")) details.open = open;
    button.textContent = open ? "Fold all" : "Unfold all";
  });
}
const inView = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const link = all("nav a").find((each) => each.hash === `#${target.id}`);
    if (isIntersecting) link?.setAttribute("aria-current", "true");
    else link?.removeAttribute("aria-current");
  }
}, { rootMargin: "-20% 0px -60% 0px" });
for (const section of all("main section")) inView.observe(section);
