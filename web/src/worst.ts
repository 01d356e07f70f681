// The samples whose explanation moved most, one at a time and large: pictures, tables, graphs and sentences.
import { threatText, type Bar, type Run, type State, type WorstSample } from "./data";
import { topCount } from "./summary";
import { button, h, number, percent, shown, shownNames, significant, svg, tellApart } from "./dom";

export type Pictures = string[]; // data URLs, by their places

const TITLES: Record<string, string> = { input: "input", nudge: "nudge, amplified", perturbed: "nudged input", change: "top k: kept, lost, new", before: "explanation before", after: "explanation after" };

// A picture as large as the window, with its pixels as squares.
function zoom(source: string, title: string): void {
  const dialog = h("dialog", { class: "zoom", "aria-label": title }, h("img", { src: source, alt: title }), h("p", {}, title, " ", button("close", () => dialog.close()))) as HTMLDialogElement;
  dialog.addEventListener("click", (event) => event.target !== dialog.querySelector("p") && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function figure(source: string, title: string, note = ""): HTMLElement {
  const open = button("", () => zoom(source, title), { class: "picture", title: "click to enlarge" });
  open.append(h("img", { src: source, alt: title }));
  return h("figure", {}, open, h("figcaption", {}, title, note ? h("span", { class: "note" }, ` (${note})`) : null));
}

// One picture over the other, cut where the slider stands.
function wipe(before: string, after: string, title: string): HTMLElement {
  const over = h("img", { src: after, alt: `${title} after`, class: "over" }) as HTMLImageElement;
  const slider = h("input", { type: "range", min: "0", max: "100", value: "50", "aria-label": `${title}: from before to after` }) as HTMLInputElement;
  const cut = () => (over.style.clipPath = `inset(0 0 0 ${100 - Number(slider.value)}%)`);
  slider.addEventListener("input", cut);
  cut();
  return h("figure", { class: "wipe" }, h("div", { class: "layers" }, h("img", { src: before, alt: `${title} before` }), over),
    h("figcaption", {}, `${title}: before ↔ after`), slider);
}

// From nothing to the largest share of a map that is drawn: both maps have the same colours.
function colourBar(sample: WorstSample): HTMLElement {
  const most = sample.share == null ? "the largest" : `${significant(100 * sample.share, 2)} % of the whole`;
  return h("div", { class: "colour-bar" }, h("p", {}, "How much a ", sample.edges ? "pair of nodes" : "pixel", " counts, in both explanations:"), h("p", {}, "0 ", h("span", { class: "heat", role: "img", "aria-label": "colours from dark to bright" }), ` ${most}`));
}

function images(sample: WorstSample, pictures: Pictures): HTMLElement[] {
  const of = (name: string) => (sample.pictures?.[name] == null ? null : pictures[sample.pictures[name]]);
  const notes: Record<string, string> = { nudge: sample.nudge ? `full colour: ±${significant(sample.nudge, 2)}` : "" };
  const shownPictures = Object.keys(TITLES).flatMap((name) => (of(name) ? [figure(of(name)!, TITLES[name], notes[name])] : []));
  const [before, after] = [of("before"), of("after")];
  if (before && after) shownPictures.push(wipe(before, after, "explanation"));
  return [h("div", { class: sample.sides === 2 ? "pictures pairs" : "pictures" }, ...shownPictures, colourBar(sample))];
}

// The edges of both top sets between nodes on a circle.
function nodeLink(sample: WorstSample): HTMLElement | null {
  if (!sample.edges) return null;
  const { nodes, sides } = sample.edges, size = 440, radius = 190, middle = size / 2;
  const place = (node: number) => [middle + radius * Math.sin((2 * Math.PI * node) / nodes), middle - radius * Math.cos((2 * Math.PI * node) / nodes)];
  const drawings = sides.map((edges, side) => {
    const touched = [...new Set(edges.flatMap(([i, j]) => [i, j]))].sort((a, b) => a - b), room = Math.ceil((nodes * 12) / (2 * Math.PI * radius));
    // Numbers that would lie over each other are left to the edges' titles.
    let last = -room;
    const labelled = new Set(touched.filter((node) => node - last >= room && node + room <= nodes + touched[0] && (last = node, true)));
    const lines = edges.map(([i, j, state]) => {
      const [[x1, y1], [x2, y2]] = [place(i), place(j)];
      return svg("path", { d: `M${x1},${y1} Q${middle},${middle} ${x2},${y2}`, class: `edge stroke-${state}` }, svg("title", {}, `${i} – ${j}: ${state}`));
    });
    const dots = touched.flatMap((node) => {
      const [x, y] = place(node), far = 1.08;
      return [svg("circle", { cx: x, cy: y, r: 3, class: "fill-ink" }, svg("title", {}, `node ${node}`)),
        labelled.has(node) ? svg("text", { x: middle + (x - middle) * far, y: middle + (y - middle) * far + 3, "text-anchor": "middle" }, String(node)) : null];
    });
    return h("figure", {}, svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "nodelink", role: "img", "aria-label": "edges of the top k before and after" }, svg("circle", { cx: middle, cy: middle, r: radius, class: "rim" }), ...lines, ...dots),
      h("figcaption", {}, sides.length > 1 ? `${side === 0 ? "left" : "right"} graph: edges of the top k` : "edges of the top k between nodes"));
  });
  return h("div", { class: "pictures pairs" }, ...drawings);
}

// One line a feature: what it was, what it became, and how much it counts before and after on one scale.
function bars(values: Bar[]): HTMLElement {
  const names = shownNames(values.map((bar) => bar.name)), most = Math.max(1e-12, ...values.flatMap((bar) => [bar.before, bar.after]));
  const length = (share: number) => `${(100 * share) / most}%`;
  const now = values.map((bar) => h("span", { class: `bar-now ${bar.state}` }));
  const lines = values.map((bar, i) => {
    const ghost = h("span", { class: "bar-before" }), changed = bar.value !== bar.moved;
    ghost.style.width = length(bar.before);
    return h("tr", { class: bar.state }, h("th", { scope: "row" }, names[i]), h("td", { class: "number" }, bar.value), h("td", { class: changed ? "number changed" : "number" }, changed ? `→ ${bar.moved}` : "same"),
      h("td", { class: "bars" }, ghost, now[i]), h("td", { class: "number" }, percent(bar.before)), h("td", { class: "number" }, percent(bar.after)), h("td", {}, bar.state === "other" ? "" : bar.state));
  });
  const slider = h("input", { type: "range", min: "0", max: "100", value: "100", "aria-label": "share of the explanation: from before to after" }) as HTMLInputElement;
  const move = () => values.forEach((bar, i) => (now[i].style.width = length(bar.before + (Number(slider.value) / 100) * (bar.after - bar.before))));
  slider.addEventListener("input", move);
  move();
  const head = ["feature", "value", "nudged to", "share of the explanation: pale before, full after", "before", "after", "top k"].map((text, i) => h("th", { scope: "col", ...([1, 2, 4, 5].includes(i) ? { class: "number" } : {}) }, text));
  return h("div", { class: "scroll", tabindex: "0" }, h("label", { class: "choice" }, h("span", {}, "before"), slider, h("span", {}, "after")), h("table", { class: "aligned" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...lines)));
}

// A sentence twice: the darker a word, the more it counts, on one scale for both. An attack moves the numbers of a word, not the word.
function sentence(words: NonNullable<WorstSample["words"]>): HTMLElement {
  const most = Math.max(1e-12, ...words.flatMap((word) => [word.before, word.after]));
  const line = (title: string, key: "before" | "after") => h("p", { class: "sentence" }, h("span", { class: "note" }, `${title}: `), ...words.flatMap((word) => {
    const element = h("span", { class: `word ${word.state}`, title: `${percent(word[key])} of the map${word.state === "other" ? "" : `, ${word.state}`}` }, shown(word.text));
    element.style.setProperty("--weight", `${Math.round((80 * word[key]) / most)}%`);
    return [element, " "];
  }));
  return h("div", {}, line("before", "before"), line("after", "after"), h("p", { class: "note" }, "The darker a word, the more it counts. The line below a word says whether it is in the top k."));
}

export function stateLegend(): HTMLElement {
  const names: Record<Exclude<State, "other">, string> = { kept: "in the top k before and after", lost: "lost", new: "new" };
  return h("p", { class: "legend" }, ...Object.entries(names).map(([state, text]) => h("span", { class: "key" }, h("span", { class: `dot ${state}` }), text)));
}

// "predicted seven, which is wrong: the label is one"
function prediction(sample: WorstSample): string {
  const predicted = `predicted ${shown(sample.prediction)}, before and after`;
  if (sample.label == null) return predicted;
  return sample.label === sample.prediction ? `${predicted} (right)` : `${predicted} (wrong: it is ${shown(sample.label)})`;
}

// What is left, in the words of the verdict where the metric counts features.
function left(sample: WorstSample, metric: string): (Node | string)[] {
  const k = topCount(metric);
  return sample.value == null || !metric.startsWith("top_k(") || Number.isNaN(k) ? [`${shown(metric)} `, h("strong", {}, number(sample.value))] : ["keeps ", h("strong", {}, number(sample.value * k, 0)), ` of its top ${k} features`];
}

export function card(sample: WorstSample, metric: string, pictures: Pictures): HTMLElement {
  return h("article", { class: "card sample" },
    h("div", { class: "facts" }, h("h4", {}, `sample ${sample.sample}`), h("span", {}, ...left(sample, metric)), h("span", { class: "note" }, prediction(sample))),
    ...(sample.pictures ? images(sample, pictures) : []), nodeLink(sample), sample.words ? sentence(sample.words) : null, sample.bars ? bars(sample.bars) : null);
}

// The row to start with: the one that moved furthest on the scale from chance to identical.
function mostBroken(run: Run, indices: number[]): number {
  const left = (index: number) => {
    const row = run.results.rows[index];
    return (row.adjusted ?? row.mean ?? Infinity) * (row.direction === "higher" ? 1 : -1);
  };
  return indices.reduce((best, index) => (left(index) < left(best) ? index : best));
}

export function worst(run: Run, pictures: Pictures): HTMLElement | null {
  const indices = run.results.rows.map((_, index) => index).filter((index) => run.worst[index]?.length);
  if (!indices.length) return null;
  const place = h("div"), count = h("span", { role: "status" });
  const texts = tellApart(indices.map((index) => run.results.rows[index]), [(row) => threatText(row.threat), (row) => row.model, (row) => row.explainer, (row) => row.attack, (row) => row.metric, (row) => row.dataset]);
  const choice = h("select", { "aria-label": "row" }, ...indices.map((index, i) => h("option", { value: String(index) }, texts[i]))) as HTMLSelectElement;
  let at = 0;
  const samples = () => run.worst[Number(choice.value)];
  const show = () => {
    count.textContent = `${at + 1} of ${samples().length}`;
    place.replaceChildren(card(samples()[at], run.results.rows[Number(choice.value)].metric, pictures));
  };
  const step = (by: number) => {
    at = (at + by + samples().length) % samples().length;
    show();
  };
  choice.value = String(mostBroken(run, indices));
  choice.addEventListener("change", () => { at = 0; show(); });
  show();
  const section = h("section", { id: "worst", tabindex: "0" }, h("h2", {}, "Worst samples"),
    h("p", {}, "The samples whose explanation moved most. The prediction is the same before and after. The arrow keys go from sample to sample."),
    h("div", { class: "bar" }, h("label", { class: "choice" }, h("span", {}, "row"), choice), button("← previous", () => step(-1)), count, button("next →", () => step(1))), stateLegend(), place,
    run.left_out ? h("p", { class: "note" }, `${run.left_out} more are in the run's arrays folder: the page would have become too large.`) : null);
  document.addEventListener("keydown", (event) => {
    const typing = (event.target as Element).closest?.("input, select, textarea, dialog, .scroll");
    if (typing || event.altKey || event.ctrlKey || event.metaKey || !section.offsetParent) return;
    const { top, bottom } = section.getBoundingClientRect();
    if (bottom < 0 || top > window.innerHeight) return;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      step(event.key === "ArrowRight" ? 1 : -1);
    }
  });
  return section;
}
