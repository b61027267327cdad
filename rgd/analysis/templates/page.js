// The table of groups: a click on a heading sorts by it, the field above filters by any words of a row.
const table = document.getElementById("groups");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const worth = (row, column) => {
  const value = row.cells[column].dataset.v ?? row.cells[column].textContent;
  return column < Number(table.dataset.words) ? value : value === "" ? -Infinity : Number(value);
};
heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const isWords = column < Number(table.dataset.words);
    const isDown = head.ariaSort ? head.ariaSort === "ascending" : !isWords;
    heads.forEach((other) => { other.ariaSort = null; });
    head.ariaSort = isDown ? "descending" : "ascending";
    const rows = [...body.rows].sort((one, other) => {
      const [left, right] = [worth(one, column), worth(other, column)];
      return (left < right ? -1 : left > right ? 1 : 0) * (isDown ? -1 : 1);
    });
    body.append(...rows);
  });
});
const search = document.getElementById("search");
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of body.rows) {
    const text = [...row.cells].slice(0, Number(table.dataset.words)).map((cell) => cell.textContent).join(" ").toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
search.parentElement.hidden = false;
