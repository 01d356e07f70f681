// The answer first: for each dataset and metric, which model's explanations hold, and whether that is worth anything.
import type { Gate, Row, Run } from "./data";
import { groupBy, h, number, percent } from "./dom";

// With as many digits as it takes to see that it is not the limit.
function apart(value: number | null, limit: number): string {
  let digits = 3;
  while (value != null && value !== limit && digits < 17 && number(value, digits) === number(limit, digits)) ++digits;
  return number(value, digits);
}

// What a row of a gate is about, in a few words.
function gateSubject(run: Run, row: Gate["rows"][number]): string {
  if (row.row !== undefined) return `${run.results.rows[row.row].model}, ${run.results.rows[row.row].attack}, epsilon ${run.results.rows[row.row].threat.epsilon}`;
  const measured = row.measure === undefined ? undefined : run.results.measures?.[row.measure];
  return measured ? `${measured.model}, ${measured.measure}` : "";
}

// The row that is worst for the defender: an explanation holds no better than under the strongest attack that was run.
export function strongest(rows: Row[]): Row {
  const higher = rows[0].direction === "higher";
  return rows.reduce((worst, row) => {
    if (row.mean == null) return worst;
    if (worst.mean == null) return row;
    return (higher ? row.mean < worst.mean : row.mean > worst.mean) ? row : worst;
  });
}

// Above this, the top features hardly depend on the input.
const SAME_EVERYWHERE = 0.95;

// Where the attacked explanation lies between another sample's (0) and its own (1).
function fromAnother(row: Row): string {
  if (row.specific == null) return "";
  if (row.specific < 0) return `Attacked explanations are further from their own than another sample's are (specific ${number(row.specific)}).${meaning(row)}`;
  return `That is ${percent(row.specific)} of the way from another sample's explanation to its own.${meaning(row)}`;
}

// What `specific` is never shown without, and what the three come to.
function meaning(row: Row): string {
  if (row.lift == null) return "";
  const parts = [`lift ${number(row.lift)}`];
  if (row.effective_sets != null) parts.push(`${number(row.effective_sets, 1)} effective sets`);
  if (row.own_advantage != null) parts.push(`own advantage ${number(row.own_advantage)}`);
  const judged = row.robust_and_specific == null ? "" : ` “Robust and specific” ${row.robust_and_specific === "not decided" ? "is not decided" : row.robust_and_specific}.`;
  const words = parts.join(", ");
  return ` ${words[0].toUpperCase()}${words.slice(1)}.${judged}`;
}

function verdict(rows: Row[]): HTMLElement {
  const models = [...groupBy(rows, (row) => row.model).values()].map(strongest);
  const higher = rows[0].direction === "higher";
  models.sort((a, b) => ((b.mean ?? -Infinity) - (a.mean ?? -Infinity)) * (higher ? 1 : -1));
  const best = models[0];
  const informative = models.filter((row) => row.between == null || row.between < SAME_EVERYWHERE);
  const items = [
    h("p", { class: "verdict" }, h("strong", {}, best.model), models.length > 1 ? " holds best: " : ": ", h("strong", {}, number(best.mean)),
      ` [${number(best.low)}, ${number(best.high)}] after ${best.attack}.`),
  ];
  if (best.between != null && best.between >= SAME_EVERYWHERE) {
    items.push(h("p", { class: "warning" },
      `But two different inputs already score ${number(best.between)} against each other: its explanation is nearly the same for every input, and so trivially robust.`));
    if (informative.length > 0) {
      const next = informative[0];
      items.push(h("p", {}, "Of the models whose explanations depend on the input, ", h("strong", {}, next.model), ` holds best: ${number(next.mean)} [${number(next.low)}, ${number(next.high)}] after ${next.attack}. ${fromAnother(next)}`));
    }
  } else {
    items.push(h("p", {}, fromAnother(best)));
  }
  if (models.length === 1 && best.chance != null) items.push(h("p", {}, `A random map would score ${number(best.chance)}.`));
  if (models.length > 1) {
    const last = models[models.length - 1];
    items.push(h("p", {}, `Weakest: ${last.model}, ${number(last.mean)} [${number(last.low)}, ${number(last.high)}] after ${last.attack}; a random map would score ${number(last.chance)}.`));
  }
  return h("div", {}, ...items);
}

export function summary(run: Run): HTMLElement {
  const cards = [...groupBy(run.results.rows, (row) => `${row.dataset}: ${row.explainer}, ${row.metric}, ${row.threat.norm} ≤ ${row.threat.epsilon}`)].map(([title, rows]) =>
    h("article", { class: "card" }, h("h3", {}, title), verdict(rows)));
  const gates = run.results.gates.map((gate) =>
    h("li", { class: gate.met ? "met" : "missed" }, `${gate.met ? "met" : "not met"}: `, h("code", {}, gate.gate),
      gate.met ? "" : ` (${gate.rows.filter((row) => !row.met).map((row) => `${gateSubject(run, row)}: ${apart(row.value, gate.limit)}`).join("; ")})`));
  return h("section", {}, h("div", { class: "cards" }, ...cards), gates.length ? h("ul", { class: "gates" }, ...gates) : null);
}
