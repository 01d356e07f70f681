// How it was measured: what was allowed, what was left out, how to run it again, and what the numbers do not say.
import { threatText, type ModelFacts, type Row, type Run } from "./data";
import { counted, distinct, groupBy, h, interval, number, percent, shown } from "./dom";
import { table, type Column } from "./table";
import { term } from "./terms";

// As a shell reads it back.
export const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const COLUMNS: Column<ModelFacts>[] = [
  { name: "model", text: (model) => model.name },
  { name: "dataset", text: (model) => model.dataset },
  { name: "what it is", text: (model) => String(model.model ?? model.architecture ?? "") },
  { name: "parameters", text: (model) => String(model.parameters ?? "–"), value: (model) => model.parameters },
  { name: "accuracy", text: (model) => interval(model.accuracy?.mean, model.accuracy?.low, model.accuracy?.high), value: (model) => model.accuracy?.mean },
  { name: "AUC", text: (model) => interval(model.auc?.mean, model.auc?.low, model.auc?.high), value: (model) => model.auc?.mean },
];

const LIMITS = [
  "An attack only searches: a stronger one may find more. Only a certified level is a proof.",
  "Robust is not right: an explanation can hold and still not say why the model decides as it does.",
  "The numbers are about these samples, this explainer, this metric and this size of nudge, and about no others.",
];

// "l2 ≤ 0.1, 0.2; l∞ ≤ 0.05"
const sizes = (rows: Row[]) => [...groupBy(rows, (row) => row.threat.norm).values()].map((same) => `${threatText(same[0].threat)}${distinct(same, (row) => String(row.threat.epsilon)).slice(1).map((size) => `, ${size}`).join("")}`).map(shown).join("; ");

export function method(run: Run): HTMLElement {
  const manifest = run.manifest as Record<string, any>, rows = run.results.rows;
  const most = Math.max(0, ...rows.map((row) => row.most_evaluations ?? 0)), least = Math.min(...rows.map((row) => row.most_evaluations ?? Infinity));
  const flipped = rows.filter((row) => row.flips.samples > 0).length, undefinedValues = rows.reduce((sum, row) => sum + row.undefined, 0), tied = Math.max(0, ...rows.map((row) => Math.max(row.tied_share, row.tied_perturbed ?? 0)));
  const boxes = distinct(rows, (row) => (row.threat.box ? `[${row.threat.box.join(", ")}]` : "none"));
  const lines: [string | HTMLElement, string][] = [
    ["threat", `nudges of size ${sizes(rows)}; ${boxes.every((box) => box === "none") ? "inputs may take any value" : `inputs stay in the box ${boxes.join(", ")}`}; the predicted class stays, with a margin`],
    [term("attack"), distinct(rows, (row) => row.attack).map(shown).join(", ")],
    [term("explanation", "explainer"), distinct(rows, (row) => row.explainer).map(shown).join(", ")],
    ["budget", Number.isFinite(least) ? `${least === most ? most : `${least} to ${most}`} gradient evaluations for the sample that held out longest${most > 1.5 * least ? "; compare models under one attack rather than attacks with each other" : ""}` : "–"],
    ["kept point", distinct(rows, (row) => row.select).map((select) => (select === "worst" ? "the worst for the defender" : select)).join(", ")],
    ["flips on the way", flipped ? `in ${counted(flipped, "row")} some samples changed their class on the way; such points are never kept` : "none"],
    ["ties", tied > 0 ? `in up to ${percent(tied)} of the maps the k-th value is tied with the next` : "none"],
    ["undefined values", undefinedValues ? `${undefinedValues}, left out of the means` : "none"],
  ];
  for (const dataset of manifest.datasets ?? []) {
    const excluded = (dataset.excluded ?? []).filter((entry: { count: number }) => entry.count > 0).map((entry: { reason: string; count: number }) => `${entry.count} left out (${entry.reason})`);
    lines.push([`samples of ${shown(dataset.name)}`, shown([`${dataset.samples}`, ...(excluded.length ? excluded : ["none left out"]), ...(dataset.notes ?? [])].join("; "))]);
  }
  lines.push(["notes", (manifest.notes ?? []).join(" ") || "none"], ["command", shown((manifest.command ?? []).map(quoted).join(" "))], ["started", String(manifest.started ?? "")],
    ["took", `${number(manifest.seconds, 1)} s on ${manifest.hardware?.cpu ?? "?"}, ${manifest.hardware?.threads ?? "?"} threads, ${manifest.hardware?.device ?? ""}`],
    ["seed", String(manifest.seed)], ["versions", `holdfast ${manifest.holdfast}, torch ${manifest.versions?.torch}`]);
  return h("section", { id: "method" }, h("h2", {}, "How it was measured"), table(COLUMNS, run.results.models),
    h("dl", {}, ...lines.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])), h("h3", {}, "What the numbers do not say"), h("ul", {}, ...LIMITS.map((limit) => h("li", {}, limit))));
}
