// Runs side by side: what got better and worse than in the first, sample by sample, and which settings differ.
import { chart, labelWidth, NARROW } from "./chart";
import type { RunComparison, RunDifference } from "./data";
import { counted, distinct, h, interval, number, shown, shownNames, significant, significantInterval, tellApart } from "./dom";
import { table, type Column } from "./table";

const labels = (rows: RunDifference[]) => tellApart(rows, [(row) => (row.epsilon == null ? "" : `ε ${row.epsilon}`), (row) => row.metric ?? row.measure ?? "", (row) => row.model, (row) => row.explainer, (row) => row.attack ?? "", (row) => row.dataset]);

const CHART_ROWS = 40;

function differences(rows: RunDifference[]): HTMLElement {
  const names = labels(rows), values = rows.map((row, i) => ({ name: names[i], change: row.change, mean: row.difference.mean, low: row.difference.low, high: row.difference.high, text: significantInterval(row.difference.mean, row.difference.low, row.difference.high) }));
  return chart((room, colours) => {
    const limit = room < NARROW ? 140 : 460, width = Math.max(120, Math.min(520, room - 30 - labelWidth(names, limit)));
    const y = { field: "name", type: "nominal", title: null, sort: names, axis: { labelLimit: limit } };
    const color = { field: "change", type: "nominal", legend: null, scale: { domain: ["better", "worse", "open", "same"], range: [colours.kept, colours.lost, colours.soft, colours.soft] } };
    return { data: { values }, width, height: { step: 20 }, layer: [
      { data: { values: [{ zero: 0 }] }, mark: { type: "rule", color: colours.soft }, encoding: { x: { field: "zero", type: "quantitative" } } },
      { mark: { type: "rule", strokeWidth: 3, opacity: 0.5 }, encoding: { y, color, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { y, color, x: { field: "mean", type: "quantitative", title: "difference to the first run" }, tooltip: [{ field: "text", title: "difference" }, { field: "change" }] } }] };
  }, "differences between the runs with their intervals");
}

// Metrics lie between 0 and 1, or nearly; measures have any scale.
const of = (row: RunDifference, value: number | null | undefined) => (row.metric ? number(value) : significant(value, 3));

export function comparePage(comparison: RunComparison): HTMLElement {
  const names = shownNames(comparison.runs);
  const columns: Column<RunDifference>[] = [
    { name: "run", text: (row) => names[row.run], extra: names.length < 3 },
    { name: "dataset", text: (row) => row.dataset, extra: distinct(comparison.rows, (row) => row.dataset).length < 2 },
    { name: "model", text: (row) => row.model },
    { name: "explainer", text: (row) => row.explainer },
    { name: "attack", text: (row) => row.attack ?? "–" },
    { name: "metric or measure", text: (row) => row.metric ?? row.measure ?? "" },
    { name: "epsilon", text: (row) => String(row.epsilon ?? "–"), value: (row) => row.epsilon },
    { name: "first run", text: (row) => of(row, row.first), value: (row) => row.first },
    { name: "this run", text: (row) => of(row, row.second), value: (row) => row.second },
    { name: "difference", help: "this run minus the first, on the same samples, with its 95 % interval", text: (row) => (row.metric ? interval : significantInterval)(row.difference.mean, row.difference.low, row.difference.high), value: (row) => row.difference.mean },
    { name: "p, Holm", help: "sign-flip test on the same samples, corrected for all comparisons", text: (row) => significant(row.corrected, 2), value: (row) => row.corrected },
    { name: "change", help: "better or worse where the interval excludes 0", text: (row) => row.change },
  ];
  const sections = names.slice(1).map((name, i) => {
    const rows = comparison.rows.filter((row) => row.run === i + 1), count = (change: string) => rows.filter((row) => row.change === change).length;
    return h("section", {}, h("h2", {}, `${name} against ${names[0]}`),
      h("p", { class: "verdict" }, rows.length ? `${counted(rows.length, "row")}: ${count("worse")} surely worse, ${count("better")} surely better, ${count("open") + count("same")} without a sure difference.` : "The runs have no row in common."),
      comparison.unmatched[i + 1] ? h("p", { class: "note" }, shown(comparison.unmatched[i + 1])) : null,
      rows.length ? differences([...rows].sort((a, b) => ["worse", "better", "open", "same"].indexOf(a.change) - ["worse", "better", "open", "same"].indexOf(b.change)).slice(0, CHART_ROWS)) : null);
  });
  const settings: Column<RunComparison["settings"][number]>[] = [{ name: "setting", text: (line) => line.key }, ...names.map((name, i): Column<RunComparison["settings"][number]> => ({ name, text: (line) => line.values[i] }))];
  return h("main", { id: "comparison" }, h("header", {}, h("h1", {}, "Runs side by side"), h("p", {}, `${names.join(", ")}: differences to the first, on the same samples.`)), ...sections,
    comparison.rows.length ? h("section", {}, h("h2", {}, "All differences"), table(columns, comparison.rows, { tools: true })) : null,
    h("section", {}, h("h2", {}, "Settings that differ"), comparison.settings.length ? table(settings, comparison.settings) : h("p", {}, "None.")));
}

