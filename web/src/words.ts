// The glossary of a paper's pages: a list in Markdown with bold words, code and links to the documentation.
import { fold, h } from "./dom";

function inline(text: string): (Node | string)[] {
  // Pages of the documentation are not beside this one: their names say where to look.
  return text.replace(/\[([^\]]+)\]\(([^)#]+)[^)]*\)/g, (_, name: string, page: string) => (name === page ? `docs/${page}` : `${name}, docs/${page}`)).split(/(\*\*[^*]+\*\*|`[^`]+`)/)
    .map((part) => (part.startsWith("**") ? h("strong", {}, part.slice(2, -2)) : part.startsWith("`") ? h("code", {}, part.slice(1, -1)) : part));
}

export function glossary(markdown: string | undefined, open: boolean): HTMLElement | null {
  const lines = (markdown ?? "").split("\n").filter((line) => line.startsWith("- "));
  return lines.length ? fold("What the words mean, and what the numbers were made with", () => [h("ul", { class: "words" }, ...lines.map((line) => h("li", {}, ...inline(line.slice(2)))))], open) : null;
}
