// Vega-Lite charts without network, eval or a toolbar.
import * as vega from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { h } from "./dom";

const config = {
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { labelColor: "#44505c", titleColor: "#44505c", gridColor: "#e6e9ed", domainColor: "#b9c2cc", labelLimit: 260, titleFontWeight: 500 },
  header: { labelColor: "#1d2730", labelFontWeight: 600, title: null },
  legend: { labelColor: "#44505c", titleColor: "#44505c" },
} as const;

// Pixels that a chart may be wide without a scrollbar: of the page, its padding and the chart's (style.css).
const room = () => Math.min(1320, document.documentElement.clientWidth - 48) - 26;

// Below this, names go above what they name.
export const NARROW = 620;

// About as many pixels as the longest of these takes on an axis.
export const labelWidth = (labels: string[], most: number) => Math.min(most, 6.5 * Math.max(0, ...labels.map((label) => label.length)));

// A chart that depends on the width there is, is drawn again when that changes.
export function chart(spec: TopLevelSpec | ((room: number) => object), label: string): HTMLElement {
  const holder = h("div", { class: "chart", role: "img", "aria-label": label });
  let view: vega.View | null = null;
  const draw = () => {
    view?.finalize();
    const compiled = compile({ ...(typeof spec === "function" ? spec(room()) : spec), config } as TopLevelSpec).spec;
    view = new vega.View(vega.parse(compiled), { renderer: "svg", container: holder, hover: true });
    view.tooltip(showTooltip).runAsync();
    holder.setAttribute("aria-label", label); // Vega puts its own
  };
  draw();
  if (typeof spec === "function") {
    let drawn = room();
    window.addEventListener("resize", () => {
      if (room() === drawn) return;
      drawn = room();
      draw();
    });
  }
  return holder;
}

let bubble: HTMLElement | null = null;

function showTooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
  bubble?.remove();
  bubble = null;
  if (value == null || value === "") return;
  const rows = Object.entries(value as Record<string, unknown>).map(([name, text]) => h("tr", {}, h("th", {}, name), h("td", {}, String(text))));
  bubble = h("div", { class: "tooltip" }, h("table", {}, ...rows));
  bubble.style.left = `${event.pageX + 12}px`;
  bubble.style.top = `${event.pageY + 12}px`;
  document.body.append(bubble);
}
