// Colours are named once, in style.css, for light and dark; charts read them from there.
const names = ["ink", "soft", "line", "paper", "card", "value", "chance", "between", "certified", "kept", "lost", "new", "other",
  "series-1", "series-2", "series-3", "series-4", "series-5", "series-6"] as const;

export type Theme = Record<(typeof names)[number], string>;

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Theme;
}

export const series = (colours: Theme): string[] => names.filter((name) => name.startsWith("series")).map((name) => colours[name]);

// On paper the colours are the light ones, whatever the screen has.
const media = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
export const onThemeChange = (act: () => void) => media.forEach((one) => one.addEventListener("change", act));
