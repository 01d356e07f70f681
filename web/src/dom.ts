// A few lines instead of a framework.

type Child = Node | string | null | undefined;

export function h(tag: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child != null) element.append(child);
  return element;
}

export function svg(tag: string, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  for (const child of children) if (child != null) element.append(child);
  return element;
}

export function button(text: string, act: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const element = h("button", { type: "button", ...attributes }, text) as HTMLButtonElement;
  element.addEventListener("click", act);
  return element;
}

// A part that is drawn when it is opened for the first time.
export function fold(title: string, content: () => (Node | null)[], open = false): HTMLElement {
  const place = h("div"), element = h("details", open ? { open: "" } : {}, h("summary", {}, title), place);
  const fill = () => { if (!place.childNodes.length) place.append(...content().filter((node) => node != null)); };
  element.addEventListener("toggle", () => (element as HTMLDetailsElement).open && fill());
  if (open) fill();
  return element;
}

export function select(label: string, options: [value: string, text: string][], chosen: string, act: (value: string) => void): HTMLElement {
  const element = h("select", { "aria-label": label }, ...options.map(([value, text]) => h("option", { value }, text))) as HTMLSelectElement;
  element.value = chosen;
  element.addEventListener("change", () => act(element.value));
  return h("label", { class: "choice" }, h("span", {}, label), element);
}

export function number(value: number | null | undefined, digits = 3): string {
  return value == null ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1"); // what rounds to zero has no sign
}

// For numbers of no fixed scale.
export function significant(value: number | null | undefined, digits = 4): string {
  return value == null ? "–" : String(Number(value.toPrecision(digits)));
}

export function percent(value: number | null | undefined): string {
  return value == null ? "–" : `${(100 * value).toFixed(0)} %`;
}

export const interval = (mean: number | null | undefined, low?: number | null, high?: number | null, digits = 3): string =>
  mean == null ? "–" : number(mean, digits) + (low == null || high == null ? "" : ` [${number(low, digits)}, ${number(high, digits)}]`);

export const significantInterval = (mean: number | null | undefined, low?: number | null, high?: number | null): string =>
  low == null || high == null ? significant(mean) : `${significant(mean)} [${significant(low)}, ${significant(high)}]`;

// A probability: below this nothing is told apart.
export const probability = (value: number | null | undefined): string => (value == null ? "–" : value < 0.001 ? "< 0.001" : String(Number(value.toPrecision(2))));

export const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// In the order of first appearance.
export function distinct<T>(items: T[], key: (item: T) => string): string[] {
  return [...new Set(items.map(key))];
}

export function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

// A name as it can be shown: characters that no one sees, that break lines or turn the direction of writing are written as
// their numbers. Copies of a table have the exact ones.
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;
export const shown = (name: string): string => {
  const text = name.normalize("NFC").replace(HIDDEN, (letter) => `\\u{${letter.codePointAt(0)!.toString(16)}}`);
  return text.trim() === "" ? "(empty name)" : text;
};

// The text with places where a narrow column may break it: after what ends a word of a name.
export function breakable(text: string): (Node | string)[] {
  return text.split(/(?<=[(,_/])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

// Names that look alike are numbered.
export function shownNames(names: string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const text = shown(name), count = (seen.get(text) ?? 0) + 1;
    seen.set(text, count);
    return count === 1 ? text : `${text} (${count})`;
  });
}

// Names items by the parts that differ among them, the first part where none does. What differs most often is given first: narrow
// charts cut the end. `few`: without parts that others say already, as the dataset where each has a model of its own.
export function tellApart<T>(items: T[], parts: ((item: T) => string)[], few = false): string[] {
  const name = (some: ((item: T) => string)[]) => (item: T) => JSON.stringify(some.map((part) => part(item)));
  let telling = parts.filter((part) => distinct(items, part).length > 1);
  if (few) telling = telling.reduce<typeof parts>((some, part) => (distinct(items, name([...some, part])).length > distinct(items, name(some)).length ? [...some, part] : some), []);
  return shownNames(items.map((item) => (telling.length ? telling : parts.slice(0, 1)).map((part) => part(item)).filter((text) => text !== "").join(" · ")));
}

// A part of the page that cannot be drawn says so in its place, and the rest of the page stays.
export function safely(what: string, make: () => HTMLElement | null): HTMLElement | null {
  try {
    return make();
  } catch (error) {
    return h("p", { class: "warning" }, `${what} cannot be drawn: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function download(name: string, href: string): void {
  h("a", { href, download: name }).click();
}
