// A table whose rows can be put in the order of any column (a click for the largest first, another for the smallest), whose
// columns can be chosen, and which can be copied.
import { breakable, button, h, shown } from "./dom";
import { term } from "./terms";

export interface Column<Row> {
  name: string;
  help?: string;
  term?: string; // a name of terms.ts, where the help is longer
  text: (row: Row) => string;
  value?: (row: Row) => number | null | undefined; // numeric columns
  extra?: boolean; // not shown unless it is asked for
}

function compare<Row>(column: Column<Row>, descending: boolean): (a: Row, b: Row) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    if (!column.value) return sign * column.text(a).localeCompare(column.text(b), undefined, { numeric: true });
    const [x, y] = [column.value(a), column.value(b)];
    if (x == null || y == null) return Number(x == null) - Number(y == null); // what is undefined comes last
    return sign * (x - y);
  };
}

// Exact in copies: numbers in full, names as they are.
const exact = <Row>(column: Column<Row>, row: Row): string => (column.value ? String(column.value(row) ?? "") : column.text(row));
const csvCell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const oneLine = (text: string) => text.replace(/[\r\n\u2028\u2029]+/g, " ");
const LATEX: Record<string, string> = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "≤": "$\\le$", "−": "$-$", "–": "--", "Δ": "$\\Delta$" };
const latexCell = (text: string) => oneLine(text).replace(/[\\~^≤−–Δ&%$#_{}]/g, (letter) => LATEX[letter] ?? `\\${letter}`);

export const FORMATS = {
  CSV: <Row>(columns: Column<Row>[], rows: Row[]) =>
    [columns.map((column) => csvCell(column.name)), ...rows.map((row) => columns.map((column) => csvCell(exact(column, row))))].map((cells) => cells.join(",")).join("\n") + "\n",
  Markdown: <Row>(columns: Column<Row>[], rows: Row[]) => {
    const line = (cells: string[]) => `| ${cells.map((cell) => oneLine(cell).replaceAll("|", "\\|")).join(" | ")} |`;
    return [line(columns.map((column) => column.name)), line(columns.map((column) => (column.value ? "---:" : "---"))), ...rows.map((row) => line(columns.map((column) => column.text(row))))].join("\n") + "\n";
  },
  LaTeX: <Row>(columns: Column<Row>[], rows: Row[]) =>
    [`\\begin{tabular}{${columns.map((column) => (column.value ? "r" : "l")).join("")}}`, "\\hline", `${columns.map((column) => latexCell(column.name)).join(" & ")} \\\\`, "\\hline",
      ...rows.map((row) => `${columns.map((column) => latexCell(column.text(row))).join(" & ")} \\\\`), "\\hline", "\\end{tabular}"].join("\n") + "\n",
};

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", {}) as HTMLTextAreaElement;
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

const MOST_ROWS = 20; // at first
const SHORT = 18;     // characters that keep their line

export interface TableOptions {
  tools?: boolean; // column choice and copying
}

export interface TableView<Row> {
  element: HTMLElement;
  show: (rows: Row[]) => void;
}

export function tableView<Row>(all: Column<Row>[], rows: Row[], options: TableOptions = {}): TableView<Row> {
  const chosen = new Set(all.filter((column) => !column.extra));
  let sorted: { column: Column<Row>; descending: boolean } | null = null, whole = false;
  const head = h("thead"), body = h("tbody"), more = h("p", {}), status = h("span", { class: "note copied", role: "status" });
  const columns = () => all.filter((column) => chosen.has(column));
  const ordered = () => (sorted ? [...rows].sort(compare(sorted.column, sorted.descending)) : rows);

  // Short words and numbers keep their line.
  const cell = (column: Column<Row>, row: Row) => {
    if (column.value) return h("td", { class: "number" }, column.text(row));
    const text = shown(column.text(row));
    return h("td", {}, text.length <= SHORT ? text : h("span", { class: "words" }, ...breakable(text)));
  };
  const title = (column: Column<Row>) => {
    const order = button(column.name, () => {
      sorted = { column, descending: !(sorted?.column === column && sorted.descending) };
      draw();
    }, column.help ? { title: column.help } : {});
    const sort: Record<string, string> = sorted?.column === column ? { "aria-sort": sorted.descending ? "descending" : "ascending" } : {};
    return h("th", { scope: "col", ...(column.value ? { class: "number" } : {}), ...sort }, h("span", { class: "head" }, order, column.term ? term(column.term, "?") : null));
  };
  const draw = () => {
    head.replaceChildren(h("tr", {}, ...columns().map(title)));
    const lines = ordered(), cut = whole || lines.length <= MOST_ROWS ? lines : lines.slice(0, MOST_ROWS);
    body.replaceChildren(...cut.map((row) => h("tr", {}, ...columns().map((column) => cell(column, row)))));
    more.replaceChildren(...(cut.length < lines.length ? [button(`show all ${lines.length} rows`, () => { whole = true; draw(); })] : []));
  };
  draw();

  const choice = () => h("details", { class: "columns" }, h("summary", {}, "columns"), h("div", { class: "boxes" }, ...all.map((column) => {
    const box = h("input", { type: "checkbox" }) as HTMLInputElement;
    box.checked = chosen.has(column);
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(column);
      else chosen.delete(column);
      draw();
    });
    return h("label", {}, box, ` ${column.name}`);
  })));
  const copying = (Object.keys(FORMATS) as (keyof typeof FORMATS)[]).map((format) => button(`copy ${format}`, () =>
    void copy(FORMATS[format](columns(), ordered())).then(() => (status.textContent = `copied ${rows.length} rows as ${format}`))));
  const bar = options.tools ? h("div", { class: "bar" }, choice(), ...copying, status) : null;
  return {
    element: h("div", {}, bar, h("div", { class: "scroll", tabindex: "0" }, h("table", options.tools ? { class: "dense" } : {}, head, body)), more),
    show: (lines) => { rows = lines; draw(); },
  };
}

export const table = <Row>(columns: Column<Row>[], rows: Row[], options: TableOptions = {}): HTMLElement =>
  tableView(columns.filter((column) => !column.value || rows.some((row) => column.value!(row) != null)), rows, options).element;
