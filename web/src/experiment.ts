// The page of an experiment: each claim with its verdict in a sentence and its evidence folded below, then every table as a chart
// with the paper's own numbers as marks, and the numbers themselves.
import { chart, nameAxis, NARROW } from "./chart";
import type { ExperimentRun, ResultTable, ResultValue, Verdict } from "./data";
import { distinct, fold, groupBy, h, safely, select, shown, shownNames } from "./dom";
import { quoted } from "./method";
import { card, stateLegend, type Pictures } from "./worst";
import { table, type Column } from "./table";
import { term } from "./terms";
import { glossary } from "./words";

type Row = ResultTable["rows"][number];

const LEVELS: [keyof ResultValue, string, string][] = [
  ["published", "paper", "the number in the paper"],
  ["chance", "chance", "what a random map scores"],
  ["between", "between", "what maps of different samples score"],
  ["specific", "specific", "where the value lies between another sample's map (0) and the own (1)"],
  ["lift", "lift", "value - between"],
  ["effective_sets", "effective sets", "exp of the entropy of the top-k sets; those that did not hold are one set"],
  ["own_advantage", "own advantage", "how much more the own top k moves the prediction than another sample's"],
];

function digits(value: number): string {
  const size = Math.abs(value);
  if (size > 0 && size < 5e-4) return value.toExponential(1);
  return size < 10 ? value.toFixed(3) : value.toPrecision(4);
}
const text = (value: number | null | undefined) => (value == null ? "–" : digits(value));
const withInterval = (mean: number | null, low: number | null, high: number | null) =>
  low == null || high == null ? text(mean) : `${text(mean)} [${text(low)}, ${text(high)}]`;

function columns(result: ResultTable): Column<Row>[] {
  const keys = result.keys.map((name, i): Column<Row> => ({ name, text: (row) => row.keys[i] }));
  const values = result.columns.flatMap((name, i): Column<Row>[] => {
    const cell = (row: Row) => row.values[i];
    const count = result.kinds?.[i] === "count";
    const own: Column<Row> = { name, text: (row) => (count && cell(row).value != null ? String(cell(row).value) : withInterval(cell(row).value, cell(row).low, cell(row).high)), value: (row) => cell(row).value };
    const has = (level: keyof ResultValue) => result.rows.some((row) => cell(row)[level] != null);
    // Specific alone rewards nearly constant maps.
    const levels = LEVELS.filter(([level]) => has(level) && (level !== "specific" || has("lift")))
      .map(([level, head, help]): Column<Row> => ({ name: head, help, text: (row) => text(cell(row)[level]), value: (row) => cell(row)[level], extra: level !== "published" && level !== "between" }));
    return [own, ...levels];
  });
  return [...keys, ...values];
}

const MOST = 36; // lines of a chart

// One column of a table for one value of its first key: points with intervals, and the paper's number as a diamond.
function points(rows: Row[], column: number, name: string, from: number): HTMLElement {
  const names = shownNames(rows.map((row) => row.keys.slice(from).filter((key) => key !== "").join(" · ") || row.keys.join(" · ")));
  const values = rows.map((row, i) => ({ name: names[i], ...row.values[column], text: withInterval(row.values[column].value, row.values[column].low, row.values[column].high) }));
  return chart((room, colours) => {
    const labels = nameAxis(names, room, 380, 18), width = Math.max(120, Math.min(820, room - 30 - labels.width));
    const y = { field: "name", type: "nominal", title: null, sort: names, axis: labels.axis };
    const tooltip = [{ field: "text", title: name }, { field: "published", title: "paper" }, { field: "between" }, { field: "chance" }];
    const tick = (field: "chance" | "between") => ({ mark: { type: "tick", thickness: 2, size: 14, color: colours[field] }, encoding: { y, x: { field, type: "quantitative" } } });
    return { data: { values }, width, height: { step: labels.step }, layer: [tick("chance"), tick("between"),
      { mark: { type: "rule", strokeWidth: 3, color: colours.value, opacity: 0.45 }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 60, color: colours.value, opacity: 1 }, encoding: { y, x: { field: "value", type: "quantitative", title: name, scale: { zero: false }, axis: { tickCount: room < NARROW ? 4 : 10 } }, tooltip } },
      { mark: { type: "point", shape: "diamond", filled: false, size: 90, strokeWidth: 2, color: colours.lost, opacity: 1 }, encoding: { y, x: { field: "published", type: "quantitative" }, tooltip } }] };
  }, `${name}, ours as points and the paper's as diamonds`);
}

// The columns worth a chart: not counts, and the paper's numbers first.
function charted(result: ResultTable): number[] {
  const known = result.columns.map((_, i) => i).filter((i) => result.kinds?.[i] !== "count" && result.rows.some((row) => row.values[i].value != null));
  const published = (i: number) => result.rows.some((row) => row.values[i].published != null);
  return [...known].sort((a, b) => Number(published(b)) - Number(published(a)));
}

// Names of tables and figures begin a heading.
const heading = (name: string) => h("h2", {}, name.charAt(0).toUpperCase() + name.slice(1).replace(/^ig(\d+)$/, "igure $1"));

function tableSection(result: ResultTable): HTMLElement {
  const choices = charted(result), place = h("div"), groups = distinct(result.rows, (row) => row.keys[0] ?? "");
  const split = result.keys.length > 1 && groups.length > 1 && result.rows.length > 8;
  let group = groups[0] ?? "", column = choices[0];
  const show = () => {
    const rows = split ? result.rows.filter((row) => row.keys[0] === group) : result.rows, cut = rows.slice(0, MOST);
    const controls = [
      ...(split ? [select(result.keys[0], groups.map((name) => [name, shown(name)]), group, (value) => { group = value; show(); })] : []),
      ...(choices.length > 1 ? [select("what", choices.map((i) => [String(i), result.columns[i]]), String(column), (value) => { column = Number(value); show(); })] : []),
    ];
    place.replaceChildren(h("div", { class: "bar" }, ...controls), points(cut, column, result.columns[column], split ? 1 : 0), cut.length < rows.length ? h("p", { class: "note" }, `The first ${MOST} of ${rows.length} rows.`) : "");
  };
  if (result.rows.length && choices.length) show();
  const published = result.rows.some((row) => row.values.some((value) => value.published != null));
  if (!result.rows.some((row) => row.values.some((value) => value.value != null))) return h("section", {}, heading(result.name), h("p", {}, result.caption), h("p", { class: "note" }, "There are no numbers yet."));
  const has = (level: keyof ResultValue) => result.rows.some((row) => row.values.some((value) => value[level] != null));
  return h("section", {}, heading(result.name), h("p", {}, result.caption),
    h("p", { class: "legend" }, h("span", { class: "key" }, h("span", { class: "dot value" }), "ours, with its 95 % interval"), published ? h("span", { class: "key" }, h("span", { class: "diamond" }, "◇"), "the paper's number") : null,
      has("between") ? h("span", { class: "key" }, h("span", { class: "tick between" }), term("between"), ": another input's explanation") : null, has("chance") ? h("span", { class: "key" }, h("span", { class: "tick chance" }), term("chance"), ": a random one") : null),
    place, fold(`All numbers (${result.rows.length} rows)`, () => [table(columns(result), result.rows, { tools: true })]));
}

const KINDS: Record<string, string> = { "holds": "holds", "does not hold": "breaks" };

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

// The claim as a sentence with its verdict; the evidence is folded below. `page`: of the paper, where another page links to it.
export function verdictList(list: Verdict[], quick: boolean, page = ""): HTMLElement | null {
  if (!list.length) return null;
  return h("ul", { class: "claims" }, ...list.map((verdict) => {
    const firm = quick ? "quick" : (KINDS[verdict.verdict] ?? "partly"), place = verdict.experiment?.split("/").at(-1);
    const number = verdict.number == null ? "" : `: ${withInterval(verdict.number, verdict.low, verdict.high)}`;
    return h("li", { class: firm }, h("span", { class: `badge ${firm}` }, verdict.verdict),
      h("div", {}, h("p", {}, h("strong", {}, verdict.claim), " ", sentence(verdict.says), page && place ? h("a", { class: "more", href: `${page}#${place}` }, "tables and charts") : null),
        verdict.plain ? h("p", {}, verdict.plain) : null,
        verdict.parts?.length ? h("p", { class: "note" }, "In parts: ", verdict.parts.map((part) => `${part.name}: ${part.verdict}`).join("; "), ".") : null,
        fold(`Evidence: ${firstSentence(verdict.why)}${number}`, () => [h("p", {}, verdict.why)])));
  }));
}

// "2 hold, 5 not decided"
export function verdictCounts(list: Verdict[]): HTMLElement {
  const counts = [...groupBy(list, (verdict) => verdict.verdict)].sort((a, b) => VERDICTS.indexOf(a[0]) - VERDICTS.indexOf(b[0]));
  return h("p", { class: "counts" }, ...counts.map(([verdict, some]) => h("span", {}, h("strong", {}, String(some.length)), " ", h("span", { class: `badge ${KINDS[verdict] ?? "partly"}` }, verdict))));
}
const VERDICTS = ["holds", "holds in part", "not decided", "does not hold"];

// What the number is of: the first sentence, brackets left whole.
function firstSentence(why: string): string {
  let depth = 0;
  const text = why.replace(/^[^]*?Number: /, "").split(/, from the share |, from those /)[0];
  for (let i = 0; i + 1 < text.length; ++i) {
    depth += "([".includes(text[i]) ? 1 : ")]".includes(text[i]) ? -1 : 0;
    if (depth === 0 && ";.:".includes(text[i]) && text[i + 1] === " ") return text.slice(0, i);
  }
  return text.replace(/\.$/, "");
}

function figures(run: ExperimentRun, pictures: Pictures): (HTMLElement | null)[] {
  return run.results.figures.map((figure) => safely(figure.name, () => h("section", {}, heading(figure.name), h("p", {}, figure.caption),
    figure.spec ? chart((room, colours) => inked(fitted(figure.spec as Record<string, unknown>, room), colours.ink), figure.caption) : null,
    figure.panels.length ? stateLegend() : null,
    ...figure.panels.flatMap((panel, i) => [fold(panel.title, () => [h("div", { class: "cards wide" }, ...(run.panels[panel.arrays] ?? []).map((sample) => card(sample, "value", pictures)))], i === 0)]))));
}

// A chart of one view takes no more than the room there is.
const fitted = (spec: Record<string, unknown>, room: number): object => (typeof spec.width === "number" ? { ...spec, width: Math.min(spec.width, room - 60) } : spec);

// What a figure draws in black is in the colour of text: black is not seen on a dark page.
const inked = (spec: object, ink: string): object => JSON.parse(JSON.stringify(spec).replaceAll('{"value":"black"}', `{"value":"${ink}"}`)) as object;

// "dataset mnist, epsilon 0.3, training (batch size 10)"
function inWords(value: unknown): string {
  if (typeof value === "number") return String(Number.isInteger(value) ? value : Number(value.toPrecision(4)));
  if (value === null || typeof value !== "object") return String(value ?? "–");
  if (Array.isArray(value)) return value.map(inWords).join(", ");
  const isObject = (part: unknown) => part !== null && typeof part === "object" && !Array.isArray(part);
  return Object.entries(value).map(([name, part]) => `${name} ${isObject(part) ? `(${inWords(part)})` : inWords(part)}`).join(", ");
}

interface Work { networks: number; cells: number; seconds: number; on: string }

// What all of it took, on every machine that had a part in it: the last run may only have put it together.
const work = (done: Work[]) => done.map((part) =>
  `${part.networks} networks and ${part.cells} cells, ${Math.round(part.seconds)} s of one thread, on ${part.on}`).join("; ");

function notes(all: string[]): HTMLElement | null {
  const list = () => h("ul", { class: "note" }, ...all.map((note) => h("li", {}, note)));
  return all.length > 5 ? fold(`${all.length} notes on the data and the runs`, () => [list()]) : all.length ? list() : null;
}

function facts(run: ExperimentRun): HTMLElement {
  const manifest = run.manifest as Record<string, any>;
  const lines: [string, string][] = [
    ["command", (manifest.command ?? []).map(quoted).join(" ")],
    ["date", String(manifest.started ?? "").slice(0, 10)],
    ["work", work(manifest.work ?? []) || "nothing was trained or measured"],
    ["versions", `holdfast ${manifest.holdfast}, torch ${manifest.versions?.torch}`],
    ...Object.entries(run.results.settings).map(([name, value]): [string, string] => [name, inWords(value)]),
  ];
  return h("section", {}, h("h2", {}, "How it was measured"), notes(run.results.notes),
    h("dl", {}, ...lines.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

// Sections get an anchor and a line in the contents, where there are several.
function withContents(sections: (HTMLElement | null)[], prefix: string): HTMLElement[] {
  const shownSections = sections.filter((section) => section != null), titled = shownSections.filter((section) => section.querySelector("h2"));
  const links = titled.map((section, i) => {
    const title = section.querySelector("h2")!.textContent!;
    section.id = `${prefix}part-${i + 1}`;
    return h("a", { href: `#${section.id}` }, title);
  });
  return [...(links.length > 2 ? [h("nav", { class: "contents", "aria-label": "contents" }, ...links)] : []), ...shownSections];
}

export function experimentPage(run: ExperimentRun, pictures: Pictures, prefix = "", words?: string): HTMLElement {
  const results = run.results, quick = results.scale === "quick";
  return h("main", {}, h("header", {}, h("h1", {}, results.title), h("p", {}, `${results.experiment}, ${results.scale} scale. ${results.paper}`)), glossary(words, false),
    ...withContents([
      results.verdicts.length ? h("section", {}, h("h2", {}, "What becomes of the claims"), quick ? h("p", { class: "warning" }, "Quick scale shows that all of it works. Its verdicts mean little: for firm ones run it with ", h("code", {}, "--scale cpu"), ".") : null, verdictList(results.verdicts, quick)) : null,
      ...results.tables.map((result) => safely(result.name, () => tableSection(result))),
      ...figures(run, pictures), facts(run)], prefix), h("footer", {}, `Made by Holdfast ${run.manifest.holdfast ?? ""}.`));
}
