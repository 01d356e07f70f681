// A few lines instead of a framework.

type Child = Node | string | null | undefined;

export function h(tag: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child != null) element.append(child);
  return element;
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
