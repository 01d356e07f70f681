// Vega-Lite charts without network and without eval, each on its own: one that fails says so in its place.
import * as vega from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { button, download, h } from "./dom";
import { onThemeChange, series, theme, type Theme } from "./theme";

const config = (colours: Theme) => ({
  font: "system-ui, sans-serif",
  background: "transparent",
  view: { stroke: null },
  axis: { labelColor: colours.soft, titleColor: colours.soft, gridColor: colours.line, domainColor: colours.soft, tickColor: colours.line, labelLimit: 260, titleFontWeight: 500 },
  axisXDiscrete: { labelAngle: -30 },
  header: { labelColor: colours.ink, labelFontWeight: 600, title: null },
  legend: { labelColor: colours.soft, titleColor: colours.soft, labelLimit: 300 },
  title: { color: colours.ink },
  text: { color: colours.ink },
  range: { category: series(colours) },
});

export type Spec = (room: number, colours: Theme) => object;

// Pixels that a chart may be wide without a scrollbar.
function roomOf(holder: HTMLElement): number {
  const width = holder.parentElement?.clientWidth || document.documentElement.clientWidth - 48;
  return Math.min(1320, width) - 26;
}

// Below this, names go above what they name.
export const NARROW = 620;

// About as many pixels as the longest of these takes on an axis.
const labelWidth = (labels: string[], most: number) => Math.min(most, 6.5 * Math.max(0, ...labels.map((label) => label.length)));

// An axis of names: whole in one line where there is room, else in a line for each of their parts.
export function nameAxis(names: string[], room: number, most: number, gap = 22): { axis: object; step: number; width: number } {
  const narrow = room < NARROW, parts = names.map((name) => (narrow ? name.split(" · ") : [name])), lines = Math.max(1, ...parts.map((some) => some.length)), limit = narrow ? 150 : most;
  return { axis: { labelLimit: limit, ...(lines > 1 ? { labelExpr: "split(datum.label, ' · ')", labelLineHeight: 11 } : {}) }, step: Math.max(gap, 11 * lines + 7), width: labelWidth(parts.flat(), limit) };
}

const drawn = new Map<HTMLElement, () => void>();
const redraw = () => drawn.forEach((draw, holder) => (holder.isConnected ? draw() : drawn.delete(holder)));
let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = window.setTimeout(redraw, 60);
});
onThemeChange(redraw);

// On paper a dark chart would be unreadable; the page prints in the light colours.
export function chart(spec: Spec, label: string): HTMLElement {
  const place = h("div", { class: "drawing", role: "img", "aria-label": label });
  let view: vega.View | null = null;
  const file = label.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  const saved = async (kind: "svg" | "png") => view && download(`${file}.${kind}`, await view.toImageURL(kind, 2));
  const tools = h("div", { class: "tools" }, button("SVG", () => void saved("svg"), { title: "save this chart as SVG" }), button("PNG", () => void saved("png"), { title: "save this chart as PNG" }));
  const holder = h("div", { class: "chart" }, place, tools);
  let last = "";
  const draw = () => {
    const colours = theme(), room = roomOf(holder), state = `${room} ${colours.ink}`;
    if (state === last) return;
    last = state;
    try {
      view?.finalize();
      const compiled = compile({ ...spec(room, colours), config: config(colours) } as TopLevelSpec).spec;
      view = new vega.View(vega.parse(compiled, undefined, { ast: true }), { renderer: "svg", container: place, hover: true, expr: expressionInterpreter, loader: noLoader, logLevel: vega.Error } as vega.ViewOptions);
      view.tooltip(showTooltip);
      view.run(); // at once: a printer does not wait
      place.setAttribute("aria-label", label); // Vega puts its own
      place.setAttribute("role", "img");
    } catch (error) {
      fail(error);
    }
  };
  const fail = (error: unknown) => {
    holder.className = "warning";
    holder.replaceChildren(`The chart “${label}” cannot be drawn: ${error instanceof Error ? error.message : String(error)}`);
  };
  // Once it is in the page and its width is known.
  queueMicrotask(() => requestAnimationFrame(draw));
  drawn.set(holder, draw);
  return holder;
}

const noLoader = vega.loader();
noLoader.load = () => Promise.reject(new Error("nothing is loaded"));

let bubble: HTMLElement | null = null;

function showTooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
  bubble?.remove();
  bubble = null;
  if (value == null || value === "") return;
  const rows = Object.entries(value as Record<string, unknown>).map(([name, text]) => h("tr", {}, h("th", {}, name), h("td", {}, String(text))));
  bubble = h("div", { class: "tooltip" }, h("table", {}, ...rows));
  document.body.append(bubble);
  const left = Math.min(event.pageX + 12, document.documentElement.clientWidth - bubble.offsetWidth - 4);
  bubble.style.left = `${Math.max(0, left)}px`;
  bubble.style.top = `${event.pageY + 12}px`;
}
