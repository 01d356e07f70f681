// Value against epsilon, a panel for each model: the strongest attack as a line with its interval, the others pale, and the
// levels behind it as bands.
import { chart } from "./chart";
import { certified, norms, type Row, type Run } from "./data";
import { distinct, groupBy, h, interval, number, select, shown, shownNames } from "./dom";
import { headline, strongest } from "./summary";
import { term } from "./terms";

const mean = (values: (number | null | undefined)[]): number | null => {
  const known = values.filter((value): value is number => value != null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

const WIDEST = 360, TALLEST = 190, AXIS = 40;

export function curve(rows: Row[]): HTMLElement {
  const higher = rows[0].direction === "higher", models = distinct(rows, (row) => row.model), names = shownNames(models);
  const panel = (row: Row) => names[models.indexOf(row.model)];
  const values: Record<string, unknown>[] = [];
  for (const mine of groupBy(rows, (row) => row.model).values()) {
    const at = { panel: panel(mine[0]) };
    if (higher) {
      const levels: [string, number | null][] = [["between", mean(mine.map((row) => row.between))], ["chance", mean(mine.map((row) => row.chance))]];
      for (const [kind, to] of levels) if (to != null) values.push({ ...at, kind, from: 0, to, level: number(to) });
      values.push({ ...at, kind: "strongest", epsilon: 0, mean: 1, text: "1, no nudge" });
    }
    for (const same of groupBy(mine, (row) => String(row.threat.epsilon)).values()) {
      const worst = strongest(same);
      for (const row of same) {
        if (row.mean == null) continue;
        values.push({ ...at, kind: row === worst ? "strongest" : "other", epsilon: row.threat.epsilon, mean: row.mean, low: row.low, high: row.high, attack: shown(row.attack), text: interval(row.mean, row.low, row.high),
          chance: number(row.chance), between: number(row.between), certified: number(certified(row)) });
      }
      const proven = certified(worst);
      if (proven != null) values.push({ ...at, kind: "certified", epsilon: worst.threat.epsilon, mean: proven });
    }
  }
  if (values.some((value) => value.kind === "certified")) names.forEach((name) => values.push({ panel: name, kind: "certified", epsilon: 0, mean: 1 }));
  const lowest = Math.min(0, ...rows.map((row) => row.low ?? row.mean ?? 0));
  const tooltip = ["attack", "epsilon", "text", "chance", "between", "certified"].map((field) => ({ field, title: field === "text" ? "value" : field }));
  const only = (...kinds: string[]) => [{ filter: { field: "kind", oneOf: kinds } }];
  return chart((room, colours) => {
    const columns = Math.max(1, Math.min(names.length, Math.floor(room / (170 + AXIS))));
    const width = Math.max(120, Math.min(names.length === 1 ? 480 : WIDEST, room / columns - AXIS - 14));
    const x = { field: "epsilon", type: "quantitative", title: `epsilon (${norms[rows[0].threat.norm] ?? rows[0].threat.norm})`, axis: { tickCount: 4, grid: false } };
    const y = { field: "mean", type: "quantitative", title: null, scale: higher ? { domain: [lowest, 1.02], nice: false } : {}, axis: higher ? { values: [0, 0.5, 1] } : {} };
    const band = (kind: "between" | "chance") => ({ transform: only(kind), mark: { type: "rect", color: colours[kind], opacity: kind === "chance" ? 0.45 : 0.28 },
      encoding: { x: { value: 0 }, x2: { value: "width" }, y: { field: "from", type: "quantitative" }, y2: { field: "to" }, tooltip: [{ field: "level", title: kind }] } });
    return {
      data: { values },
      facet: { field: "panel", type: "nominal", sort: names, header: { title: null, labelAnchor: "start", labelLimit: width } },
      columns,
      spacing: { row: 12, column: 16 },
      spec: {
        width, height: Math.max(110, Math.min(TALLEST, width * 0.6)),
        layer: [
          band("between"), band("chance"),
          { transform: only("certified"), mark: { type: "area", color: colours.certified, opacity: 0.08, line: { color: colours.certified, strokeDash: [5, 3], opacity: 1 } }, encoding: { x, y } },
          { transform: only("other"), mark: { type: "point", shape: "cross", size: 36, color: colours.soft, opacity: 0.8 }, encoding: { x, y, tooltip } },
          { transform: only("strongest"), mark: { type: "line", color: colours.value, strokeWidth: 2 }, encoding: { x, y } },
          { transform: only("strongest"), mark: { type: "rule", color: colours.value, strokeWidth: 3, opacity: 0.5 }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" } } },
          { transform: only("strongest"), mark: { type: "point", filled: true, color: colours.value, size: 55, opacity: 1 }, encoding: { x, y, tooltip } },
        ],
      },
    };
  }, `${shown(rows[0].metric)} against epsilon, for each model`);
}

// The legend names the bands before anything uses them.
function legend(rows: Row[]): HTMLElement {
  const item = (kind: string, ...text: (Node | string)[]) => h("span", { class: "key" }, h("span", { class: `dot ${kind}` }), ...text);
  return h("p", { class: "legend" }, item("value", term("value"), " under the strongest attack, with its 95 % interval; crosses: other attacks"),
    rows.some((row) => row.between != null) ? item("between", "up to ", term("between"), ": what another input's explanation scores") : null,
    rows.some((row) => row.chance != null) ? item("chance", "up to ", term("chance"), ": what a random map scores") : null,
    rows.some((row) => certified(row) != null) ? item("certified", term("certified"), ": what is proven, dashed") : null);
}

export function curves(run: Run): HTMLElement {
  const rows = run.results.rows, place = h("div");
  const keys = { dataset: (row: Row) => row.dataset, explainer: (row: Row) => row.explainer, metric: (row: Row) => row.metric };
  type Key = keyof typeof keys;
  // As in the first verdict: its dataset and metric, and the explainer that gave way most.
  const first = rows.filter((row) => row.dataset === rows[0].dataset && row.metric === headline(rows.filter((row) => row.dataset === rows[0].dataset)));
  const chosen: Record<Key, string> = { dataset: rows[0].dataset, explainer: strongest(first).explainer, metric: first[0].metric };
  const order = Object.keys(keys) as Key[];
  const show = () => {
    const controls: HTMLElement[] = [];
    let left = rows;
    for (const key of order) {
      const options = distinct(left, keys[key]);
      if (!options.includes(chosen[key])) chosen[key] = key === "metric" ? headline(left) : options[0];
      if (options.length > 1) controls.push(select(key, options.map((option) => [option, shown(option)]), chosen[key], (value) => { chosen[key] = value; show(); }));
      left = left.filter((row) => keys[key](row) === chosen[key]);
    }
    place.replaceChildren(h("div", { class: "bar" }, ...controls), curve(left), legend(left));
  };
  show();
  return place;
}
