// What was run, on what, and how to run it again.
import type { Run } from "./data";
import { h, number } from "./dom";

function models(run: Run): HTMLElement {
  const rows = run.results.models.map((model) =>
    h("tr", {}, h("td", {}, model.name), h("td", {}, model.dataset), h("td", {}, String(model.model ?? model.architecture ?? "")), h("td", { class: "number" }, String(model.parameters ?? "–")),
      h("td", { class: "number" }, model.accuracy ? `${number(model.accuracy.mean)} [${number(model.accuracy.low)}, ${number(model.accuracy.high)}]` : "–"),
      h("td", { class: "number" }, model.auc ? `${number(model.auc.mean)} [${number(model.auc.low)}, ${number(model.auc.high)}]` : "–")));
  const head = ["model", "dataset", "what it is", "parameters", "accuracy", "AUC"].map((name) => h("th", {}, name));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}

export function facts(run: Run): HTMLElement {
  const manifest = run.manifest as Record<string, any>;
  const lines: [string, string][] = [
    ["command", (manifest.command ?? []).join(" ")],
    ["started", String(manifest.started ?? "")],
    ["took", `${number(manifest.seconds, 1)} s on ${manifest.hardware?.cpu ?? "?"}, ${manifest.hardware?.threads ?? "?"} threads, ${manifest.hardware?.device ?? ""}`],
    ["seed", String(manifest.seed)],
    ["versions", `holdfast ${manifest.holdfast}, torch ${manifest.versions?.torch}`],
  ];
  for (const dataset of manifest.datasets ?? []) {
    const excluded = (dataset.excluded ?? []).filter((entry: { count: number }) => entry.count > 0).map((entry: { reason: string; count: number }) => `${entry.count} left out (${entry.reason})`);
    lines.push([dataset.name, [`${dataset.samples} samples`, ...excluded, ...(dataset.notes ?? [])].join("; ")]);
  }
  return h("section", {}, h("h2", {}, "Models"), models(run), h("h2", {}, "How this was made"),
    h("dl", {}, ...lines.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}
