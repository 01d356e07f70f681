// What was run, on what, and how to run it again.
import type { Interval, ModelFacts, Run } from "./data";
import { h, number } from "./dom";
import { table, type Column } from "./table";

const interval = (value: Interval | null) => (value ? `${number(value.mean)} [${number(value.low)}, ${number(value.high)}]` : "–");

// As a shell reads it back.
export const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const COLUMNS: Column<ModelFacts>[] = [
  { name: "model", text: (model) => model.name },
  { name: "dataset", text: (model) => model.dataset },
  { name: "what it is", text: (model) => String(model.model ?? model.architecture ?? "") },
  { name: "parameters", text: (model) => String(model.parameters ?? "–"), value: (model) => model.parameters },
  { name: "accuracy", text: (model) => interval(model.accuracy), value: (model) => model.accuracy?.mean },
  { name: "AUC", text: (model) => interval(model.auc), value: (model) => model.auc?.mean },
];

export function facts(run: Run): HTMLElement {
  const manifest = run.manifest as Record<string, any>;
  const lines: [string, string][] = [
    ["command", (manifest.command ?? []).map(quoted).join(" ")],
    ["started", String(manifest.started ?? "")],
    ["took", `${number(manifest.seconds, 1)} s on ${manifest.hardware?.cpu ?? "?"}, ${manifest.hardware?.threads ?? "?"} threads, ${manifest.hardware?.device ?? ""}`],
    ["seed", String(manifest.seed)],
    ["versions", `holdfast ${manifest.holdfast}, torch ${manifest.versions?.torch}`],
  ];
  for (const dataset of manifest.datasets ?? []) {
    const excluded = (dataset.excluded ?? []).filter((entry: { count: number }) => entry.count > 0).map((entry: { reason: string; count: number }) => `${entry.count} left out (${entry.reason})`);
    lines.push([dataset.name, [`${dataset.samples} samples`, ...excluded, ...(dataset.notes ?? [])].join("; ")]);
  }
  return h("section", {}, h("h2", {}, "Models"), table(COLUMNS, run.results.models), h("h2", {}, "How this was made"),
    h("dl", {}, ...lines.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}
