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

export function chart(spec: TopLevelSpec, label: string): HTMLElement {
  const holder = h("div", { class: "chart", role: "img", "aria-label": label });
  const compiled = compile({ ...spec, config } as TopLevelSpec).spec;
  const view = new vega.View(vega.parse(compiled), { renderer: "svg", container: holder, hover: true });
  view.tooltip(showTooltip).runAsync();
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
