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
  const distance = row.value == null ? "it is undefined" : `${apart(row.value, gate.limit)}, ${number(Math.abs(row.value - gate.limit), 3)} ${gate.met ? "to spare" : "short"}`;
  const rest = gate.met || gate.rows.length === 1 ? "" : ` (${missed} of ${counted(gate.rows.length, "row")} ${missed === 1 ? "misses" : "miss"} it)`;
  return h("li", {}, h("strong", {}, gate.met ? "met " : "not met "), h("code", {}, gate.gate), `: ${distance}. ${gateSubject(run, row)}${rest}`);
}

const GATES_SHOWN = 4;

export function banner(run: Run): HTMLElement {
  const gates = [...run.results.gates].sort((a, b) => Number(a.met) - Number(b.met)), missed = gates.filter((gate) => !gate.met).length;
  if (!gates.length) return h("div", { class: "banner none", id: "gates" }, h("p", {}, "No gates were set. Add ", h("code", {}, "--gate 'top_k(k=8)>=0.6'"), " to make a build fail when explanations become fragile."));
  const lines = gates.map((gate) => gateLine(run, gate));
  return h("div", { class: `banner ${missed ? "missed" : "met"}`, id: "gates", role: "status" },
    h("h2", {}, missed ? (gates.length === 1 ? "Failed: the gate is not met" : `Failed: ${missed} of ${counted(gates.length, "gate")} not met`) : gates.length === 1 ? "Passed: the gate is met" : `Passed: all ${gates.length} gates are met`),
    h("ul", {}, ...lines.slice(0, GATES_SHOWN)), lines.length > GATES_SHOWN ? fold(`${lines.length - GATES_SHOWN} more`, () => [h("ul", {}, ...lines.slice(GATES_SHOWN))]) : null);
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

const topCount = (metric: string) => Number(/^(?:top_k|lens_precision|lens_recall)\w*\((?:.*,)?k=(\d+)/.exec(metric)?.[1] ?? NaN);
const ofTop = (share: number, k: number) => number(share * k, share * k >= 99.95 || Number.isInteger(share * k) ? 0 : 1);

// "keeps 7.2 of its top 8 features", or the number itself for metrics that count nothing.
function kept(row: Row): (Node | string)[] {
  const k = topCount(row.metric), window = /^lens_\w+\(.*w=(\d+)/.exec(row.metric)?.[1];
  if (row.mean == null) return [`has no defined ${row.metric}`];
  if (Number.isNaN(k)) return [h("code", {}, row.metric), " is ", h("strong", {}, interval(row.mean, row.low, row.high)), row.direction === "higher" ? " (1 is unchanged)" : " (0 is unchanged)"];
  return [window ? "finds " : "keeps ", h("strong", {}, ofTop(row.mean, k)), " of its ", term("top k", `top ${k} features`), window ? ` again within ${counted(Number(window), "step")}` : ""];
}

// What two different inputs share, and what that means for this row.
function beside(row: Row): (Node | string)[] {
  if (row.between == null || row.direction === "lower") return ["."];
  const k = topCount(row.metric);
  const share = [term("between", Number.isNaN(k) ? `two different inputs score ${number(row.between)}` : `two different inputs share ${ofTop(row.between, k)}`)];
  const proven = certified(row);
  const proof = proven == null ? [] : ["; ", term("certified", Number.isNaN(k) ? `${number(proven)} is proven` : `${ofTop(proven, k)} are proven to stay`)];
  return ["; ", ...share, ...proof, ".", meaning(row)];
}

const MEANINGS: Record<string, string> = {
  trivial: " Its explanation is nearly the same for every input, so that it holds says little.",
  holds: " It holds and still depends on the input.",
  "hardly specific": " What is left is hardly more than another input's explanation shares.",
  breaks: " After the attack it is no closer to its own explanation than another input's is.",
};

// What a row needs to be called robust and specific (docs/metrics.md), beside an own advantage above 0.
const ENOUGH_LIFT = 0.2, ENOUGH_SETS = 3;
const misses = (interval: [number, number] | null | undefined, least: number) => interval != null && interval[1] < least;

function meaning(row: Row): string {
  const text = judged(row)?.[1] ?? "";
  if (text !== "partly specific") return MEANINGS[text] ?? "";
  return misses(row.effective_sets_interval, ENOUGH_SETS)
    ? ` It depends on the input, but takes only ${number(row.effective_sets, 1)} different sets of top features.`
    : " It depends on the input, but its top features matter no more for this input than those of another.";
}

// The conclusion in a few words, as class and text.
export function judged(row: Row): [kind: string, text: string] | null {
  if (row.mean == null || row.direction === "lower") return null;
  if (row.between != null && row.between >= SAME_EVERYWHERE) return ["trivial", "trivial"];
  if (row.robust_and_specific === "holds") return ["holds", "holds"];
  if (row.robust_and_specific === "not decided") return ["open", "not decided"];
  if (row.between != null && (row.high ?? row.mean) < row.between) return ["breaks", "breaks"];
  if (row.robust_and_specific === "does not hold") return ["open", misses(row.lift_interval, ENOUGH_LIFT) ? "hardly specific" : "partly specific"];
  return null;
}

// The metric that the verdict is about: the first one that counts top features, else the first.
export function headline(rows: Row[]): string {
  return (rows.find((row) => !Number.isNaN(topCount(row.metric))) ?? rows[0]).metric;
}

export function verdictLine(rows: Row[], several: boolean): HTMLElement {
  const row = strongest(rows), verdict = judged(row);
  return h("li", {}, verdict ? h("span", { class: `badge ${verdict[0]}` }, verdict[1]) : null, h("strong", {}, shown(row.model)), several ? ` (${shown(row.dataset)}) ` : " ", ...kept(row),
    " under the strongest ", term("attack"), ` (${shown(row.attack)}, ${shown(row.explainer)}, `, term("epsilon", threatText(row.threat)), ")", ...beside(row));
}

const MODELS_SHOWN = 6;

export function verdicts(run: Run): HTMLElement {
  const datasets = groupBy(run.results.rows, (row) => row.dataset);
  const lines = [...datasets.values()].flatMap((rows) => {
    const metric = headline(rows);
    return [...groupBy(rows.filter((row) => row.metric === metric), (row) => row.model).values()].map((mine) => verdictLine(mine, datasets.size > 1));
  });
  return h("div", { class: "verdicts" }, h("ul", {}, ...lines.slice(0, MODELS_SHOWN)),
    lines.length > MODELS_SHOWN ? fold(`${lines.length - MODELS_SHOWN} more models`, () => [h("ul", {}, ...lines.slice(MODELS_SHOWN))]) : null);
}
