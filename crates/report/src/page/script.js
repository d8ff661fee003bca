// The page is readable without scripts. This one sorts a table when a column header is clicked or
// gets Enter.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach(function (head, column) {
    function key(row) {
      var cell = row.cells[column], data = cell.querySelector("data");
      return data ? Number(data.value) : cell.textContent;
    }
    function sort() {
      var down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      var rows = Array.from(body.rows);
      rows.sort(function (a, b) {
        var x = key(a), y = key(b);
        var order = typeof x === "number" ? (typeof y === "number" ? x - y : -1) : typeof y === "number" ? 1 : x.localeCompare(y);
        return down ? -order : order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    }
    head.setAttribute("data-sort", "");
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", function (event) { if (event.key === "Enter") { sort(); } });
  });
});
