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
  threat: { norm: string; epsilon: number; box: [number, number] | null; switches?: number };
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
  certified?: number | { mean: number | null } | null;
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
  restart_gap?: number | null;
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
  epsilon?: number;
  measure?: string;
  difference: Interval;
  p_value: number | null;
  corrected: number | null;
}

export interface Correlation {
  dataset: string;
  model: string;
  explainer: string;
  attack: string;
  metric: string;
  epsilon: number;
  measure: string;
  spearman: Estimate & { value: number | null };
  kendall: Estimate & { value: number | null };
  count: number;
  censored: number;
}

export type State = "kept" | "lost" | "new" | "other";

export interface Bar {
  name: string;
  before: number; // shares of the map's sum
  after: number;
  value: string; // of the input, in the units from before its encoding where they are known
  moved: string; // of the perturbed input; the same where it was not changed
  state: State;
}

export interface WorstSample {
  sample: number;
  label: string | null;
  prediction: string;
  value: number | null;
  // Pictures by their place in Payload.pictures: input, nudge, perturbed, before, after, change.
  pictures?: Record<string, number>;
  nudge?: number; // the largest change of an input element, which has the full colour in its picture
  share?: number; // the share of a map's sum that has the full colour
  sides?: number; // 2: a pair, side by side in every picture
  edges?: { nodes: number; sides: [number, number, State][][] }; // of a graph: the edges of both top sets
  bars?: Bar[];
  words?: { text: string; before: number; after: number; state: State }[]; // of a sentence
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
  // For each row of results.json, from samples.csv: one value a sample, and the iteration of its first swap (-1: none).
  samples: { value: (number | null)[]; first_swap: number[] }[];
  worst: WorstSample[][]; // one list a row of results.json
  left_out: number; // worst samples that would have made the page too large
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
  kinds?: string[];
  rows: { keys: string[]; values: ResultValue[] }[];
}

export interface Verdict {
  claim: string;
  says: string;
  plain?: string; // what became of it, in one sentence for who has not read the paper
  verdict: string;
  experiment?: string;
  scale?: string;
  number: number | null;
  low: number | null;
  high: number | null;
  why: string;
  parts?: { name: string; verdict: string }[];
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

// Several runs held against the first, sample by sample (experiment/compare_runs.h).
export interface RunDifference {
  run: number;
  dataset: string;
  model: string;
  explainer: string;
  attack?: string;
  metric?: string;
  epsilon?: number;
  measure?: string;
  direction: "higher" | "lower";
  first: number | null; // of the first run
  second: number | null; // of this run
  difference: Interval; // this run's minus the first's
  p_value: number | null;
  corrected: number | null;
  change: "better" | "worse" | "open" | "same";
}

export interface RunComparison {
  runs: string[];
  rows: RunDifference[];
  settings: { key: string; values: string[] }[];
  unmatched: string[]; // for each run, in words; empty: none
}

// One model under one threat, as a leaderboard keeps it.
export interface Entry {
  name: string;
  run: string;
  dataset: string;
  model: string;
  explainer: string;
  metric: string;
  direction: "higher" | "lower";
  threat: { norm: string; epsilon: number };
  attack: string;
  value: number | null;
  low: number | null;
  high: number | null;
  samples: number;
  chance: number | null;
  between: number | null;
  lift: number | null;
  effective_sets: number | null;
  own_advantage: number | null;
  certified: number | null;
  robust_and_specific: string | null;
  accuracy: number | null;
  evaluations: number | null;
  beaten_by: string | null;
  holdfast: string;
}

// A survey's question: two maps of one input.
export interface SurveyPair {
  id: string;
  prediction: string;
  input: number; // places in Payload.pictures
  maps: [number, number];
  metrics: Record<string, number | null>; // what the answers are held against; never shown
}

export interface Survey {
  id: string;
  title: string;
  pairs: SurveyPair[];
}

export interface Payload {
  page: "runs" | "paper" | "site" | "leaderboard" | "survey";
  title: string;
  pictures: string[]; // data URLs, each once
  runs?: (Run | ExperimentRun)[];
  comparison?: RunComparison | null;
  entries?: Entry[];
  survey?: Survey;
  papers?: { name: string; title?: string; page: string; words?: string; verdicts: Verdict[] }[];
  words?: string; // of a paper: its glossary, in Markdown
}

export function isExperiment(run: Run | ExperimentRun): run is ExperimentRun {
  return (run.results as { kind?: string }).kind === "experiment";
}

export function readPayload(): Payload {
  return JSON.parse(document.getElementById("holdfast-data")?.textContent ?? "{}") as Payload;
}

export function certified(row: Row): number | null {
  return row.certified == null || typeof row.certified === "number" ? (row.certified ?? null) : row.certified.mean;
}

export const norms: Record<string, string> = { l2: "l2", linf: "l∞", l1: "l1" };
export const threatText = (threat: { norm: string; epsilon: number }) => `${norms[threat.norm] ?? threat.norm} ≤ ${threat.epsilon}`;
