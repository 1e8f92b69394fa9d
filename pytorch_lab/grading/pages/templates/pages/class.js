// Sorts a table by the column whose head is pressed; without it the tables stand in a useful order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => row.cells[at].dataset.key ?? row.cells[at].textContent.trim();
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.ariaSort === "descending" || (head.ariaSort === null && at === 0);
      for (const other of heads) other.ariaSort = null;
      head.ariaSort = up ? "ascending" : "descending";
      const numbers = [...body.rows].every((row) => !Number.isNaN(Number.parseFloat(key(row, at))));
      const compare = numbers
        ? (a, b) => Number.parseFloat(key(a, at)) - Number.parseFloat(key(b, at))
        : (a, b) => key(a, at).localeCompare(key(b, at));
      body.append(...[...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))));
    });
  });
}
