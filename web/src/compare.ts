// Runs side by side: what got better and worse than in the first, sample by sample, and which settings differ.
import { chart, nameAxis } from "./chart";
import type { RunComparison, RunDifference } from "./data";
import { counted, distinct, groupBy, h, interval, number, probability, shown, significant, significantInterval, tellApart } from "./dom";
import { table, type Column } from "./table";

const CHART_LINES = 40;
const ORDER = ["worse", "better", "open", "same"];

// One line for what differs only in epsilon: the fuller a point, the larger its epsilon.
function differences(rows: RunDifference[]): HTMLElement[] {
  const firmest = (same: RunDifference[]) => Math.min(...same.map((row) => ORDER.indexOf(row.change)));
  const lines = [...groupBy(rows, (row) => JSON.stringify([row.dataset, row.model, row.explainer, row.attack, row.metric, row.measure])).values()].sort((a, b) => firmest(a) - firmest(b));
  const names = tellApart(lines.map((same) => same[0]), [(row) => row.model, (row) => row.explainer, (row) => row.attack ?? "", (row) => row.metric ?? row.measure ?? "", (row) => row.dataset], true);
  const values = lines.slice(0, CHART_LINES).flatMap((same, i) => {
    const sizes = [...new Set(same.map((row) => row.epsilon ?? 0))].sort((a, b) => a - b);
    return same.map((row) => ({ name: names[i], change: CHANGES[row.change], epsilon: row.epsilon ?? "–", shade: (sizes.indexOf(row.epsilon ?? 0) + 1) / sizes.length, mean: row.difference.mean, low: row.difference.low, high: row.difference.high, text: differenceText(row) }));
  });
  const key = (kind: string, text: string) => h("span", { class: "key" }, h("span", { class: `dot ${kind}` }), text);
  return [h("p", { class: "legend" }, key("lost", "worse than the first run"), key("kept", "better"), key("other", "not decided"), distinct(rows, (row) => String(row.epsilon)).length > 1 ? h("span", {}, "the fuller the point, the larger epsilon") : null),
    chart((room, colours) => {
      const labels = nameAxis(names, room, 460), width = Math.max(120, Math.min(800, room - 30 - labels.width));
      const y = { field: "name", type: "nominal", title: null, sort: names, axis: labels.axis };
      const color = { field: "change", type: "nominal", legend: null, scale: { domain: ORDER.map((change) => CHANGES[change]), range: [colours.lost, colours.kept, colours.soft, colours.soft] } };
      const shade = { field: "shade", type: "quantitative", scale: { domain: [0, 1], range: [0.15, 1] }, legend: null };
      return { data: { values }, width, height: { step: labels.step }, layer: [
        { data: { values: [{ zero: 0 }] }, mark: { type: "rule", color: colours.soft }, encoding: { x: { field: "zero", type: "quantitative" } } },
        { mark: { type: "rule", strokeWidth: 3, opacity: 0.4 }, encoding: { y, color, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
        { mark: { type: "point", filled: true, size: 70, opacity: 1, color: colours.card }, encoding: { y, x: { field: "mean", type: "quantitative" } } },
        { mark: { type: "point", filled: true, size: 70, opacity: 1, strokeWidth: 1.2 }, encoding: { y, color, stroke: color, fillOpacity: shade, x: { field: "mean", type: "quantitative", title: "this run minus the first run" }, tooltip: [{ field: "epsilon" }, { field: "text", title: "difference" }, { field: "change" }] } }] };
    }, "differences between the runs with their intervals"),
    lines.length > CHART_LINES ? h("p", { class: "note" }, `The first ${CHART_LINES} of ${lines.length} lines; the table below has all.`) : h("span", {})];
}

const CHANGES: Record<string, string> = { better: "better", worse: "worse", open: "not decided", same: "same" };
const differenceText = (row: RunDifference) => (row.metric ? interval : significantInterval)(row.difference.mean, row.difference.low, row.difference.high);
const SURE = 0.05;

// Metrics lie between 0 and 1, or nearly; measures have any scale.
const of = (row: RunDifference, value: number | null | undefined) => (row.metric ? number(value) : significant(value, 3));

// Folders by their last parts, as many as tell them apart.
export function shortNames(folders: string[]): string[] {
  const parts = folders.map((folder) => folder.split("/").filter((part) => part !== ""));
  for (let count = 1; count < Math.max(...parts.map((part) => part.length)); ++count) {
    const names = parts.map((part) => part.slice(-count).join("/"));
    if (new Set(names).size === names.length) return names;
  }
  return folders;
}

// "4 of 16 rows are worse, 1 after correction; ..."
function summary(rows: RunDifference[]): (Node | string)[] {
  const count = (change: string) => rows.filter((row) => row.change === change), sure = (some: RunDifference[]) => some.filter((row) => row.corrected != null && row.corrected < SURE).length;
  const [worse, better] = [count("worse"), count("better")];
  return [`Of ${counted(rows.length, "row")} `, h("strong", {}, `${worse.length} ${worse.length === 1 ? "is" : "are"} worse`), ` (${sure(worse)} also after correction for ${rows.length} comparisons), `,
    h("strong", {}, `${better.length} ${better.length === 1 ? "is" : "are"} better`), ` (${sure(better)}), and ${rows.length - worse.length - better.length} not decided. Better and worse: the 95 % interval of the difference excludes 0.`];
}

// `names`: of the runs, in their order.
export function comparePage(comparison: RunComparison, names: string[]): HTMLElement {
  const columns: Column<RunDifference>[] = [
    { name: "run", text: (row) => names[row.run], extra: names.length < 3 },
    { name: "dataset", text: (row) => row.dataset, extra: distinct(comparison.rows, (row) => row.dataset).length < 2 },
    { name: "model", text: (row) => row.model },
    { name: "explainer", text: (row) => row.explainer },
    { name: "attack", text: (row) => row.attack ?? "–" },
    { name: "metric or measure", text: (row) => row.metric ?? row.measure ?? "" },
    { name: "epsilon", text: (row) => String(row.epsilon ?? "–"), value: (row) => row.epsilon },
    { name: names.length < 3 ? names[0] : "first run", text: (row) => of(row, row.first), value: (row) => row.first },
    { name: names.length < 3 ? names[1] : "this run", text: (row) => of(row, row.second), value: (row) => row.second },
    { name: "difference [95 %]", help: "this run minus the first, on the same samples, with its 95 % interval", text: differenceText, value: (row) => row.difference.mean },
    { name: "p, corrected", help: "sign-flip test on the same samples, corrected by Holm for all comparisons", text: (row) => probability(row.corrected), value: (row) => row.corrected },
    { name: "change", help: "better or worse where the interval excludes 0", text: (row) => CHANGES[row.change] },
  ];
  const sections = names.slice(1).map((name, i) => {
    const rows = comparison.rows.filter((row) => row.run === i + 1);
    return h("section", {}, h("h2", {}, `${name} against ${names[0]}`),
      h("p", { class: "verdict" }, ...(rows.length ? summary(rows) : ["The runs have no row in common."])),
      comparison.unmatched[i + 1] ? h("p", { class: "note" }, shown(comparison.unmatched[i + 1])) : null,
      ...(rows.length ? differences(rows) : []));
  });
  const settings: Column<RunComparison["settings"][number]>[] = [{ name: "setting", text: (line) => line.key }, ...names.map((name, i): Column<RunComparison["settings"][number]> => ({ name, text: (line) => line.values[i] }))];
  return h("main", { id: "comparison" }, h("header", {}, h("h1", {}, "Runs side by side"), h("p", {}, `${names.join(", ")}: differences to the first, on the same samples.`)), ...sections,
    h("section", {}, h("h2", {}, "Settings that differ"), comparison.settings.length ? table(settings, comparison.settings) : h("p", {}, "None.")),
    comparison.rows.length ? h("section", {}, h("h2", {}, "All differences"), table(columns, comparison.rows, { tools: true })) : null);
}

