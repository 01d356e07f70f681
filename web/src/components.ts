// Who found what in ensembles of attacks, what it cost, and whether more work would find more.
import type { Row, Run } from "./data";
import { h, number, percent, shown } from "./dom";
import { table, type Column } from "./table";

interface Line {
  row: Row;
  component: string;
  won: number;
  evaluations: number;
  seconds: number | undefined;
}

const COLUMNS: Column<Line>[] = [
  { name: "dataset", text: (line) => line.row.dataset },
  { name: "model", text: (line) => line.row.model },
  { name: "explainer", text: (line) => line.row.explainer },
  { name: "attack", text: (line) => line.row.attack },
  { name: "metric", text: (line) => line.row.metric },
  { name: "epsilon", text: (line) => String(line.row.threat.epsilon), value: (line) => line.row.threat.epsilon },
  { name: "component", text: (line) => line.component },
  { name: "won", help: "samples whose worst point it found", text: (line) => percent(line.won), value: (line) => line.won },
  { name: "evaluations", help: "gradient evaluations a sample", text: (line) => line.evaluations.toFixed(0), value: (line) => line.evaluations },
  { name: "seconds", help: "all samples together", text: (line) => (line.seconds === undefined ? "–" : line.seconds.toFixed(1)), value: (line) => line.seconds },
];

function lateGain(row: Row): HTMLElement | null {
  if (row.late_gain == null || row.restart_gap == null) return null;
  return h("p", { class: row.converged ? "note" : "warning" },
    `${shown(`${row.model}, ${row.explainer}, ${row.metric}, epsilon ${row.threat.epsilon}`)}: restarts within ${number(row.restart_gap, 4)} of the best, which moved by ${number(row.late_gain, 4)} in the last fifth of the work, ${row.converged ? "converged" : "so that more effort will find more"}.`);
}

// Of these rows of results.json.
export function componentsTable(run: Run, indices: number[]): HTMLElement {
  const seconds = (run.manifest.components ?? []) as { row: number; name: string; seconds: number }[];
  const lines = indices.flatMap((index) => (run.results.rows[index].components ?? []).map((part) => ({
    row: run.results.rows[index], component: part.name, won: part.won, evaluations: part.evaluations,
    seconds: seconds.find((time) => time.row === index && time.name === part.name)?.seconds,
  })));
  return h("div", { class: "components" }, h("p", {}, "An ensemble keeps the worst point that any of its components finds."), table(COLUMNS, lines, { tools: true }),
    ...indices.map((index) => lateGain(run.results.rows[index])));
}
