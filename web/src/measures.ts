// What was measured around each sample, which differences between models are sure, and whether measures foretell attacks.
import type { Comparison, Correlation, Estimate, MeasureRow, Run } from "./data";
import { h, significant } from "./dom";
import { table, type Column } from "./table";

const estimate = (value: number | null, of: Estimate) =>
  of.low == null ? significant(value) : `${significant(value)} [${significant(of.low)}, ${significant(of.high)}]`;

const MEASURES: Column<MeasureRow>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "model", text: (row) => row.model },
  { name: "explainer", text: (row) => row.explainer },
  { name: "measure", text: (row) => row.measure },
  { name: "value", help: "mean over samples with its 95 % interval", text: (row) => estimate(row.mean, row), value: (row) => row.mean },
  { name: "median", text: (row) => significant(row.median), value: (row) => row.median },
  { name: "better", text: (row) => row.direction },
  { name: "n", help: "samples for which it is defined", text: (row) => String(row.count), value: (row) => row.count },
];

const COMPARISONS: Column<Comparison>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "models", text: (row) => row.models.join(" − ") },
  { name: "explainer", text: (row) => row.explainer },
  { name: "attack", text: (row) => row.attack ?? "–" },
  { name: "metric or measure", text: (row) => row.metric ?? row.measure ?? "" },
  { name: "difference", help: "mean of the first minus the second, sample by sample, with its 95 % interval", text: (row) => estimate(row.difference.mean, row.difference), value: (row) => row.difference.mean },
  { name: "p", help: "permutation test on the same samples", text: (row) => significant(row.p_value, 2), value: (row) => row.p_value },
  { name: "p, Holm", help: "corrected for all comparisons of this run", text: (row) => significant(row.corrected, 2), value: (row) => row.corrected },
];

const CORRELATIONS: Column<Correlation>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "model", text: (row) => row.model },
  { name: "attack", text: (row) => row.attack },
  { name: "metric", text: (row) => row.metric },
  { name: "measure", text: (row) => row.measure },
  { name: "Spearman", help: "with the iteration of the first swap, and its 95 % interval", text: (row) => estimate(row.spearman.value, row.spearman), value: (row) => row.spearman.value },
  { name: "Kendall", text: (row) => estimate(row.kendall.value, row.kendall), value: (row) => row.kendall.value },
  { name: "never swapped", help: "samples whose top k stayed to the end: they count as the longest", text: (row) => String(row.censored), value: (row) => row.censored },
  { name: "n", help: "samples", text: (row) => String(row.count), value: (row) => row.count },
];

export function measures(run: Run): HTMLElement | null {
  const { measures = [], comparisons = [], correlations = [] } = run.results;
  const parts = [
    ...(measures.length ? [h("h2", {}, "Measures of the models around each sample"), table(MEASURES, measures)] : []),
    ...(comparisons.length ? [h("h2", {}, "Models compared on the same samples"), table(COMPARISONS, comparisons)] : []),
    ...(correlations.length
      ? [h("h2", {}, "Do measures foretell how long an explanation holds?"),
        h("p", {}, "Rank correlation between a measure of a sample and the iteration at which an attack first drove a feature out of its top k."), table(CORRELATIONS, correlations)]
      : []),
  ];
  return parts.length ? h("section", {}, ...parts) : null;
}
