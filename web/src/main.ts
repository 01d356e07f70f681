import css from "./style.css?inline";
import { comparePage, shortNames } from "./compare";
import { curves } from "./curve";
import { isExperiment, readPayload, type ExperimentRun, type Payload, type Run } from "./data";
import { button, h, safely, shown, shownNames } from "./dom";
import { experimentPage } from "./experiment";
import { explore } from "./explore";
import { leaderboardPage } from "./leaderboard";
import { measures } from "./measures";
import { method } from "./method";
import { sitePage } from "./site";
import { banner, verdicts } from "./summary";
import { surveyPage } from "./survey";
import { term } from "./terms";
import { worst } from "./worst";

const SECTIONS: Record<string, string> = { verdict: "Verdict", explore: "Explore", worst: "Worst samples", models: "Models beside each other", method: "How it was measured" };

// Ids are for the run that is shown: of several runs each has its own.
function auditPage(run: Run, pictures: string[], prefix: string): HTMLElement {
  const first = h("section", { id: "verdict" }, safely("The gates", () => banner(run)), safely("The verdict", () => verdicts(run)), safely("The chart", () => curves(run)));
  const sections = [first, safely("The table", () => explore(run)), safely("The worst samples", () => worst(run, pictures)), safely("The comparison of models", () => measures(run)), safely("How it was measured", () => method(run))]
    .filter((section) => section != null);
  const links = sections.filter((section) => SECTIONS[section.id]).map((section) => {
    const name = SECTIONS[section.id];
    section.id = prefix + section.id;
    return h("a", { href: `#${section.id}` }, name);
  });
  return h("main", {}, h("header", {}, h("h1", {}, shown(run.results.title || "Holdfast audit")),
    h("p", {}, "Do these models' ", term("explanation", "explanations"), " hold when the input is nudged and the prediction stays?")),
    h("nav", { class: "contents", "aria-label": "contents" }, ...links), ...sections,
    h("footer", {}, `Made by Holdfast ${(run.manifest as Record<string, unknown>).holdfast ?? ""} from ${shown(run.folder)}.`));
}

const runPage = (run: Run | ExperimentRun, pictures: string[], prefix: string, words?: string) => (isExperiment(run) ? experimentPage(run, pictures, prefix, words) : auditPage(run, pictures, prefix));
const runName = (run: Run | ExperimentRun) => (isExperiment(run) ? run.results.experiment : run.results.title || run.folder);

// One page at a time, made when it is first shown. `owns` says whether an anchor is on a page.
function tabs(names: string[], pages: (() => HTMLElement)[], owns: (anchor: string, index: number) => boolean, before: HTMLElement[] = []): HTMLElement[] {
  const made = new Map<number, HTMLElement>(), place = h("div");
  const show = (index: number) => {
    if (!made.has(index)) made.set(index, pages[index]());
    place.replaceChildren(made.get(index)!);
    buttons.forEach((element, i) => element.setAttribute("aria-pressed", String(i === index)));
  };
  const asked = () => names.findIndex((_, index) => owns(anchor(), index));
  const buttons = names.map((name, index) => button(shown(name), () => show(index), { "aria-pressed": "false" }));
  window.addEventListener("hashchange", () => asked() >= 0 && show(asked()));
  show(Math.max(0, asked()));
  return [h("nav", { class: "runs", "aria-label": "runs" }, ...before, ...buttons), place];
}

const anchor = () => decodeURIComponent(location.hash.slice(1));

function content(payload: Payload): HTMLElement[] {
  if (payload.page === "leaderboard") return [leaderboardPage(payload)];
  if (payload.page === "survey") return [surveyPage(payload)];
  if (payload.page === "site") return [sitePage(payload)];
  const runs = payload.runs ?? [], pages = runs.map((run, index) => () => runPage(run, payload.pictures, runs.length > 1 ? `run-${index + 1}-` : "", payload.words));
  if (runs.length === 1) return [pages[0]()];
  // Titles that are the same say nothing: then the folders do.
  const titles = runs.map(runName), names = shownNames(new Set(titles).size < titles.length ? shortNames(runs.map((run) => run.folder)) : titles);
  const compared = payload.comparison ? [() => comparePage(payload.comparison!, names)] : [];
  const back = payload.page === "paper" ? [h("a", { href: "index.html" }, "← all claims")] : [];
  return tabs([...compared.map(() => "Compare"), ...names], [...compared, ...pages], (name, index) => {
    const run = index - compared.length;
    return run >= 0 && (name.startsWith(`run-${run + 1}-`) || (payload.page === "paper" && name === runs[run].folder));
  }, back);
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets = [sheet];
try {
  document.body.append(...content(readPayload()));
} catch (error) {
  document.body.append(h("main", {}, h("p", { class: "warning" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`)));
}
// The browser looked for the address's anchor before the page was made, and charts move it while they are drawn.
function land(): void {
  const target = document.getElementById(anchor());
  if (!target) return;
  const times = [0, 200, 800].map((after) => window.setTimeout(() => target.scrollIntoView({ behavior: "instant" }), after));
  for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) window.addEventListener(kind, () => times.forEach(clearTimeout), { once: true, passive: true });
}
land();
document.body.dataset.ready = "true";
