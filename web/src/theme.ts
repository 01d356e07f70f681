// Colours are named once, in style.css, for light and dark; charts read them from there.
const names = ["ink", "soft", "line", "paper", "card", "value", "chance", "between", "certified", "kept", "lost", "new", "other",
  "series-1", "series-2", "series-3", "series-4", "series-5", "series-6"] as const;

export type Theme = Record<(typeof names)[number], string>;

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Theme;
}

export const series = (colours: Theme): string[] => names.filter((name) => name.startsWith("series")).map((name) => colours[name]);

const dark = matchMedia("(prefers-color-scheme: dark)");
export const onThemeChange = (act: () => void) => dark.addEventListener("change", act);
