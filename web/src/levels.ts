// Every value between its levels: chance on the left, identical on the right, and what another sample would score.
import { chart, labelWidth, NARROW } from "./chart";
import type { Row, Run } from "./data";
import { distinct, groupBy, h, number, percent } from "./dom";
import { table, type Column } from "./table";

const MODEL_LIMIT = 180; // pixels

function levelChart(rows: Row[]): HTMLElement {
  const values = rows.map((row) => ({ ...row, text: `${number(row.mean)} [${number(row.low)}, ${number(row.high)}]` }));
  const tooltip = [
    { field: "text", title: "value" },
    { field: "chance", title: "chance", format: ".3f" },
    { field: "between", title: "between", format: ".3f" },
    { field: "specific", title: "specific", format: ".3f" },
    { field: "lift", title: "lift", format: ".3f" },
    { field: "effective_sets", title: "effective sets", format: ".1f" },
    { field: "own_advantage", title: "own advantage", format: ".3f" },
  ];
  const mark = (y: object, field: string, colour: string) => ({
    mark: { type: "tick", thickness: 2, size: 16, color: colour },
    encoding: { y, x: { field, type: "quantitative" }, tooltip },
  });
  const models = distinct(rows, (row) => row.model), attacks = distinct(rows, (row) => row.attack);
  const lowest = Math.min(0, ...rows.map((row) => Math.min(row.low ?? 0, row.mean ?? 0)));
  const spec = (room: number) => {
    const narrow = room < NARROW, attackLimit = narrow ? 130 : 220;
    const beside = labelWidth(attacks, attackLimit) + (narrow ? 0 : labelWidth(models, MODEL_LIMIT));
    const width = Math.max(140, Math.min(460, room - 40 - beside));
    const header = narrow ? { labelOrient: "top", labelAnchor: "start", labelLimit: width } : { labelOrient: "left", labelLimit: MODEL_LIMIT };
    const y = { field: "attack", type: "nominal", title: null, sort: attacks, axis: { labelLimit: attackLimit } };
    const scale = rows[0].direction === "higher" ? { domain: [lowest, 1] } : {};
    const layer = [
      mark(y, "chance", "#a3adb8"),
      mark(y, "between", "#d9822b"),
      { mark: { type: "rule", strokeWidth: 3, color: "#1f6feb", opacity: 0.45 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 70, color: "#1f6feb" }, encoding: { y, x: { field: "mean", type: "quantitative", title: rows[0].metric, scale }, tooltip } },
    ];
    return {
      data: { values },
      facet: { row: { field: "model", type: "nominal", sort: models, header: { labelAngle: 0, labelAlign: "left", title: null, ...header } } },
      spacing: 6,
      spec: { width, height: { step: 20 }, layer },
    };
  };
  return chart(spec, `${rows[0].metric} of each model and attack with chance and between levels`);
}

const tied = (row: Row): number => Math.max(row.tied_share, row.tied_perturbed ?? 0);

function tiedText(row: Row): string {
  if (!row.distinct_top_sets) return "–";
  const [clean, attacked] = [percent(row.tied_share), percent(row.tied_perturbed ?? row.tied_share)];
  return clean === attacked ? clean : `${clean}, ${attacked}`;
}

const withEnds = (mean: number | null | undefined, ends: [number, number] | null | undefined, digits = 3): string =>
  mean == null ? "–" : number(mean, digits) + (ends ? ` [${number(ends[0], digits)}, ${number(ends[1], digits)}]` : "");

const COLUMNS: Column<Row>[] = [
  { name: "model", text: (row) => row.model },
  { name: "attack", text: (row) => row.attack },
  { name: "value", help: "mean over samples with its 95 % interval", text: (row) => `${number(row.mean)} [${number(row.low)}, ${number(row.high)}]`, value: (row) => row.mean },
  { name: "random", help: "the worst of random points on the surface of the same ball; ⚠ where they are what harms more than the attack", text: (row) => (row.random ? `${number(row.random.mean)}${row.beaten_by === row.random.attack ? " ⚠" : ""}` : "–"), value: (row) => row.random?.mean },
  { name: "chance", help: "what a map in random order scores", text: (row) => (row.chance != null && !row.chance_is_exact ? "~" : "") + number(row.chance), value: (row) => row.chance },
  { name: "between", help: "what clean maps of different samples score", text: (row) => number(row.between), value: (row) => row.between },
  { name: "same class", help: "what clean maps of different samples of one class score", text: (row) => number(row.between_same_class), value: (row) => row.between_same_class },
  { name: "adjusted", help: "(value - chance) / (1 - chance)", text: (row) => number(row.adjusted), value: (row) => row.adjusted },
  { name: "specific", help: "(value - between) / (1 - between): 0 when an attacked map is as far from its own as another sample's", text: (row) => number(row.specific), value: (row) => row.specific },
  { name: "lift", help: "value - between", text: (row) => withEnds(row.lift, row.lift_interval), value: (row) => row.lift },
  { name: "effective sets", help: "exp of the entropy of the top-k sets; all sets that did not hold count as one. 1: one set for all samples", text: (row) => withEnds(row.effective_sets, row.effective_sets_interval, 1), value: (row) => row.effective_sets },
  { name: "own advantage", help: "how much more a sample's own attacked top k moves its prediction than another sample's, as a share; 0 or less: the explanation is not about the sample", text: (row) => withEnds(row.own_advantage, row.own_advantage_interval), value: (row) => row.own_advantage },
  { name: "robust and specific", help: "holds where surely lift ≥ 0.2, effective sets ≥ 3 and own advantage > 0", text: (row) => row.robust_and_specific ?? "–", value: (row) => (row.robust_and_specific == null ? null : ["does not hold", "not decided", "holds"].indexOf(row.robust_and_specific)) },
  { name: "distinct sets", help: "different clean top-k sets", text: (row) => String(row.distinct_top_sets || "–"), value: (row) => row.distinct_top_sets || null },
  { name: "tied", help: "clean and attacked maps whose top-k set is decided by the order of equal values", text: tiedText, value: (row) => (row.distinct_top_sets ? tied(row) : null) },
  { name: "swapped", help: "samples with a feature out of the top k on the way", text: (row) => percent(row.swapped_share), value: (row) => row.swapped_share },
  { name: "flips", help: "samples whose class flipped on the way (such points are never kept)", text: (row) => percent(row.flips.share), value: (row) => row.flips.share },
  { name: "|Δp|", help: "mean change of the predicted class's probability", text: (row) => number(row.sensitivity), value: (row) => row.sensitivity },
  { name: "evaluations", help: "gradient evaluations a sample, on average: an attack stops where nothing is left to break", text: (row) => row.evaluations.toFixed(0), value: (row) => row.evaluations },
  { name: "n", help: "samples", text: (row) => String(row.count), value: (row) => row.count },
];

// What must not be read as robustness.
function weakAttacks(rows: Row[]): HTMLElement[] {
  const warning = (text: string) => h("p", { class: "warning" }, text);
  return rows.flatMap((row) => [
    ...(row.beaten_by ? [warning(`${row.attack} on ${row.model}: ${row.beaten_by} harms more. Do not read this row as robustness.`)] : []),
    ...(row.no_gradient?.samples ? [warning(`${row.attack} on ${row.model}: no gradient to follow in ${row.no_gradient.samples} samples (${row.no_gradient.not_finite} not finite).`)] : []),
  ]);
}

// Attacks are only comparable at what they were allowed to spend: what the sample that held out longest took, where one did.
const UNEQUAL = 1.5;

function unequalBudgets(rows: Row[]): HTMLElement | null {
  const unbroken = rows.filter((row) => row.most_evaluations != null && (row.direction === "lower" || (row.mean ?? 0) > 0));
  const spent = unbroken.map((row) => row.most_evaluations as number);
  const [least, most] = [Math.min(...spent), Math.max(...spent)];
  if (!(most > UNEQUAL * least)) return null;
  return h("p", { class: "note" }, `These attacks had different budgets, ${least} to ${most} gradient evaluations a sample: compare models under one attack rather than the attacks.`);
}

export function levels(run: Run): HTMLElement {
  const parts: HTMLElement[] = [];
  for (const [title, rows] of groupBy(run.results.rows, (row) => `${row.dataset}: ${row.explainer}, ${row.threat.norm} ≤ ${row.threat.epsilon}, ${row.metric}`)) {
    parts.push(h("h3", {}, title), levelChart(rows), table(COLUMNS.filter((column) => !column.value || rows.some((row) => column.value!(row) != null)), rows), ...weakAttacks(rows));
    const unequal = unequalBudgets(rows);
    if (unequal) parts.push(unequal);
    const mostTied = Math.max(...rows.map(tied));
    if (mostTied > 0) parts.push(h("p", { class: "warning" }, `In up to ${percent(mostTied)} of the clean or attacked maps the k-th value is tied with the next: there the order of the features decides, not the model.`));
  }
  return h("section", {}, h("h2", {}, "How far explanations moved"),
    h("p", { class: "legend" }, h("span", { class: "dot value" }), "value with 95 % interval  ", h("span", { class: "dot chance" }), "chance: a random map  ",
      h("span", { class: "dot between" }), "between: another sample's map. A value at or left of “between” means that nothing specific to the sample is left."),
    ...parts);
}
