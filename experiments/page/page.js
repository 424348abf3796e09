"use strict";
// A click on a header sorts its table by that column, a second one the other way; cells without a value stay last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const compare = (one, other) =>
    Number.isNaN(Number(one)) || Number.isNaN(Number(other))
      ? one.localeCompare(other, "en", { numeric: true })
      : Number(one) - Number(other);
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const each of headers) each.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows];
      const known = rows.filter((row) => value(row) !== "");
      known.sort((one, other) => sign * compare(value(one), value(other)));
      body.append(...known, ...rows.filter((row) => value(row) === ""));
    });
  });
}
