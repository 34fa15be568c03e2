"use strict";
for (const button of document.querySelectorAll("th[scope=col] button")) {
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
