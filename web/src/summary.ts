// The answer first: whether the gates are met and by how much, and one sentence for each model.
import { certified, threatText, type Gate, type Row, type Run } from "./data";
import { counted, fold, groupBy, h, interval, number, shown } from "./dom";
import { term } from "./terms";

// With as many digits as it takes to see that it is not the limit.
function apart(value: number | null, limit: number): string {
  let digits = 3;
  while (value != null && value !== limit && digits < 17 && number(value, digits) === number(limit, digits)) ++digits;
  return number(value, digits);
}

type GateRow = Gate["rows"][number];

// What a row of a gate is about, in a few words.
function gateSubject(run: Run, row: GateRow): string {
  const attacked = row.row === undefined ? undefined : run.results.rows[row.row];
  if (attacked) return shown(`${attacked.model}, ${attacked.explainer}, ${attacked.attack}, ${threatText(attacked.threat)}`);
  const measured = row.measure === undefined ? undefined : run.results.measures?.[row.measure];
  return measured ? shown(`${measured.model}, ${measured.measure}`) : "";
}

// How far a row is from the limit, on the side where it is met.
const slack = (gate: Gate, row: GateRow) => (row.value == null ? -Infinity : (row.value - gate.limit) * (/</.test(gate.gate) ? -1 : 1));
const deciding = (gate: Gate): GateRow => gate.rows.reduce((worst, row) => (slack(gate, row) < slack(gate, worst) ? row : worst));

function gateLine(run: Run, gate: Gate): HTMLElement {
  const row = deciding(gate), missed = gate.rows.filter((other) => !other.met).length;
  const distance = row.value == null ? [h("strong", {}, "undefined")] : [h("strong", {}, apart(row.value, gate.limit)), `, ${number(Math.abs(row.value - gate.limit), 3)} ${gate.met ? "to spare" : /</.test(gate.gate) ? "over" : "short"}`];
  const rest = gate.rows.length === 1 ? "" : gate.met ? `; the closest of ${gate.rows.length} rows` : `; ${missed} of ${gate.rows.length} rows ${missed === 1 ? "misses" : "miss"} it`;
  return h("li", {}, h("span", { class: "mark", "aria-hidden": "true" }, gate.met ? "✓" : "✗"),
    h("span", {}, h("strong", {}, gate.met ? "met " : "not met "), h("code", {}, gate.gate), ": ", ...distance, h("span", { class: "note" }, ` (${gateSubject(run, row)}${rest})`)));
}

const GATES_SHOWN = 4;

export function banner(run: Run): HTMLElement {
  const gates = [...run.results.gates].sort((a, b) => Number(a.met) - Number(b.met)), missed = gates.filter((gate) => !gate.met).length;
  if (!gates.length) return h("div", { class: "banner none", id: "gates" }, h("p", {}, "No gates were set. Add ", h("code", {}, "--gate 'top_k(k=8)>=0.6'"), " to make a build fail when explanations become fragile."));
  const lines = gates.map((gate) => gateLine(run, gate));
  const weak = new Set(gates.flatMap((gate) => gate.rows.filter((row) => row.row !== undefined && run.results.rows[row.row].beaten_by).map((row) => row.row))).size;
  return h("div", { class: `banner ${missed ? "missed" : weak ? "met weak" : "met"}`, id: "gates", role: "status" },
    h("h2", {}, missed ? (gates.length === 1 ? "Failed: the gate is not met" : `Failed: ${missed} of ${counted(gates.length, "gate")} not met`) : gates.length === 1 ? "Passed: the gate is met" : `Passed: all ${gates.length} gates are met`),
    h("ul", {}, ...lines.slice(0, GATES_SHOWN)), lines.length > GATES_SHOWN ? fold(`${lines.length - GATES_SHOWN} more`, () => [h("ul", {}, ...lines.slice(GATES_SHOWN))]) : null,
    weak ? h("p", {}, h("strong", {}, "⚠ Weak attack: "), `in ${counted(weak, "row")} of these gates another search does more harm than the attack. `, missed ? "" : "This pass is no sign of robustness. ", "Attack with ", h("code", {}, "gauntlet"), ".") : null);
}

// The row that is worst for the defender: an explanation holds no better than under the strongest attack that was run.
export function strongest(rows: Row[]): Row {
  const higher = rows[0].direction === "higher";
  return rows.reduce((worst, row) => {
    if (row.mean == null) return worst;
    if (worst.mean == null) return row;
    return (higher ? row.mean <= worst.mean : row.mean >= worst.mean) ? row : worst; // of equals the last, with the largest epsilon
  });
}

// Above this, the top features hardly depend on the input.
const SAME_EVERYWHERE = 0.95;

// An explanation that surely keeps this much was hardly changed.
const HARDLY_MOVES = 0.9;

export const topCount = (metric: string) => Number(/^(?:top_k|lens_precision|lens_recall)\w*\((?:.*,)?k=(\d+)/.exec(metric)?.[1] ?? NaN);
const ofTop = (share: number, k: number) => number(share * k, share * k >= 99.95 || Number.isInteger(share * k) ? 0 : 1);

// "keeps 7.2 of its top 8 features", or the number itself for metrics that count nothing.
function kept(row: Row): (Node | string)[] {
  const k = topCount(row.metric), window = /^lens_\w+\(.*w=(\d+)/.exec(row.metric)?.[1];
  if (row.mean == null) return [`has no defined ${row.metric}`];
  if (Number.isNaN(k)) return ["has ", h("code", {}, row.metric), " ", h("strong", {}, interval(row.mean, row.low, row.high)), row.direction === "higher" ? " (1 is unchanged)" : " (0 is unchanged)"];
  return [window ? "finds " : "keeps ", h("strong", {}, ofTop(row.mean, k)), " of its ", term("top k", `top ${k} features`), window ? ` again within ${counted(Number(window), "step")}` : "", ...proof(row, k)];
}

// What is proven: that the attack found the worst there is, or how much stays at least.
function proof(row: Row, k: number): (Node | string)[] {
  const proven = certified(row);
  if (proven == null || row.mean == null) return [];
  if (proven >= row.mean - 5e-4) return [" ", h("span", { class: "together" }, "(", term("certified", "proven worst case"), ")")];
  return [" ", h("span", { class: "together" }, "(", term("certified", `at least ${ofTop(proven, k)} proven`), ")")];
}

// What two different inputs share, and what that means for this row.
function beside(row: Row): (Node | string)[] {
  if (row.between == null) return ["."];
  const k = topCount(row.metric);
  if (row.direction === "lower") return ["; ", term("between", `two different inputs are ${number(row.between)} apart`), ".", meaning(row)];
  return ["; ", term("between", Number.isNaN(k) ? `two different inputs score ${number(row.between)}` : `two different inputs share ${ofTop(row.between, k)}`), ".", meaning(row)];
}

const MEANINGS: Record<string, string> = {
  trivial: " Every input has nearly the same explanation.",
  holds: " It holds and still depends on the input.",
  "hardly specific": " What is left is hardly about this input.",
  breaks: " That is no closer to this input than to another.",
  "hardly moves": " The attack hardly changes it.",
  "holds in part": " What is left is still about this input.",
  "not decided": " More samples would decide whether it holds.",
};

// "3.1 are left"
const worth = (row: Row, value: number) => (row.direction === "lower" ? number(value) : Number.isNaN(topCount(row.metric)) ? `${number(value)} is left` : `${ofTop(value, topCount(row.metric))} are left`);

// What a row needs to be called robust and specific (docs/metrics.md), beside an own advantage above 0.
const ENOUGH_LIFT = 0.2, ENOUGH_SETS = 3;
const misses = (interval: [number, number] | null | undefined, least: number) => interval != null && interval[1] < least;

function meaning(row: Row): string {
  const text = judged(row)?.[1] ?? "";
  if (row.beaten_by && text !== "breaks") return ` But ${shown(row.beaten_by)} does more harm${row.random?.attack === row.beaten_by && row.random.mean != null ? ` (${worth(row, row.random.mean)})` : ""}: the attack is too weak to judge by.`;
  if (text !== "partly specific") return MEANINGS[text] ?? "";
  return misses(row.effective_sets_interval, ENOUGH_SETS)
    ? ` But only ${number(row.effective_sets, 1)} different sets are left.`
    : " But its top features matter no more for this input than those of another.";
}

// The conclusion in a few words, as class and text.
export function judged(row: Row): [kind: string, text: string] | null {
  if (row.mean == null) return null;
  if (row.direction === "lower") return judgedApart(row);
  if (row.between != null && row.between >= SAME_EVERYWHERE) return ["trivial", "trivial"];
  if (row.between != null && (row.high ?? row.mean) < row.between) return ["breaks", "breaks"];
  if (row.beaten_by) return ["open", "weak attack"];
  if (row.robust_and_specific === "holds") return ["holds", "holds"];
  if (row.robust_and_specific === "not decided") return ["open", "not decided"];
  if (row.robust_and_specific === "does not hold") return ["open", misses(row.lift_interval, ENOUGH_LIFT) ? "hardly specific" : "partly specific"];
  if (row.between == null) return null;
  if ((row.low ?? row.mean) <= row.between) return ["open", "not decided"];
  return (row.low ?? row.mean) >= HARDLY_MOVES ? ["holds", "hardly moves"] : ["open", "holds in part"]; // maps of images and graphs have no effective sets
}

// Of distances, which have no fixed scale: whether the explanation moved further than another input's lies away.
function judgedApart(row: Row): [kind: string, text: string] | null {
  if (row.between == null || row.mean == null) return null;
  if ((row.low ?? row.mean) > row.between) return ["breaks", "breaks"];
  if (row.beaten_by) return ["open", "weak attack"];
  return ["open", (row.high ?? row.mean) < row.between ? "holds in part" : "not decided"];
}

// The metric that the verdict is about: the first one that counts top features, else the first.
export function headline(rows: Row[]): string {
  return (rows.find((row) => !Number.isNaN(topCount(row.metric))) ?? rows[0]).metric;
}

// Under what a verdict was reached: said once for all models that share it.
const circumstances = (row: Row, several: boolean): (Node | string)[] => [...(several ? [h("strong", {}, shown(row.dataset)), ", under the strongest "] : ["Under the strongest "]), term("attack"), ` (${shown(row.attack)} on ${shown(row.explainer)}, `, term("epsilon", threatText(row.threat)), "):"];

export function verdictLine(row: Row): HTMLElement {
  const verdict = judged(row);
  return h("li", {}, verdict ? h("span", { class: `badge ${verdict[0]}` }, term(verdict[1])) : h("span", {}), h("span", {}, h("strong", {}, shown(row.model)), " ", ...kept(row), ...beside(row)));
}

const MODELS_SHOWN = 6;

// Rows in their order, under a line for what each group of them has in common.
function verdictGroups(rows: Row[], several: boolean): HTMLElement[] {
  const key = (row: Row) => JSON.stringify([row.dataset, row.attack, row.explainer, row.threat.norm, row.threat.epsilon]);
  return [...groupBy(rows, key).values()].flatMap((some) => [h("p", { class: "note" }, ...circumstances(some[0], several)), h("ul", {}, ...some.map(verdictLine))]);
}

export function verdicts(run: Run): HTMLElement {
  const datasets = groupBy(run.results.rows, (row) => row.dataset);
  const worst = [...datasets.values()].flatMap((rows) => {
    const metric = headline(rows);
    return [...groupBy(rows.filter((row) => row.metric === metric), (row) => row.model).values()].map(strongest);
  });
  return h("div", { class: "verdicts" }, ...verdictGroups(worst.slice(0, MODELS_SHOWN), datasets.size > 1),
    worst.length > MODELS_SHOWN ? fold(`${counted(worst.length - MODELS_SHOWN, "more model")}`, () => verdictGroups(worst.slice(MODELS_SHOWN), datasets.size > 1)) : null);
}
