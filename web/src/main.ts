import css from "./style.css?inline";
import { components } from "./components";
import { isExperiment, readRuns, type Run } from "./data";
import { distribution } from "./distribution";
import { h } from "./dom";
import { experimentPage } from "./experiment";
import { facts } from "./facts";
import { levels } from "./levels";
import { measures } from "./measures";
import { summary } from "./summary";
import { worst } from "./worst";

function page(run: Run): HTMLElement {
  return h("main", {}, h("header", {}, h("h1", {}, run.results.title || "Holdfast audit"),
    h("p", {}, "Do these models' explanations hold when the input is nudged and the prediction stays?")),
    summary(run), levels(run), components(run), measures(run), worst(run), distribution(run), facts(run),
    h("footer", {}, `Made by Holdfast ${(run.manifest as Record<string, unknown>).holdfast ?? ""} from ${run.folder}.`));
}

document.head.append(h("style", {}, css));
const runs = readRuns();
const pages = runs.map((run) => (isExperiment(run) ? experimentPage(run) : page(run)));
if (pages.length > 1) {
  const bar = h("nav", {});
  const show = (index: number) => {
    pages.forEach((element, i) => (element.hidden = i !== index));
    [...bar.children].forEach((button, i) => button.classList.toggle("chosen", i === index));
  };
  runs.forEach((run, index) => {
    const button = h("button", {}, run.results.title || run.folder);
    button.addEventListener("click", () => show(index));
    bar.append(button);
  });
  document.body.append(bar, ...pages);
  show(0);
} else {
  document.body.append(...pages);
}
document.body.dataset.ready = "true";
