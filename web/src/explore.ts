// One table of all rows, with filters that the charts below follow.
import { chart, nameAxis, NARROW } from "./chart";
import { certified, threatText, type Row, type Run } from "./data";
import { counted, distinct, fold, groupBy, h, interval, number, percent, select, shown, tellApart } from "./dom";
import { term } from "./terms";
import { series } from "./theme";
import { tableView, type Column } from "./table";
import { componentsTable } from "./components";

const tied = (row: Row): number => Math.max(row.tied_share, row.tied_perturbed ?? 0);

function tiedText(row: Row): string {
  if (!row.distinct_top_sets) return "–";
  const [clean, attacked] = [percent(row.tied_share), percent(row.tied_perturbed ?? row.tied_share)];
  return clean === attacked ? clean : `${clean}, ${attacked}`;
}

const withEnds = (mean: number | null | undefined, ends: [number, number] | null | undefined, digits = 3) => interval(mean, ends?.[0], ends?.[1], digits);

// Columns that tell rows apart are shown where they do; the rest can be chosen.
export function columnsOf(rows: Row[]): Column<Row>[] {
  const several = (key: (row: Row) => string) => distinct(rows, key).length > 1;
  const all: Column<Row>[] = [
    { name: "dataset", text: (row) => row.dataset, extra: !several((row) => row.dataset) },
    { name: "model", text: (row) => row.model, extra: !several((row) => row.model) },
    { name: "explainer", text: (row) => row.explainer, extra: !several((row) => row.explainer) },
    { name: "attack", text: (row) => row.attack },
    { name: "metric", text: (row) => row.metric, extra: !several((row) => row.metric) },
    { name: "epsilon", term: "epsilon", text: (row) => (several((one) => one.threat.norm) ? threatText(row.threat) : String(row.threat.epsilon)), value: (row) => row.threat.epsilon },
    { name: "value [95 %]", term: "value", text: (row) => interval(row.mean, row.low, row.high), value: (row) => row.mean },
    { name: "random points", term: "random points", text: (row) => (row.random ? `${number(row.random.mean)}${row.beaten_by === row.random.attack ? " ⚠" : ""}` : "–"), value: (row) => row.random?.mean, extra: true },
    { name: "chance", term: "chance", text: (row) => (row.chance != null && !row.chance_is_exact ? "~" : "") + number(row.chance), value: (row) => row.chance },
    { name: "between", term: "between", text: (row) => number(row.between), value: (row) => row.between },
    { name: "same class", help: "what clean maps of different samples of one class score", text: (row) => number(row.between_same_class), value: (row) => row.between_same_class, extra: true },
    { name: "lift", term: "lift", text: (row) => number(row.lift), value: (row) => row.lift },
    { name: "lift, 95 %", help: "lift with its 95 % interval", text: (row) => withEnds(row.lift, row.lift_interval), value: (row) => row.lift_interval?.[0], extra: true },
    { name: "effective sets", term: "effective sets", text: (row) => number(row.effective_sets, 1), value: (row) => row.effective_sets },
    { name: "own advantage", term: "own advantage", text: (row) => number(row.own_advantage), value: (row) => row.own_advantage },
    { name: "certified", term: "certified", text: (row) => number(certified(row)), value: certified },
    { name: "robust and specific", help: "holds where surely lift ≥ 0.2, effective sets ≥ 3 and own advantage > 0", text: (row) => row.robust_and_specific ?? "–", extra: true },
    { name: "adjusted", term: "adjusted", text: (row) => number(row.adjusted), value: (row) => row.adjusted, extra: true },
    { name: "specific", term: "specific", text: (row) => number(row.specific), value: (row) => row.specific, extra: true },
    { name: "median", help: "of the values of the samples", text: (row) => number(row.median), value: (row) => row.median, extra: true },
    { name: "distinct sets", help: "different clean top-k sets", text: (row) => String(row.distinct_top_sets || "–"), value: (row) => row.distinct_top_sets || null, extra: true },
    { name: "tied", help: "clean and attacked maps whose top-k set is decided by the order of equal values", text: tiedText, value: (row) => (row.distinct_top_sets ? tied(row) : null), extra: true },
    { name: "swapped", help: "samples with a feature out of the top k on the way", text: (row) => percent(row.swapped_share), value: (row) => row.swapped_share, extra: true },
    { name: "flips", help: "samples whose class flipped on the way (such points are never kept)", text: (row) => percent(row.flips.share), value: (row) => row.flips.share, extra: true },
    { name: "|Δp|", help: "mean change of the predicted class's probability", text: (row) => number(row.sensitivity), value: (row) => row.sensitivity, extra: true },
    { name: "evaluations", help: "gradient evaluations a sample, on average: an attack stops where nothing is left to break", text: (row) => row.evaluations.toFixed(0), value: (row) => row.evaluations, extra: true },
    { name: "norm", text: (row) => row.threat.norm, extra: true },
    { name: "switches", text: (row) => String(row.threat.switches ?? "–"), extra: true },
    { name: "n", help: "samples", text: (row) => String(row.count), value: (row) => row.count, extra: !several((row) => String(row.count)) },
  ];
  return all.filter((column) => !column.value || rows.some((row) => column.value!(row) != null));
}

// What must not be read as robustness.
function warnings(rows: Row[]): HTMLElement | null {
  const lines = rows.flatMap((row) => {
    const subject = shown(`${row.attack} on ${row.model}, ${row.explainer}, ${row.metric}, epsilon ${row.threat.epsilon}`);
    return [
      ...(row.beaten_by ? [`${subject}: ${shown(row.beaten_by)} harms more. Do not read this row as robustness.`] : []),
      ...(row.no_gradient?.samples ? [`${subject}: no gradient to follow in ${counted(row.no_gradient.samples, "sample")} (${row.no_gradient.not_finite} not finite).`] : []),
    ];
  });
  const mostTied = Math.max(0, ...rows.map(tied));
  if (mostTied > 0) lines.push(`In up to ${percent(mostTied)} of the clean or attacked maps the k-th value is tied with the next: there the order of the features decides, not the model.`);
  if (!lines.length) return null;
  return h("details", { class: "warning", ...(lines.length <= 3 ? { open: "" } : {}) } as Record<string, string>, h("summary", {}, `${counted(lines.length, "warning")}: what must not be read as robustness`), h("ul", {}, ...lines.slice(0, 30).map((line) => h("li", {}, line)), lines.length > 30 ? h("li", {}, `and ${lines.length - 30} more`) : null));
}

const labels = (rows: Row[]) => tellApart(rows, [(row) => `ε ${row.threat.epsilon}`, (row) => row.model, (row) => row.explainer, (row) => row.attack, (row) => row.metric, (row) => row.dataset], true);

const MOST_POINTS = 120;

// One line for what differs only in epsilon: the fuller a point, the larger its epsilon.
function levelChart(rows: Row[]): HTMLElement {
  const lines = [...groupBy(rows, (row) => JSON.stringify([row.dataset, row.model, row.explainer, row.attack, row.metric])).values()];
  const names = tellApart(lines.map((same) => same[0]), [(row) => row.model, (row) => row.explainer, (row) => row.attack, (row) => row.metric, (row) => row.dataset], true);
  const values = lines.flatMap((same, i) => {
    const sizes = [...new Set(same.map((row) => row.threat.epsilon))].sort((a, b) => a - b);
    return same.map((row) => ({ ...row, name: names[i], epsilon: row.threat.epsilon, shade: (sizes.indexOf(row.threat.epsilon) + 1) / sizes.length, certified: certified(row), text: interval(row.mean, row.low, row.high) }));
  });
  const tooltip = [{ field: "name", title: "row" }, { field: "epsilon" }, { field: "text", title: "value" }, ...["chance", "between", "certified", "lift", "own_advantage"].map((field) => ({ field, title: field.replace("_", " "), format: ".3f" }))];
  const lowest = Math.min(0, ...rows.map((row) => Math.min(row.low ?? 0, row.mean ?? 0)));
  return chart((room, colours) => {
    const line = nameAxis(names, room, 420), width = Math.max(120, Math.min(900, room - 30 - line.width));
    const y = { field: "name", type: "nominal", title: null, sort: names, axis: line.axis };
    const scale = rows.every((row) => row.direction === "higher") ? { domain: [lowest, 1] } : {};
    const shade = { field: "shade", type: "quantitative", scale: { domain: [0, 1], range: [0.15, 1] }, legend: null };
    const tick = (field: "chance" | "between" | "certified") => ({ mark: { type: "tick", thickness: 3, size: 15, color: colours[field] }, encoding: { y, x: { field, type: "quantitative" }, tooltip } });
    return { data: { values }, width, height: { step: line.step }, layer: [tick("chance"), tick("between"), tick("certified"),
      { mark: { type: "rule", strokeWidth: 3, color: colours.value, opacity: 0.3 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 75, color: colours.card, opacity: 1 }, encoding: { y, x: { field: "mean", type: "quantitative", scale } } },
      { mark: { type: "point", filled: true, size: 75, color: colours.value, stroke: colours.value, strokeWidth: 1.2 }, encoding: { y, x: { field: "mean", type: "quantitative", title: `${distinct(rows, (row) => row.metric).map(shown).join(", ")}${room < NARROW ? "" : ` (${rows[0].direction} is better)`}`, axis: { tickCount: room < NARROW ? 4 : 10 } }, fillOpacity: shade, tooltip } }] };
  }, "values of the rows with chance, between and certified levels");
}

// Marks of the chart above, named.
function levelLegend(rows: Row[]): HTMLElement {
  const key = (kind: string, ...text: (Node | string)[]) => h("span", { class: "key" }, h("span", { class: `tick ${kind}` }), ...text);
  return h("p", { class: "legend" }, h("span", { class: "key" }, h("span", { class: "dot value" }), term("value"), distinct(rows, (row) => String(row.threat.epsilon)).length > 1 ? ", the fuller the larger epsilon" : "", "; line: its 95 % interval"),
    rows.some((row) => row.chance != null) ? key("chance", term("chance")) : null, rows.some((row) => row.between != null) ? key("between", term("between")) : null, rows.some((row) => certified(row) != null) ? key("certified", term("certified")) : null);
}

const PANELS = 12, WIDTH = 210, AXIS = 34, GAP = 18;

// One value a sample: a mean can hide that half of the samples broke completely.
function histograms(run: Run, chosen: number[]): HTMLElement {
  const rows = chosen.map((index) => run.results.rows[index]), names = labels(rows), similarity = rows.every((row) => row.direction === "higher");
  const values = chosen.flatMap((index, i) => run.samples[index].value.filter((value) => value != null).map((value) => ({ panel: names[i], value })));
  const lowest = values.some((point) => point.value! < 0) ? -1 : 0;
  const bin = similarity ? { extent: [lowest, 1.0001], step: 1 / 16 } : { maxbins: 16 };
  return chart((room, colours) => ({
    data: { values },
    facet: { field: "panel", type: "nominal", sort: names, header: { title: null, labelLimit: WIDTH, labelAnchor: "start", labelFontWeight: 500 } },
    columns: Math.max(1, Math.floor((room + GAP) / (WIDTH + AXIS + GAP))),
    spacing: { row: 14, column: GAP },
    spec: { width: WIDTH, height: 54, mark: { type: "bar", color: colours.value },
      encoding: {
        x: { field: "value", type: "quantitative", bin, title: null, axis: similarity ? { values: lowest < 0 ? [-1, 0, 1] : [0, 0.5, 1] } : {} },
        y: { aggregate: "count", type: "quantitative", title: null, axis: { tickCount: 2, tickMinStep: 1, format: "d" } },
        tooltip: [{ field: "value", bin, title: "value" }, { aggregate: "count", title: "samples" }],
      } },
  }), "how many samples have which value");
}

// The share of samples whose top k is still whole after so many iterations of the attack.
function holding(run: Run, chosen: number[]): HTMLElement | null {
  const rows = chosen.map((index) => run.results.rows[index]), names = labels(rows);
  const values = chosen.flatMap((index, i) => {
    const swaps = run.samples[index].first_swap, met = swaps.filter((swap) => swap >= 0).sort((a, b) => a - b);
    if (!met.length) return [];
    return [{ name: names[i], iteration: 0, share: 1 }, ...met.map((iteration, j) => ({ name: names[i], iteration, share: 1 - (j + 1) / swaps.length }))];
  });
  if (!values.length) return null;
  return chart((room, colours) => {
    const legend = { orient: room < NARROW ? "bottom" : "right", columns: 1 };
    return {
      data: { values }, width: Math.max(160, Math.min(620, room - (room < NARROW ? 60 : 380))), height: 200,
      mark: { type: "line", interpolate: "step-after" },
      encoding: { x: { field: "iteration", type: "quantitative", title: "iteration of the attack" }, y: { field: "share", type: "quantitative", title: "samples with all of their top k", axis: { format: "%" }, scale: { domain: [0, 1] } },
      color: { field: "name", type: "nominal", sort: names, title: null, scale: { range: series(colours) }, legend }, strokeDash: { field: "name", type: "nominal", sort: names, title: null, legend } },
    };
  }, "iterations until the first feature leaves the top k");
}

export function explore(run: Run): HTMLElement {
  const rows = run.results.rows;
  const keys: [string, (row: Row) => string][] = [["dataset", (row) => row.dataset], ["model", (row) => row.model], ["explainer", (row) => row.explainer], ["attack", (row) => row.attack], ["metric", (row) => row.metric], ["epsilon", (row) => String(row.threat.epsilon)]];
  const chosen = new Map<string, string>();
  const view = tableView(columnsOf(rows), rows, { tools: true });
  const count = h("span", { class: "note", role: "status" }), below = h("div");
  const open = new Set(["Values between their levels"]);
  const follow = () => {
    const indices = rows.map((_, index) => index).filter((index) => keys.every(([name, key]) => !chosen.has(name) || key(rows[index]) === chosen.get(name)));
    const left = indices.map((index) => rows[index]);
    view.show(left);
    count.textContent = `${left.length} of ${counted(rows.length, "row")}`;
    const cut = (most: number, draw: (some: number[]) => HTMLElement | null) => (): (Node | null)[] => {
      if (!indices.length) return [h("p", {}, "No row is left.")];
      const kinds = [...groupBy(indices, (index) => rows[index].direction).values()];
      return [...(indices.length > most ? [h("p", { class: "note" }, `The first ${most} of ${indices.length} rows; filter to see others.`)] : []), ...kinds.map((some) => draw(some.slice(0, most)))];
    };
    const parts: [string, () => (Node | null)[]][] = [
      ["Values between their levels", () => [levelLegend(left), levelChart(left.slice(0, MOST_POINTS)), left.length > MOST_POINTS ? h("p", { class: "note" }, `The first ${MOST_POINTS} of ${left.length} rows; filter to see others.`) : null]],
      ["Sample by sample", cut(PANELS, (some) => histograms(run, some))],
      ["Iterations until the first swap", cut(PANELS, (some) => holding(run, some) ?? h("p", {}, "No top k gave way."))],
      ...(left.some((row) => row.components?.length) ? [["Who found what in an ensemble", () => [componentsTable(run, indices)]] as [string, () => (Node | null)[]]] : []),
    ];
    below.replaceChildren(...[warnings(left)].filter((part) => part != null), ...parts.map(([title, content]) => {
      const part = fold(title, content, open.has(title));
      part.addEventListener("toggle", () => ((part as HTMLDetailsElement).open ? open.add(title) : open.delete(title)));
      return part;
    }));
  };
  const controls = keys.flatMap(([name, key]) => {
    const options = distinct(rows, key);
    if (options.length < 2) return [];
    return [select(name, [["", "all"], ...options.map((option): [string, string] => [option, shown(option)])], "", (value) => {
      if (value === "") chosen.delete(name);
      else chosen.set(name, value);
      follow();
    })];
  });
  follow();
  return h("section", { id: "explore" }, h("h2", {}, "Explore"), h("p", { class: "note" }, "Every row is one model, explainer, attack, metric and epsilon. Filters act on the table and on the charts below it."),
    h("div", { class: "bar filters" }, ...controls, count), view.element, below);
}

