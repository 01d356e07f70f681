// One value a sample: a mean can hide that half of the samples broke completely.
import { chart } from "./chart";
import type { Run } from "./data";
import { distinct, groupBy, h } from "./dom";

interface Point {
  group: string;
  model: string;
  attack: string;
  sample: number;
  value: number;
  metric: string;
  similarity: boolean; // higher means more alike
}

function points(run: Run): Point[] {
  const result: Point[] = [];
  run.samples.value.forEach((value, index) => {
    if (value == null) return;
    const row = run.results.rows[run.samples.row[index]];
    result.push({ group: `${row.dataset}: ${row.explainer}, ${row.metric}, ${row.threat.norm} ≤ ${row.threat.epsilon}`, model: row.model, attack: row.attack, sample: run.samples.sample[index], value, metric: row.metric, similarity: row.direction === "higher" });
  });
  return result;
}

const WIDTH = 220, AXIS = 34, GAP = 18; // pixels of a panel

function histogram(values: Point[], metric: string, similarity: boolean): HTMLElement {
  // Similarities share the axis from 0, or from -1 for rank correlations, to 1, so that models can be compared by eye.
  const lowest = values.some((point) => point.value < 0) ? -1 : 0;
  const bin = similarity ? { extent: [lowest, 1.0001], step: 1 / 16 } : { maxbins: 16 };
  // A line of panels for each model, as long as there is room for all of its attacks.
  const attacks = distinct(values, (point) => point.attack).length;
  const panels = values.map((point) => ({ ...point, panel: `${point.model}\n${point.attack}` }));
  const spec = (room: number) => ({
    data: { values: panels },
    facet: { field: "panel", type: "nominal", sort: distinct(panels, (point) => point.panel),
      header: { title: null, labelExpr: "split(datum.label, '\\n')", labelLimit: WIDTH, labelAnchor: "start", labelFontWeight: 500 } },
    columns: Math.max(1, Math.min(attacks, Math.floor((room + GAP) / (WIDTH + AXIS + GAP)))),
    spacing: { row: 14, column: GAP },
    spec: {
      width: WIDTH,
      height: 54,
      mark: { type: "bar", color: "#1f6feb", opacity: 0.85 },
      encoding: {
        x: { field: "value", type: "quantitative", bin, title: metric, axis: similarity ? { values: lowest < 0 ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1], format: ".2f" } : {} },
        y: { aggregate: "count", type: "quantitative", title: null, axis: { tickCount: 2, tickMinStep: 1, format: "d" } },
        tooltip: [{ field: "value", bin, title: metric }, { aggregate: "count", title: "samples" }],
      },
    },
  });
  return chart(spec, `how many samples have which ${metric}`);
}

export function distribution(run: Run): HTMLElement {
  const parts = [...groupBy(points(run), (point) => point.group)].flatMap(([title, values]) => [h("h3", {}, title), histogram(values, values[0].metric, values[0].similarity)]);
  return h("section", {}, h("h2", {}, "Sample by sample"), h("p", {}, "How many samples have which value."), ...parts);
}
