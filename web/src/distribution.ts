// One value a sample: a mean can hide that half of the samples broke completely.
import type { TopLevelSpec } from "vega-lite";
import { chart } from "./chart";
import type { Run } from "./data";
import { groupBy, h } from "./dom";

interface Point {
  group: string;
  model: string;
  attack: string;
  sample: number;
  value: number;
}

function points(run: Run): Point[] {
  const result: Point[] = [];
  run.samples.value.forEach((value, index) => {
    if (value == null) return;
    const row = run.results.rows[run.samples.row[index]];
    result.push({ group: `${row.dataset}: ${row.explainer}, ${row.metric}`, model: row.model, attack: row.attack, sample: run.samples.sample[index], value });
  });
  return result;
}

function histogram(values: Point[], metric: string): HTMLElement {
  const spec = {
    data: { values },
    facet: {
      row: { field: "model", type: "nominal", sort: null, header: { labelAngle: 0, labelAlign: "left", title: null } },
      column: { field: "attack", type: "nominal", sort: null, header: { title: null } },
    },
    spacing: { row: 8, column: 24 },
    spec: {
      width: 220,
      height: 54,
      mark: { type: "bar", color: "#1f6feb", opacity: 0.85 },
      encoding: {
        x: { field: "value", type: "quantitative", bin: { maxbins: 16 }, title: metric },
        y: { aggregate: "count", type: "quantitative", title: "samples", axis: { tickCount: 2 } },
        tooltip: [{ field: "value", bin: { maxbins: 16 }, title: metric }, { aggregate: "count", title: "samples" }],
      },
    },
  };
  return chart(spec as unknown as TopLevelSpec, `how many samples have which ${metric}`);
}

export function distribution(run: Run): HTMLElement {
  const parts = [...groupBy(points(run), (point) => point.group)].flatMap(([title, values]) => [h("h3", {}, title), histogram(values, title.slice(title.lastIndexOf(", ") + 2))]);
  return h("section", {}, h("h2", {}, "Sample by sample"), ...parts);
}
