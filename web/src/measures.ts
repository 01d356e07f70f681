// What was measured around each sample, which differences between models are sure, and whether measures foretell attacks.
import type { Comparison, Correlation, MeasureRow, Run } from "./data";
import { fold, h, significant, significantInterval } from "./dom";
import { table, type Column } from "./table";

const MEASURES: Column<MeasureRow>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "model", text: (row) => row.model },
  { name: "explainer", text: (row) => row.explainer },
  { name: "measure", text: (row) => row.measure },
  { name: "value", help: "mean over samples with its 95 % interval", text: (row) => significantInterval(row.mean, row.low, row.high), value: (row) => row.mean },
  { name: "median", text: (row) => significant(row.median), value: (row) => row.median },
  { name: "better", text: (row) => row.direction },
  { name: "n", help: "samples for which it is defined", text: (row) => String(row.count), value: (row) => row.count },
];

const COMPARISONS: Column<Comparison>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "models", text: (row) => row.models.join(" − ") },
  { name: "explainer", text: (row) => row.explainer },
  { name: "attack", text: (row) => row.attack ?? "–" },
  { name: "epsilon", text: (row) => String(row.epsilon ?? "–"), value: (row) => row.epsilon },
  { name: "metric or measure", text: (row) => row.metric ?? row.measure ?? "" },
  { name: "difference", help: "mean of the first minus the second, sample by sample, with its 95 % interval", text: (row) => significantInterval(row.difference.mean, row.difference.low, row.difference.high), value: (row) => row.difference.mean },
  { name: "p", help: "permutation test on the same samples", text: (row) => significant(row.p_value, 2), value: (row) => row.p_value },
  { name: "p, Holm", help: "corrected for all comparisons of this run", text: (row) => significant(row.corrected, 2), value: (row) => row.corrected },
];

const CORRELATIONS: Column<Correlation>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "model", text: (row) => row.model },
  { name: "explainer", text: (row) => row.explainer },
  { name: "attack", text: (row) => row.attack },
  { name: "epsilon", text: (row) => String(row.epsilon), value: (row) => row.epsilon },
  { name: "metric", text: (row) => row.metric },
  { name: "measure", text: (row) => row.measure },
  { name: "Spearman", help: "with the iteration of the first swap, and its 95 % interval", text: (row) => significantInterval(row.spearman.value, row.spearman.low, row.spearman.high), value: (row) => row.spearman.value },
  { name: "Kendall", text: (row) => significantInterval(row.kendall.value, row.kendall.low, row.kendall.high), value: (row) => row.kendall.value },
  { name: "never swapped", help: "samples whose top k stayed to the end: they count as the longest", text: (row) => String(row.censored), value: (row) => row.censored },
  { name: "n", help: "samples", text: (row) => String(row.count), value: (row) => row.count },
];

export function measures(run: Run): HTMLElement | null {
  const { measures = [], comparisons = [], correlations = [] } = run.results;
  const parts = [
    ...(comparisons.length ? [fold(`Which differences between models are sure (${comparisons.length})`, () => [h("p", {}, "Two models on the same samples; first minus second."), table(COMPARISONS, comparisons, { tools: true })], comparisons.length <= 20)] : []),
    ...(measures.length ? [fold(`Measured around each sample (${measures.length})`, () => [table(MEASURES, measures, { tools: true })], measures.length <= 20)] : []),
    ...(correlations.length ? [fold(`Do measures foretell how long an explanation holds? (${correlations.length})`, () => [
      h("p", {}, "Rank correlation between a measure of a sample and the iteration at which an attack first drove a feature out of its top k."), table(CORRELATIONS, correlations, { tools: true })])] : []),
  ];
  return parts.length ? h("section", { id: "models" }, h("h2", {}, "Models beside each other"), ...parts) : null;
}
