// The first page of the site of both papers: every claim with its verdict.
import type { Payload } from "./data";
import { h } from "./dom";
import { glossary } from "./words";
import { verdictCounts, verdictList } from "./experiment";

export function sitePage(payload: Payload): HTMLElement {
  const papers = payload.papers ?? [];
  return h("main", {}, h("header", {}, h("h1", {}, payload.title), h("p", {}, "Every claim of the papers, what became of it, and the evidence. A claim that was tested in several ways stands here once for each.")),
    papers.length > 1 ? h("nav", { class: "contents", "aria-label": "papers" }, ...papers.map((paper) => h("a", { href: `#${paper.name}` }, paper.title ?? paper.name))) : null,
    ...papers.map((paper) => h("section", { id: paper.name }, h("h2", {}, paper.title ?? paper.name), verdictCounts(paper.verdicts), glossary(paper.words, true),
      h("p", {}, h("a", { href: paper.page }, "All tables and figures, beside the paper's own numbers")), verdictList(paper.verdicts, false, paper.page))));
}
