// A table whose rows can be put in the order of any column: a click for the largest first, another for the smallest.
import { h } from "./dom";

export interface Column<Row> {
  name: string;
  help?: string;
  text: (row: Row) => string;
  value?: (row: Row) => number | null | undefined; // numeric columns
}

function compare<Row>(column: Column<Row>, descending: boolean): (a: Row, b: Row) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    if (!column.value) return sign * column.text(a).localeCompare(column.text(b));
    const [x, y] = [column.value(a), column.value(b)];
    if (x == null || y == null) return Number(x == null) - Number(y == null); // what is undefined comes last
    return sign * (x - y);
  };
}

// Words keep their line up to a width, numbers always.
function cell<Row>(column: Column<Row>, row: Row): HTMLElement {
  return column.value ? h("td", { class: "number" }, column.text(row)) : h("td", {}, h("span", { class: "words" }, column.text(row)));
}

export function table<Row>(columns: Column<Row>[], rows: Row[]): HTMLElement {
  const body = h("tbody");
  const fill = (ordered: Row[]) =>
    body.replaceChildren(...ordered.map((row) => h("tr", {}, ...columns.map((column) => cell(column, row)))));
  const heads = columns.map((column) => {
    const button = h("button", { type: "button", ...(column.help ? { title: column.help } : {}) }, column.name);
    const head = h("th", { scope: "col", ...(column.value ? { class: "number" } : {}) }, button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      fill([...rows].sort(compare(column, descending)));
    });
    return head;
  });
  fill(rows);
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body));
}
