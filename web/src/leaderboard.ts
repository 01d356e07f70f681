// Models x threats, from one JSON file a result.
import { chart, labelWidth, NARROW } from "./chart";
import { threatText, type Entry, type Payload } from "./data";
import { distinct, fold, groupBy, h, interval, number, shown, tellApart } from "./dom";
import { table, type Column } from "./table";

// Rows of several runs may have the same names: then the run tells them apart.
const columns = (several: boolean): Column<Entry>[] => [
  { name: "model", text: (entry) => entry.model },
  { name: "run", text: (entry) => entry.run, extra: !several },
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
  const certified = entries.some((entry) => entry.certified != null);
  const key = (mark: string, text: string) => h("span", { class: "key" }, h("span", { class: `dot ${mark}` }), text);
  return h("p", { class: "legend" }, key("value", "value under the strongest attack, with its 95 % interval"), key("between", "between: what another input's explanation scores"),
    key("chance", "chance: what a random map scores"), certified ? key("certified", "certified: what is proven") : null);
}

function picture(entries: Entry[]): HTMLElement {
  const names = tellApart(entries, [(entry) => entry.model, (entry) => entry.explainer, (entry) => entry.run]), values = entries.map((entry, i) => ({ ...entry, label: names[i], text: interval(entry.value, entry.low, entry.high) }));
  return chart((room, colours) => {
    const limit = room < NARROW ? 140 : 340, width = Math.max(120, Math.min(520, room - 30 - labelWidth(names, limit)));
    const y = { field: "label", type: "nominal", title: null, sort: names, axis: { labelLimit: limit } };
    const tick = (field: "chance" | "between" | "certified") => ({ mark: { type: "tick", thickness: 3, size: 14, color: colours[field] }, encoding: { y, x: { field, type: "quantitative" } } });
    return { data: { values }, width, height: { step: 20 }, layer: [tick("chance"), tick("between"), tick("certified"),
      { mark: { type: "rule", strokeWidth: 3, color: colours.value, opacity: 0.45 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 70, color: colours.value, opacity: 1 }, encoding: { y, x: { field: "value", type: "quantitative", title: shown(entries[0].metric) }, tooltip: [{ field: "text", title: "value" }, { field: "between", format: ".3f" }, { field: "lift", format: ".3f" }] } }] };
  }, `models under ${entries[0].metric}`);
}

export function leaderboardPage(payload: Payload): HTMLElement {
  const entries = payload.entries ?? [];
  const threats = groupBy(entries, (entry) => `${entry.dataset}: ${entry.metric}, ${threatText(entry.threat)}`);
  const sections = [...threats].map(([title, some], i) => {
    const sorted = [...some].sort(order);
    return h("section", { id: `threat-${i}` }, h("h2", {}, shown(title)), picture(sorted), legend(sorted), table(columns(distinct(sorted, nameOf).length < sorted.length), sorted, { tools: true }));
  });
  return h("main", {}, h("header", {}, h("h1", {}, payload.title), h("p", {}, `${distinct(entries, (entry) => entry.model).length} models under ${threats.size} threats. A model is shown under the strongest attack that its run has, in the order of its lift.`)),
    h("nav", { class: "contents", "aria-label": "threats" }, ...[...threats.keys()].map((title, i) => h("a", { href: `#threat-${i}` }, shown(title)))), ...sections,
    h("section", { id: "rule" }, h("h2", {}, "Add your own"), fold("The rule", () => [h("ol", {},
      h("li", {}, "Audit your model with ", h("code", {}, "gauntlet"), " at its default effort, at least 100 samples and the threat of a table here: ", h("code", {}, "holdfast audit ... --attack gauntlet --out runs/mine"), "."),
      h("li", {}, "Check the run: ", h("code", {}, "holdfast verify runs/mine"), "."),
      h("li", {}, "Make the page again with your run: ", h("code", {}, "holdfast leaderboard RUNS... runs/mine --out site"), ". Each result is one JSON file in ", h("code", {}, "results"), "; send it with the run's folder."))], true)));
}
