// What the page is given: the files of one run folder or several (docs/run-folder.md) and pictures made from its arrays.

export interface Interval {
  mean: number | null;
  low: number | null;
  high: number | null;
  count: number;
}

export interface Row {
  dataset: string;
  model: string;
  explainer: string;
  attack: string;
  threat: { norm: string; epsilon: number; box: [number, number] | null };
  select: string;
  metric: string;
  direction: "higher" | "lower";
  mean: number | null;
  low: number | null;
  high: number | null;
  count: number;
  undefined: number;
  median: number | null;
  chance: number | null;
  adjusted: number | null;
  between: number | null;
  between_same_class: number | null;
  specific: number | null;
  // Runs of earlier versions have none of these.
  lift?: number | null;
  lift_interval?: [number, number] | null;
  effective_sets?: number | null;
  effective_sets_interval?: [number, number] | null;
  own_advantage?: number | null;
  own_advantage_interval?: [number, number] | null;
  robust_and_specific?: string | null;
  distinct_top_sets: number;
  tied_share: number;
  tied_perturbed?: number;
  chance_is_exact: boolean;
  flips: { samples: number; share: number };
  swapped_share: number;
  median_first_swap: number | null;
  evaluations: number;
  most_evaluations?: number;
  sensitivity: number | null;
  // What random points find beside the attack (null beside random points), and which of them found more than it.
  random?: { attack: string; samples: number; mean: number | null; low: number | null; high: number | null } | null;
  beaten_by?: string | null;
  no_gradient?: { samples: number; not_finite: number };
  // Of an ensemble.
  components?: { name: string; won: number; evaluations: number }[];
  late_gain?: number | null;
  converged?: boolean | null;
  auc: Interval | null;
}

export interface ModelFacts {
  name: string;
  dataset: string;
  accuracy: Interval | null;
  auc: Interval | null;
  parameters?: number;
  [key: string]: unknown;
}

export interface Gate {
  gate: string;
  limit: number;
  met: boolean;
  // Of an attacked row of the results, or of a measured one.
  rows: { row?: number; measure?: number; value: number | null; met: boolean }[];
}

export interface Estimate {
  low: number | null;
  high: number | null;
}

export interface MeasureRow extends Interval {
  dataset: string;
  model: string;
  explainer: string; // "-" where the measure reads none
  measure: string;
  direction: "higher" | "lower";
  median: number | null;
}

// Of two models on the same samples: of a metric after an attack, or of a measure.
export interface Comparison {
  dataset: string;
  models: [string, string];
  explainer: string;
  attack?: string;
  metric?: string;
  measure?: string;
  difference: Interval;
  p_value: number | null;
  corrected: number | null;
}

export interface Correlation {
  dataset: string;
  model: string;
  attack: string;
  metric: string;
  measure: string;
  spearman: Estimate & { value: number | null };
  kendall: Estimate & { value: number | null };
  count: number;
  censored: number;
}

export interface Bar {
  name: string;
  before: number;
  after: number;
  value: number;
  moved: number;
  state: "kept" | "lost" | "new" | "other";
}

export interface WorstSample {
  sample: number;
  label: string | null;
  prediction: string;
  value: number | null;
  pictures?: { title: string; data: string }[];
  bars?: Bar[];
}

export interface Run {
  folder: string;
  manifest: Record<string, unknown> & { title: string; seed: number; seconds: number; started: string };
  results: {
    title: string;
    models: ModelFacts[];
    rows: Row[];
    measures?: MeasureRow[];
    comparisons?: Comparison[];
    correlations?: Correlation[];
    gates: Gate[];
  };
  // Column by column, as in samples.csv: the row of results.json each sample belongs to, and its value.
  samples: { row: number[]; sample: number[]; value: (number | null)[] };
  worst: WorstSample[][]; // one list a row of results.json
}

export interface ResultValue {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  published?: number;
  chance?: number;
  between?: number;
  specific?: number;
  lift?: number;
  effective_sets?: number;
  own_advantage?: number;
}

export interface ResultTable {
  name: string;
  caption: string;
  keys: string[];
  columns: string[];
  rows: { keys: string[]; values: ResultValue[] }[];
}

export interface Verdict {
  claim: string;
  says: string;
  verdict: string;
  number: number | null;
  low: number | null;
  high: number | null;
  why: string;
}

// A run of `holdfast reproduce`.
export interface ExperimentRun {
  folder: string;
  manifest: Record<string, unknown>;
  results: {
    kind: "experiment";
    experiment: string;
    scale: string;
    title: string;
    paper: string;
    settings: Record<string, unknown>;
    tables: ResultTable[];
    figures: { name: string; caption: string; spec?: unknown; panels: { title: string; arrays: string }[] }[];
    verdicts: Verdict[];
    notes: string[];
  };
  panels: Record<string, WorstSample[]>; // by the folder of their arrays
}

export function isExperiment(run: Run | ExperimentRun): run is ExperimentRun {
  return (run.results as { kind?: string }).kind === "experiment";
}

export function readRuns(): (Run | ExperimentRun)[] {
  const element = document.getElementById("holdfast-data");
  return element ? (JSON.parse(element.textContent ?? "[]") as (Run | ExperimentRun)[]) : [];
}
