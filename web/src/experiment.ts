// The page of an experiment: verdicts first, then tables with the paper's numbers beside ours, plots and pictures.
import type { TopLevelSpec } from "vega-lite";
import { chart } from "./chart";
import type { ExperimentRun, ResultTable, ResultValue, Verdict } from "./data";
import { h } from "./dom";
import { quoted } from "./facts";
import { card } from "./worst";
import { table, type Column } from "./table";

type Row = ResultTable["rows"][number];

const LEVELS: [keyof ResultValue, string, string][] = [
  ["published", "paper", "the number in the paper"],
  ["chance", "chance", "what a random map scores"],
  ["between", "between", "what maps of different samples score"],
  ["specific", "specific", "where the value lies between another sample's map (0) and the own (1)"],
  ["lift", "lift", "value - between"],
  ["effective_sets", "effective sets", "exp of the entropy of the top-k sets; those that did not hold are one set"],
  ["own_advantage", "own advantage", "how much more the own top k moves the prediction than another sample's"],
];

function digits(value: number): string {
  const size = Math.abs(value);
  if (size > 0 && size < 5e-4) return value.toExponential(1);
  return size < 10 ? value.toFixed(3) : value.toPrecision(4);
}
const text = (value: number | null | undefined) => (value == null ? "–" : digits(value));
const withInterval = (mean: number | null, low: number | null, high: number | null) =>
  low == null || high == null ? text(mean) : `${text(mean)} [${text(low)}, ${text(high)}]`;

// Whether a column counts something: whole numbers alone, some of them above 1, so that no share is meant.
function isCount(cells: ResultValue[]): boolean {
  const values = cells.filter((cell) => cell.value != null);
  return values.every((cell) => Number.isInteger(cell.value) && cell.value! >= 0 && cell.low == null) && values.some((cell) => cell.value! > 1)
    && LEVELS.every(([level]) => cells.every((cell) => cell[level] == null));
}

function columns(result: ResultTable): Column<Row>[] {
  const keys = result.keys.map((name, i): Column<Row> => ({ name, text: (row) => row.keys[i] }));
  const values = result.columns.flatMap((name, i): Column<Row>[] => {
    const cell = (row: Row) => row.values[i];
    const count = isCount(result.rows.map(cell));
    const own: Column<Row> = { name, text: (row) => (count && cell(row).value != null ? String(cell(row).value) : withInterval(cell(row).value, cell(row).low, cell(row).high)), value: (row) => cell(row).value };
    const levels = LEVELS.filter(([level]) => result.rows.some((row) => cell(row)[level] != null))
      .map(([level, head, help]): Column<Row> => ({ name: head, help, text: (row) => text(cell(row)[level]), value: (row) => cell(row)[level] }));
    return [own, ...levels];
  });
  return [...keys, ...values];
}

const CLASSES: Record<string, string> = { "holds": "met", "does not hold": "missed" };

function verdicts(list: Verdict[], quick: boolean): HTMLElement | null {
  if (!list.length) return null;
  const warning = quick ? h("p", { class: "note" }, "Quick scale shows that all of it works; what it says of the claims means little.") : null;
  return h("section", {}, h("h2", {}, "What becomes of the claims"), warning, h("ul", { class: "gates" }, ...list.map((verdict) =>
    h("li", { class: CLASSES[verdict.verdict] ?? "partly" }, h("strong", {}, `${verdict.claim} ${verdict.verdict}${quick ? " (quick: means little)" : ""}`),
      `: ${verdict.says}. ${withInterval(verdict.number, verdict.low, verdict.high)}: ${verdict.why}`))));
}

function figures(run: ExperimentRun): HTMLElement[] {
  return run.results.figures.map((figure) => h("section", {}, h("h2", {}, figure.name), h("p", {}, figure.caption),
    figure.spec ? chart(figure.spec as unknown as TopLevelSpec, figure.caption) : null,
    ...figure.panels.flatMap((panel) => [h("h3", {}, panel.title),
      h("div", { class: "cards wide" }, ...run.panels[panel.arrays].map((sample) => card(sample, "value")))])));
}

// "dataset mnist, epsilon 0.3, training (batch size 10)"
function inWords(value: unknown): string {
  if (typeof value === "number") return String(Number.isInteger(value) ? value : Number(value.toPrecision(4)));
  if (value === null || typeof value !== "object") return String(value ?? "–");
  if (Array.isArray(value)) return value.map(inWords).join(", ");
  const isObject = (part: unknown) => part !== null && typeof part === "object" && !Array.isArray(part);
  return Object.entries(value).map(([name, part]) => `${name} ${isObject(part) ? `(${inWords(part)})` : inWords(part)}`).join(", ");
}

interface Work { networks: number; cells: number; seconds: number; on: string }

// What all of it took, on every machine that had a part in it: the last run may only have put it together.
const work = (done: Work[]) => done.map((part) =>
  `${part.networks} networks and ${part.cells} cells, ${Math.round(part.seconds)} s of one thread, on ${part.on}`).join("; ");

function facts(run: ExperimentRun): HTMLElement {
  const manifest = run.manifest as Record<string, any>;
  const lines: [string, string][] = [
    ["command", (manifest.command ?? []).map(quoted).join(" ")],
    ["date", String(manifest.started ?? "").slice(0, 10)],
    ["work", work(manifest.work ?? []) || "nothing was trained or measured"],
    ["versions", `holdfast ${manifest.holdfast}, torch ${manifest.versions?.torch}`],
    ...Object.entries(run.results.settings).map(([name, value]): [string, string] => [name, inWords(value)]),
  ];
  return h("section", {}, h("h2", {}, "How this was made"), ...run.results.notes.map((note) => h("p", { class: "note" }, note)),
    h("dl", {}, ...lines.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

export function experimentPage(run: ExperimentRun): HTMLElement {
  const results = run.results;
  return h("main", {}, h("header", {}, h("h1", {}, results.title), h("p", {}, `${results.experiment}, ${results.scale} scale. ${results.paper}`)),
    verdicts(results.verdicts, results.scale === "quick"),
    ...results.tables.map((result) => h("section", {}, h("h2", {}, result.name), h("p", {}, result.caption), table(columns(result), result.rows))),
    ...figures(run), facts(run), h("footer", {}, `Made by Holdfast ${run.manifest.holdfast ?? ""}.`));
}
