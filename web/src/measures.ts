// What was measured around each sample, which differences between models are sure, and whether measures foretell attacks.
import type { Comparison, Correlation, MeasureRow, Run } from "./data";
import { distinct, fold, h, interval, probability, significant, significantInterval } from "./dom";
import { table, type Column } from "./table";

const MEASURES: Column<MeasureRow>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "model", text: (row) => row.model },
  { name: "explainer", text: (row) => row.explainer },
  { name: "measure", text: (row) => row.measure },
  { name: "value", help: "mean over samples with its 95 % interval", text: (row) => significantInterval(row.mean, row.low, row.high), value: (row) => row.mean },
  { name: "median", text: (row) => significant(row.median), value: (row) => row.median },
  { name: "better", help: "higher or lower is better", text: (row) => row.direction },
  { name: "n", help: "samples for which it is defined", text: (row) => String(row.count), value: (row) => row.count },
];

const SURE = 0.05;

// Which of the two is higher, where that is sure after correction.
function says(row: Comparison): string {
  if (row.corrected == null || row.corrected >= SURE || row.difference.mean == null || row.difference.mean === 0) return "not decided";
  return `${row.models[row.difference.mean > 0 ? 0 : 1]} is higher`;
}

// Metrics lie between 0 and 1, or nearly; measures have any scale.
const difference = (row: Comparison) => (row.metric ? interval : significantInterval)(row.difference.mean, row.difference.low, row.difference.high);

const COMPARISONS: Column<Comparison>[] = [
  { name: "dataset", text: (row) => row.dataset },
  { name: "models", text: (row) => row.models.join(" − ") },
  { name: "explainer", text: (row) => row.explainer },
  { name: "attack", text: (row) => row.attack ?? "–" },
  { name: "epsilon", text: (row) => String(row.epsilon ?? "–"), value: (row) => row.epsilon },
  { name: "metric or measure", text: (row) => row.metric ?? row.measure ?? "" },
  { name: "difference [95 %]", help: "mean of the first model minus the second, sample by sample, with its 95 % interval", text: difference, value: (row) => row.difference.mean },
  { name: "p", help: "how likely a difference this large is by chance: permutation test on the same samples", text: (row) => probability(row.p_value), value: (row) => row.p_value, extra: true },
  { name: "p, corrected", help: "Holm's correction for all comparisons of this run; below 0.05 the difference is called sure", text: (row) => probability(row.corrected), value: (row) => row.corrected },
  { name: "which is higher", text: says },
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
  const sure = comparisons.filter((row) => says(row) !== "not decided").length;
  const parts = [
    ...(comparisons.length ? [fold(`Differences between models (${sure} of ${comparisons.length} are sure)`, () => [h("p", {}, "Two models on the same samples: the first minus the second."), table(COMPARISONS, comparisons, { tools: true })], comparisons.length <= 20)] : []),
    ...(measures.length ? [fold(`Measured around each sample (${measures.length})`, () => [h("p", {}, "Without an attack. What a measure is: ", ...distinct(measures, (row) => row.measure.replace(/\(.*/, "")).flatMap((name, i) => [i ? ", " : "", h("code", {}, `holdfast describe ${name}`)]), "."), table(MEASURES, measures, { tools: true })], measures.length <= 20)] : []),
    ...(correlations.length ? [fold(`Do measures foretell how long an explanation holds? (${correlations.length})`, () => [
      h("p", {}, "Rank correlation between a measure of a sample and the iteration at which an attack first drove a feature out of its top k: 1 foretells it, 0 says nothing."), table(CORRELATIONS, correlations, { tools: true })])] : []),
  ];
  return parts.length ? h("section", { id: "models" }, h("h2", {}, "Models beside each other"), ...parts) : null;
}
