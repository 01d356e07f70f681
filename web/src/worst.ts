// The samples whose explanation moved most, side by side.
import { chart, labelWidth } from "./chart";
import type { Bar, Run, WorstSample } from "./data";
import { h, number } from "./dom";

const STATE_COLOURS = { domain: ["kept", "lost", "new", "other"], range: ["#2f9e64", "#d6453d", "#1f6feb", "#b9c2cc"] };

const LABELS = 140; // pixels of names

// Pixels inside a card: as many of at least 420 side by side as the page has room for (style.css).
function insideCard(room: number): number {
  const page = room + 26, gap = 14, columns = Math.max(1, Math.floor((page + gap) / (420 + gap)));
  return (page - gap * (columns - 1)) / columns - 34;
}

// Bars before (up) and after (down), in the order of the clean importance.
function bars(values: Bar[]): HTMLElement {
  const panel = (room: number, field: string, title: string, labels: boolean) => ({
    width: Math.max(60, Math.min(170, (insideCard(room) - labelWidth(values.map((bar) => bar.name), LABELS) - 50) / 2)),
    height: { step: 15 },
    mark: { type: "bar" },
    encoding: {
      y: { field: "name", type: "nominal", sort: null, title: null, axis: labels ? { labelLimit: LABELS } : null },
      x: { field, type: "quantitative", title, axis: { tickCount: 3 } },
      color: { field: "state", type: "nominal", scale: STATE_COLOURS, legend: null },
      tooltip: [{ field: "name", title: "feature" }, { field: "value", title: "input", format: ".3f" }, { field: "moved", title: "perturbed input", format: ".3f" },
        { field: "before", title: "importance", format: ".3f" }, { field: "after", title: "importance after", format: ".3f" }],
    },
  });
  const spec = (room: number) => ({ data: { values }, hconcat: [panel(room, "before", "before", true), panel(room, "after", "after", false)], spacing: 10 });
  return chart(spec, "importance of the features before and after the attack");
}

export function card(sample: WorstSample, metric: string): HTMLElement {
  const label = sample.label == null ? "" : `, label ${sample.label}`;
  const pictures = sample.pictures?.map((picture) =>
    h("figure", {}, h("img", { src: picture.data, alt: picture.title }), h("figcaption", {}, picture.title)));
  return h("article", { class: "card" },
    h("h4", {}, `sample ${sample.sample}`), h("p", {}, `predicted ${sample.prediction}${label}; ${metric} ${number(sample.value)}`),
    pictures ? h("div", { class: "pictures" }, ...pictures) : null, sample.bars ? bars(sample.bars) : null);
}

// The row to start with: the one that moved furthest on the scale from chance to identical.
function mostBroken(run: Run): number {
  const left = (index: number) => {
    const row = run.results.rows[index];
    return (row.adjusted ?? row.mean ?? Infinity) * (row.direction === "higher" ? 1 : -1);
  };
  const shown = run.results.rows.map((_, index) => index).filter((index) => run.worst[index]?.length);
  return shown.reduce((best, index) => (left(index) < left(best) ? index : best));
}

export function worst(run: Run): HTMLElement {
  const place = h("div", { class: "cards wide" });
  const choice = h("select", { "aria-label": "model and attack" }) as HTMLSelectElement;
  run.results.rows.forEach((row, index) => {
    if (run.worst[index]?.length) choice.append(h("option", { value: String(index) }, `${row.dataset} · ${row.model} · ${row.explainer} · ${row.attack} ${row.threat.norm} ≤ ${row.threat.epsilon} · ${row.metric}`));
  });
  const show = () => {
    const index = Number(choice.value);
    place.replaceChildren(...run.worst[index].map((sample) => card(sample, run.results.rows[index].metric)));
  };
  if (!choice.options.length) return h("section", {});
  choice.value = String(mostBroken(run));
  choice.addEventListener("change", show);
  show();
  return h("section", {}, h("h2", {}, "The worst samples"), h("p", {}, "The prediction is the same before and after. ", choice),
    h("p", { class: "legend" }, h("span", { class: "dot kept" }), "in the top k before and after  ", h("span", { class: "dot lost" }), "lost  ", h("span", { class: "dot new" }), "new"), place);
}
