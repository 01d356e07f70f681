// Value against epsilon, a panel for each model: the strongest attack as a line with its interval, the others pale, and the
// levels behind it as bands.
import { chart } from "./chart";
import { certified, norms, type Row, type Run } from "./data";
import { distinct, groupBy, h, interval, number, select, shown, shownNames } from "./dom";
import { headline, strongest, topCount } from "./summary";
import { term } from "./terms";

const mean = (values: (number | null | undefined)[]): number | null => {
  const known = values.filter((value): value is number => value != null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

const MOST_PANELS = 6; // of several datasets at once
const WIDEST = 420, ALONE = 1180, TALLEST = 190, AXIS = 70, GAP = 18, APART = 30; // APART: what the gap really takes

// The limits that gates set for the values of a metric themselves.
function limits(run: Run, metric: string): number[] {
  return run.results.gates.filter((gate) => gate.gate.replace(/\s/g, "").startsWith(metric) && /^[<>]=?/.test(gate.gate.replace(/\s/g, "").slice(metric.length))).map((gate) => gate.limit);
}

const panelOf = (row: Row) => JSON.stringify([row.dataset, row.model]);

function panelNames(rows: Row[]): Map<string, string> {
  const several = distinct(rows, (row) => row.dataset).length > 1, panels = [...groupBy(rows, panelOf)];
  const names = shownNames(panels.map(([, [row]]) => (several ? `${row.model} · ${row.dataset}` : row.model)));
  return new Map(panels.map(([key], i) => [key, names[i]]));
}

// The level that is nearer to no likeness from there, the other one from that: no colour lies on another. `end` is where no likeness
// is: 0, or the top of a chart of distances.
function bands(rows: Row[], end: number): { kind: string; from: number; to: number; level: string }[] {
  const levels = ([["chance", mean(rows.map((row) => row.chance))], ["between", mean(rows.map((row) => row.between))]] as [string, number | null][])
    .filter((level): level is [string, number] => level[1] != null).sort((a, b) => Math.abs(a[1] - end) - Math.abs(b[1] - end));
  return levels.map(([kind, to], i) => ({ kind, from: i ? levels[i - 1][1] : end, to, level: number(to) }));
}

// What the axis of values is called.
function valueTitle(rows: Row[]): string {
  const metrics = distinct(rows, (row) => row.metric), k = topCount(metrics[0]);
  if (metrics.length > 1) return metrics.every((metric) => metric.startsWith("top_k(")) ? "share of the top k kept" : "value (1: unchanged)";
  return metrics[0].startsWith("top_k(") ? `share of the top ${k} kept` : shown(metrics[0]);
}

export function curve(run: Run, rows: Row[]): HTMLElement {
  const higher = rows[0].direction === "higher", names = panelNames(rows), titles = [...names.values()];
  const lowest = Math.min(0, ...rows.map((row) => row.low ?? row.mean ?? 0));
  const top = 1.05 * Math.max(...rows.map((row) => Math.max(row.high ?? row.mean ?? 0, row.between ?? 0, row.chance ?? 0)));
  const values: Record<string, unknown>[] = [];
  for (const [key, mine] of groupBy(rows, panelOf)) {
    const at = { panel: names.get(key) };
    for (const band of bands(mine, higher ? lowest : top)) values.push({ ...at, ...band });
    values.push({ ...at, kind: "strongest", epsilon: 0, mean: higher ? 1 : 0, text: `${higher ? 1 : 0}, no nudge` });
    for (const limit of distinct(mine, (row) => row.metric).flatMap((metric) => limits(run, metric))) values.push({ ...at, kind: "gate", mean: limit });
    for (const same of groupBy(mine, (row) => String(row.threat.epsilon)).values()) {
      const worst = strongest(same);
      for (const row of same) {
        if (row.mean == null) continue;
        values.push({ ...at, kind: row === worst ? "strongest" : "other", epsilon: row.threat.epsilon, mean: row.mean, low: row.low, high: row.high, attack: shown(row.attack), text: interval(row.mean, row.low, row.high),
          chance: number(row.chance), between: number(row.between), certified: number(certified(row)) });
      }
      const proven = certified(worst);
      if (proven != null) values.push({ ...at, kind: "certified", epsilon: worst.threat.epsilon, mean: proven });
      if (proven != null && worst.mean != null) values.push({ ...at, kind: "unknown", epsilon: worst.threat.epsilon, from: proven, to: worst.mean });
    }
    if (mine.some((row) => certified(row) != null)) values.push({ ...at, kind: "certified", epsilon: 0, mean: 1 }, { ...at, kind: "unknown", epsilon: 0, from: 1, to: 1 });
  }
  const several = distinct(rows, (row) => row.dataset).length > 1;
  const units = distinct(rows, (row) => row.threat.norm), unit = units.length === 1 ? ` (${norms[units[0]] ?? units[0]})` : "";
  const tooltip = ["attack", "epsilon", "text", "chance", "between", "certified"].map((field) => ({ field, title: field === "text" ? "value" : field }));
  const only = (...kinds: string[]) => [{ filter: { field: "kind", oneOf: kinds } }];
  return chart((room, colours) => {
    const most = Math.max(1, Math.min(titles.length, Math.floor(room / (190 + APART)))), columns = Math.ceil(titles.length / Math.ceil(titles.length / most)); // rows of about the same length
    const width = Math.max(120, Math.min(titles.length === 1 ? ALONE : WIDEST, (room - AXIS + APART) / columns - APART));
    const x = { field: "epsilon", type: "quantitative", title: `size of the nudge: epsilon${unit}`, axis: { tickCount: 4, grid: false } };
    const y = { field: "mean", type: "quantitative", title: valueTitle(rows), scale: { domain: higher ? [lowest, 1.02] : [0, top], nice: false }, axis: higher ? { values: [0, 0.25, 0.5, 0.75, 1], format: ".2~f" } : {} };
    const band = (kind: "between" | "chance") => ({ transform: only(kind), mark: { type: "rect", color: colours[kind], opacity: kind === "chance" ? 0.5 : 0.32 },
      encoding: { x: { value: 0 }, x2: { value: "width" }, y: { field: "from", type: "quantitative" }, y2: { field: "to" }, tooltip: [{ field: "level", title: kind }] } });
    return {
      data: { values },
      facet: { field: "panel", type: "nominal", sort: titles, header: { title: null, labelAnchor: "start", labelLimit: width, labelFontSize: 13 } },
      columns,
      spacing: { row: 12, column: GAP },
      ...(several ? { resolve: { scale: { x: "independent" }, axis: { x: "independent" } } } : {}),
      spec: {
        width, height: Math.max(110, Math.min(TALLEST, width * 0.6)),
        layer: [
          band("between"), band("chance"),
          { transform: only("gate"), mark: { type: "rule", color: colours.ink, strokeWidth: 1, strokeDash: [2, 3] }, encoding: { y, tooltip: [{ field: "mean", title: "gate" }] } },
          { transform: only("other"), mark: { type: "point", shape: "M-1,-1L1,1M1,-1L-1,1", size: 22, strokeWidth: 1.5, color: colours.soft }, encoding: { x, y, tooltip } },
          { transform: only("unknown"), mark: { type: "area", color: colours.certified, opacity: 0.22 }, encoding: { x, y: { ...y, field: "from" }, y2: { field: "to" } } },
          { transform: only("strongest"), mark: { type: "line", color: colours.value, strokeWidth: 2.5 }, encoding: { x, y } },
          { transform: only("certified"), mark: { type: "line", color: colours.certified, strokeWidth: 2.5, strokeDash: [5, 5] }, encoding: { x, y } },
          { transform: only("strongest"), mark: { type: "rule", color: colours.value, strokeWidth: 3, opacity: 0.5 }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" } } },
          { transform: only("strongest"), mark: { type: "point", filled: true, color: colours.value, size: 55, opacity: 1 }, encoding: { x, y, tooltip } },
        ],
      },
    };
  }, `${distinct(rows, (row) => shown(row.metric)).join(" and ")} against epsilon, for each model`);
}

// The legend names lines and bands before anything uses them.
function legend(run: Run, rows: Row[]): HTMLElement {
  const item = (kind: string, ...text: (Node | string)[]) => h("span", { class: "key" }, h("span", { class: kind }), ...text);
  const others = groupBy(rows, (row) => JSON.stringify([panelOf(row), row.threat.epsilon]));
  return h("p", { class: "legend" }, item("dot value", term("value"), " under the strongest attack, 95 % interval", rows[0].direction === "higher" ? " (higher is better)" : " (lower is better)"),
    [...others.values()].some((same) => same.length > 1) ? h("span", { class: "key" }, h("span", { class: "cross" }, "×"), "other attacks") : null,
    rows.some((row) => certified(row) != null) ? item("dash certified", term("certified"), ": proven") : null,
    rows.some((row) => certified(row) != null && row.mean != null) ? item("patch unknown", "between attacked and proven: the worst case lies here") : null,
    rows.some((row) => row.between != null) ? item("patch between", term("between"), ": another input's explanation") : null,
    rows.some((row) => row.chance != null) ? item("patch chance", term("chance"), ": a random one") : null,
    distinct(rows, (row) => row.metric).some((metric) => limits(run, metric).length) ? item("dash gate", "gate") : null);
}

const ALL = ""; // every dataset at once

// For each dataset its headline: the metric that counts features, and the explainer that gave way most.
function headlines(rows: Row[]): Row[] {
  return [...groupBy(rows, (row) => row.dataset).values()].flatMap((some) => {
    const metric = headline(some), mine = some.filter((row) => row.metric === metric), explainer = strongest(mine).explainer;
    return mine.filter((row) => row.explainer === explainer);
  });
}

export function curves(run: Run): HTMLElement {
  const rows = run.results.rows, place = h("div"), first = headlines(rows);
  const keys = { dataset: (row: Row) => row.dataset, explainer: (row: Row) => row.explainer, metric: (row: Row) => row.metric };
  type Key = keyof typeof keys;
  const datasets = distinct(rows, keys.dataset);
  const together = datasets.length > 1 && distinct(first, panelOf).length <= MOST_PANELS && first.every((row) => row.direction === "higher");
  // As in the first verdict.
  const chosen: Record<Key, string> = { dataset: together ? ALL : first[0].dataset, explainer: first[0].explainer, metric: first[0].metric };
  const order = Object.keys(keys) as Key[];
  const show = () => {
    const controls: HTMLElement[] = [];
    let left = rows;
    for (const key of order) {
      const options = distinct(left, keys[key]), all: [string, string][] = key === "dataset" && together ? [[ALL, "all"]] : [];
      if (!options.includes(chosen[key]) && !all.some(([value]) => value === chosen[key])) chosen[key] = key === "metric" ? headline(left) : options[0];
      if (options.length > 1) controls.push(select(key, [...all, ...options.map((option): [string, string] => [option, shown(option)])], chosen[key], (value) => { chosen[key] = value; show(); }));
      if (key === "dataset" && chosen.dataset === ALL && together) {
        left = first;
        break;
      }
      left = left.filter((row) => keys[key](row) === chosen[key]);
    }
    place.replaceChildren(h("div", { class: "bar" }, h("h2", { class: "small" }, left[0].direction === "higher" ? "How much of the explanation is left" : "How far the explanation moves"), ...controls), legend(run, left), curve(run, left));
  };
  show();
  return place;
}
