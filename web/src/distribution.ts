// One value a sample: a mean can hide that half of the samples broke completely.
import type { TopLevelSpec } from "vega-lite";
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
    result.push({ group: `${row.dataset}: ${row.explainer}, ${row.metric}`, model: row.model, attack: row.attack, sample: run.samples.sample[index], value, metric: row.metric, similarity: row.direction === "higher" });
  });
  return result;
}

function histogram(values: Point[], metric: string, similarity: boolean): HTMLElement {
  // Similarities share the axis from 0 to 1, so that models can be compared by eye.
  const bin = similarity ? { extent: [0, 1.0001], step: 1 / 16 } : { maxbins: 16 };
  const spec = {
    data: { values },
    facet: {
      row: { field: "model", type: "nominal", sort: distinct(values, (point) => point.model), header: { labelAngle: 0, labelAlign: "left", title: null } },
      column: { field: "attack", type: "nominal", sort: distinct(values, (point) => point.attack), header: { title: null } },
    },
    spacing: { row: 8, column: 24 },
    spec: {
      width: 220,
      height: 54,
      mark: { type: "bar", color: "#1f6feb", opacity: 0.85 },
      encoding: {
        x: { field: "value", type: "quantitative", bin, title: metric, axis: similarity ? { values: [0, 0.25, 0.5, 0.75, 1], format: ".2f" } : {} },
        y: { aggregate: "count", type: "quantitative", title: "samples", axis: { tickCount: 2 } },
        tooltip: [{ field: "value", bin, title: metric }, { aggregate: "count", title: "samples" }],
      },
    },
  };
  return chart(spec as unknown as TopLevelSpec, `how many samples have which ${metric}`);
}

export function distribution(run: Run): HTMLElement {
  const parts = [...groupBy(points(run), (point) => point.group)].flatMap(([title, values]) => [h("h3", {}, title), histogram(values, values[0].metric, values[0].similarity)]);
  return h("section", {}, h("h2", {}, "Sample by sample"), ...parts);
}
