// Models x threats, from one JSON file a result.
import { chart, nameAxis, NARROW } from "./chart";
import { norms, threatText, type Entry, type Payload } from "./data";
import { counted, distinct, groupBy, h, interval, number, select, shown, tellApart } from "./dom";
import { table, type Column } from "./table";
import { term } from "./terms";

// Rows of several runs may have the same names: then the run tells them apart.
const columns = (several: boolean): Column<Entry>[] => [
  { name: "model", text: (entry) => entry.model },
  { name: "run", text: (entry) => entry.run, extra: !several },
  { name: "epsilon", term: "epsilon", text: (entry) => String(entry.threat.epsilon), value: (entry) => entry.threat.epsilon },
  { name: "explainer", text: (entry) => entry.explainer },
  { name: "strongest attack", text: (entry) => entry.attack + (entry.beaten_by ? " ⚠" : "") },
  { name: "value", term: "value", text: (entry) => interval(entry.value, entry.low, entry.high), value: (entry) => entry.value },
  { name: "between", term: "between", text: (entry) => number(entry.between), value: (entry) => entry.between },
  { name: "lift", term: "lift", text: (entry) => number(entry.lift), value: (entry) => entry.lift },
  { name: "effective sets", term: "effective sets", text: (entry) => number(entry.effective_sets, 1), value: (entry) => entry.effective_sets },
  { name: "own advantage", term: "own advantage", text: (entry) => number(entry.own_advantage), value: (entry) => entry.own_advantage },
  { name: "certified", term: "certified", text: (entry) => number(entry.certified), value: (entry) => entry.certified },
  { name: "robust and specific", text: (entry) => entry.robust_and_specific ?? "–" },
  { name: "accuracy", text: (entry) => number(entry.accuracy), value: (entry) => entry.accuracy },
  { name: "cost of the attack", help: "gradient evaluations a sample", text: (entry) => number(entry.evaluations, 0), value: (entry) => entry.evaluations },
  { name: "n", text: (entry) => String(entry.samples), value: (entry) => entry.samples },
  { name: "file", text: (entry) => `results/${entry.name}.json`, extra: true },
];

// A value alone rewards explanations that are the same for every input: what counts first is the lift.
const order = (a: Entry, b: Entry) => (a.direction === "higher" ? (b.lift ?? b.value ?? -1) - (a.lift ?? a.value ?? -1) : (a.value ?? Infinity) - (b.value ?? Infinity));

const nameOf = (entry: Entry) => `${entry.model} ${entry.explainer}`;

function legend(entries: Entry[]): HTMLElement {
  const certified = entries.some((entry) => entry.certified != null), several = distinct(entries, (entry) => String(entry.threat.epsilon)).length > 1;
  const key = (mark: string, ...text: (Node | string)[]) => h("span", { class: "key" }, h("span", { class: mark }), ...text);
  return h("p", { class: "legend" }, key("dot value", term("value"), ` under the strongest attack, with its 95 % interval (${entries[0].direction} is better)${several ? "; the fuller the point, the larger epsilon" : ""}`), key("tick between", term("between"), ": what another input's explanation scores"),
    key("tick chance", term("chance"), ": what a random map scores"), certified ? key("tick certified", term("certified"), ": what is proven") : null);
}

// One line a model, a point for each epsilon.
function picture(entries: Entry[]): HTMLElement {
  const lines = [...groupBy(entries, lineOf).values()], sizes = sizesOf(entries);
  const names = tellApart(lines.map((same) => same[0]), [(entry) => entry.model, (entry) => entry.explainer, (entry) => entry.run], true);
  const values = lines.flatMap((same, i) => same.map((entry) => ({ ...entry, label: names[i], epsilon: entry.threat.epsilon, shade: (sizes.indexOf(entry.threat.epsilon) + 1) / sizes.length, text: interval(entry.value, entry.low, entry.high) })));
  return chart((room, colours) => {
    const labels = nameAxis(names, room, 420), width = Math.max(120, Math.min(820, room - 30 - labels.width));
    const y = { field: "label", type: "nominal", title: null, sort: names, axis: labels.axis };
    const tick = (field: "chance" | "between" | "certified") => ({ mark: { type: "tick", thickness: 3, size: 15, color: colours[field] }, encoding: { y, x: { field, type: "quantitative" } } });
    const shade = { field: "shade", type: "quantitative", scale: { domain: [0, 1], range: [0.15, 1] }, legend: null };
    const tooltip = [{ field: "epsilon" }, { field: "attack" }, { field: "text", title: "value" }, { field: "between", format: ".3f" }, { field: "lift", format: ".3f" }];
    return { data: { values }, width, height: { step: labels.step }, layer: [tick("chance"), tick("between"), tick("certified"),
      { mark: { type: "rule", strokeWidth: 3, color: colours.value, opacity: 0.35 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 75, color: colours.card, opacity: 1 }, encoding: { y, x: { field: "value", type: "quantitative" } } },
      { mark: { type: "point", filled: true, size: 75, color: colours.value, stroke: colours.value, strokeWidth: 1.2 }, encoding: { y, x: { field: "value", type: "quantitative", title: shown(entries[0].metric), axis: { tickCount: room < NARROW ? 4 : 10 } }, fillOpacity: shade, tooltip } }] };
  }, `models under ${entries[0].metric}`);
}

const lineOf = (entry: Entry) => JSON.stringify([entry.model, entry.explainer, entry.run]);
const sizesOf = (entries: Entry[]) => [...new Set(entries.map((entry) => entry.threat.epsilon))].sort((a, b) => a - b);

// One dataset, metric and norm; the table is of one epsilon at a time, the largest first.
function threatSection(title: string, entries: Entry[], id: string): HTMLElement {
  const sizes = sizesOf(entries), largest = entries.filter((entry) => entry.threat.epsilon === sizes.at(-1)).sort(order);
  // The chart keeps one order: that of the largest epsilon.
  const ranks = new Map(largest.map((entry, i) => [lineOf(entry), i])), rank = (entry: Entry) => ranks.get(lineOf(entry)) ?? largest.length;
  const several = distinct(largest, nameOf).length < largest.length, place = h("div");
  const show = (size: string) => place.replaceChildren(table(columns(several), size === "" ? [...entries].sort(order) : entries.filter((entry) => String(entry.threat.epsilon) === size).sort(order), { tools: true }));
  show(String(sizes.at(-1)));
  return h("section", { id }, h("h2", {}, shown(title)), legend(entries), picture([...entries].sort((a, b) => rank(a) - rank(b))),
    sizes.length > 1 ? h("div", { class: "bar" }, select("epsilon", [["", "all"], ...sizes.map((size): [string, string] => [String(size), threatText({ ...entries[0].threat, epsilon: size })])], String(sizes.at(-1)), show)) : null, place);
}

export function leaderboardPage(payload: Payload): HTMLElement {
  const entries = payload.entries ?? [];
  const groups = [...groupBy(entries, (entry) => `${entry.dataset}: ${entry.metric}, ${norms[entry.threat.norm] ?? entry.threat.norm}`)];
  const threats = distinct(entries, (entry) => JSON.stringify([entry.dataset, entry.metric, entry.threat]));
  return h("main", {}, h("header", {}, h("h1", {}, payload.title), h("p", {}, `${counted(distinct(entries, (entry) => `${entry.model} ${entry.run}`).length, "model")} under ${counted(threats.length, "threat")}. A model is shown under the strongest attack that its run has, in the order of its `, term("lift"), ".")),
    h("nav", { class: "contents", "aria-label": "threats" }, ...groups.map(([title], i) => h("a", { href: `#threat-${i}` }, shown(title))), h("a", { href: "#rule" }, "Add your own")), ...groups.map(([title, some], i) => threatSection(title, some, `threat-${i}`)),
    h("section", { id: "rule" }, h("h2", {}, "Add your own"), h("ol", {},
      h("li", {}, "Audit your model with ", h("code", {}, "gauntlet"), " at its default effort, at least 100 samples and the threat of a table here: ", h("code", {}, "holdfast audit ... --attack gauntlet --out runs/mine"), "."),
      h("li", {}, "Check the run: ", h("code", {}, "holdfast verify runs/mine"), "."),
      h("li", {}, "Make the page again with your run: ", h("code", {}, "holdfast leaderboard RUNS... runs/mine --out site"), ". Each result is one JSON file in ", h("code", {}, "results"), "; send it with the run's folder."))));
}
