// Every value between its levels: chance on the left, identical on the right, and what another sample would score.
import type { TopLevelSpec } from "vega-lite";
import { chart } from "./chart";
import type { Row, Run } from "./data";
import { groupBy, h, number, percent } from "./dom";

function levelChart(rows: Row[]): HTMLElement {
  const values = rows.map((row) => ({ ...row, text: `${number(row.mean)} [${number(row.low)}, ${number(row.high)}]` }));
  const y = { field: "attack", type: "nominal", title: null, sort: null } as const;
  const tooltip = [
    { field: "text", title: "value" },
    { field: "chance", title: "chance", format: ".3f" },
    { field: "between", title: "between", format: ".3f" },
    { field: "specific", title: "specific", format: ".3f" },
  ];
  const mark = (field: string, colour: string, extra: object) => ({
    mark: { type: "tick", thickness: 2, size: 16, color: colour, ...extra },
    encoding: { y, x: { field, type: "quantitative" }, tooltip },
  });
  const spec = {
    data: { values },
    facet: { row: { field: "model", type: "nominal", sort: null, header: { labelAngle: 0, labelAlign: "left", labelOrient: "left", title: null } } },
    spacing: 6,
    spec: {
      width: 460,
      height: { step: 20 },
      layer: [
        mark("chance", "#a3adb8", {}),
        mark("between", "#d9822b", {}),
        { mark: { type: "rule", strokeWidth: 3, color: "#1f6feb", opacity: 0.45 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
        {
          mark: { type: "point", filled: true, size: 70, color: "#1f6feb" },
          encoding: { y, x: { field: "mean", type: "quantitative", title: rows[0].metric, scale: rows[0].direction === "higher" ? { domain: [0, 1] } : {} }, tooltip },
        },
      ],
    },
  };
  return chart(spec as unknown as TopLevelSpec, `${rows[0].metric} of each model and attack with chance and between levels`);
}

const COLUMNS: [string, string, (row: Row) => string][] = [
  ["model", "", (row) => row.model],
  ["attack", "", (row) => row.attack],
  ["value", "mean over samples with its 95 % interval", (row) => `${number(row.mean)} [${number(row.low)}, ${number(row.high)}]`],
  ["chance", "what a map in random order scores", (row) => number(row.chance)],
  ["between", "what clean maps of different samples score", (row) => number(row.between)],
  ["adjusted", "(value - chance) / (1 - chance)", (row) => number(row.adjusted)],
  ["specific", "(value - between) / (1 - between): 0 when an attacked map is as far from its own as another sample's", (row) => number(row.specific)],
  ["distinct sets", "different clean top-k sets", (row) => String(row.distinct_top_sets)],
  ["swapped", "samples with a feature out of the top k on the way", (row) => percent(row.swapped_share)],
  ["flips", "samples whose class flipped on the way (such points are never kept)", (row) => percent(row.flips.share)],
  ["|Δp|", "mean change of the predicted class's probability", (row) => number(row.sensitivity)],
  ["evaluations", "gradient evaluations a sample", (row) => row.evaluations.toFixed(0)],
  ["n", "samples", (row) => String(row.count)],
];

function levelTable(rows: Row[]): HTMLElement {
  const head = COLUMNS.map(([name, title]) => h("th", title ? { title } : {}, name));
  const body = rows.map((row) => h("tr", {}, ...COLUMNS.map(([, , text], column) => h("td", column < 2 ? {} : { class: "number" }, text(row)))));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
}

export function levels(run: Run): HTMLElement {
  const parts: HTMLElement[] = [];
  for (const [title, rows] of groupBy(run.results.rows, (row) => `${row.dataset}: ${row.explainer}, ${row.threat.norm} ≤ ${row.threat.epsilon}, ${row.metric}`)) {
    parts.push(h("h3", {}, title), levelChart(rows), levelTable(rows));
    const tied = Math.max(...rows.map((row) => row.tied_share));
    if (tied > 0) parts.push(h("p", { class: "warning" }, `In up to ${percent(tied)} of the samples the k-th value is tied with the next: there the order of the features decides, not the model.`));
  }
  return h("section", {}, h("h2", {}, "How far explanations moved"),
    h("p", { class: "legend" }, h("span", { class: "dot value" }), "value with 95 % interval  ", h("span", { class: "dot chance" }), "chance: a random map  ",
      h("span", { class: "dot between" }), "between: another sample's map. A value at or left of “between” means that nothing specific to the sample is left."),
    ...parts);
}
