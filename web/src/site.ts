// The first page of the site of both papers: every claim with its verdict.
import type { Payload } from "./data";
import { h } from "./dom";
import { verdictList } from "./experiment";

export function sitePage(payload: Payload): HTMLElement {
  return h("main", {}, h("header", {}, h("h1", {}, payload.title), h("p", {}, "Every claim of the papers, what became of it, and the evidence. The pages of the papers have all tables and figures.")),
    ...(payload.papers ?? []).map((paper) => h("section", {}, h("h2", {}, h("a", { href: paper.page }, paper.name)), verdictList(paper.verdicts, false))));
}
