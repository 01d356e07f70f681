// Every word that a newcomer would have to look up: one sentence and a small picture, on hover, on a tap or by keyboard.
import { h, svg } from "./dom";

// A scale from 0 to 1 with marks on it; of two names that would touch, the second stands above the line.
function scale(marks: [at: number, name: string, colour: string][], band?: [from: number, to: number, colour: string]): SVGElement {
  const close = (i: number) => i > 0 && Math.abs(marks[i][0] - marks[i - 1][0]) < 0.28;
  return svg("svg", { viewBox: "0 0 220 50", width: 220, height: 50 },
    band ? svg("rect", { x: 10 + 200 * band[0], y: 18, width: 200 * (band[1] - band[0]), height: 12, class: `fill-${band[2]}`, opacity: 0.35 }) : null,
    svg("line", { x1: 10, x2: 210, y1: 24, y2: 24, class: "stroke" }),
    ...marks.flatMap(([at, name, colour], i) => [svg("circle", { cx: 10 + 200 * at, cy: 24, r: 5, class: `fill-${colour}` }),
      svg("text", { x: 10 + 200 * at, y: close(i) ? 12 : 44, "text-anchor": at > 0.85 ? "end" : at < 0.15 ? "start" : "middle" }, name)]));
}

// Eight features in the order of importance, before and after.
function ranks(after: string[]): SVGElement {
  const row = (y: number, states: string[]) => states.map((state, i) => svg("rect", { x: 10 + 24 * i, y, width: 20, height: 14, rx: 3, class: `fill-${state}` }));
  return svg("svg", { viewBox: "0 0 220 44", width: 220, height: 44 }, ...row(4, ["kept", "kept", "kept", "kept", "other", "other", "other", "other"]), ...row(25, after));
}

function ball(): SVGElement {
  return svg("svg", { viewBox: "0 0 220 60", width: 220, height: 60 }, svg("circle", { cx: 60, cy: 30, r: 26, class: "stroke", fill: "none" }),
    svg("circle", { cx: 60, cy: 30, r: 3, class: "fill-value" }), svg("line", { x1: 60, y1: 30, x2: 84, y2: 20, class: "stroke" }), svg("circle", { cx: 84, cy: 20, r: 3, class: "fill-lost" }),
    svg("text", { x: 100, y: 24 }, "nudged input"), svg("text", { x: 100, y: 44 }, "radius = epsilon"));
}

// Of two different inputs, and of what the attack left.
const levels = (between: number, left: number) => () => scale([[between, "between", "between"], [left, "left", "value"]], [0, between, "between"]);

const TERMS: Record<string, [sentence: string, picture: () => SVGElement]> = {
  explanation: ["A number for each feature of an input that says how much it counts for the model's prediction.", () => ranks(["kept", "kept", "kept", "kept", "other", "other", "other", "other"])],
  "top k": ["The k features with the largest numbers in an explanation; green: still there after the attack, red: lost, blue: new.", () => ranks(["kept", "kept", "lost", "lost", "new", "new", "other", "other"])],
  value: ["How alike the explanations before and after the attack are: 1 is unchanged, averaged over the samples, with a 95 % interval.", () => scale([[0.6, "value", "value"], [1, "unchanged", "other"]])],
  attack: ["A search for the nudge that changes the explanation most while the prediction stays the same.", ball],
  epsilon: ["How far the input may be nudged.", ball],
  chance: ["What a map in random order scores: a value near it means that nothing is left of the explanation.", () => scale([[0.25, "chance", "chance"], [0.7, "value", "value"]], [0, 0.25, "chance"])],
  between: ["What the clean explanations of two different inputs score against each other: an attacked explanation at or below it is no closer to its own input than to another one.", () => scale([[0.45, "between", "between"], [0.8, "value", "value"]], [0, 0.45, "between"])],
  certified: ["What no nudge of this size can go below: it is proven, not searched for.", () => scale([[0.35, "certified", "certified"], [0.7, "value", "value"]], [0, 0.35, "certified"])],
  lift: ["Value minus between: how much of the explanation is about this input and survives.", () => scale([[0.4, "between", "between"], [0.8, "value", "value"]], [0.4, 0.8, "value"])],
  specific: ["Where the value lies between another input's map (0) and its own (1); nearly constant maps make it large, so read it with lift and effective sets.", () => scale([[0, "another's", "between"], [0.4, "specific", "value"], [1, "own", "other"]])],
  adjusted: ["Where the value lies between a random map (0) and the unchanged one (1).", () => scale([[0, "random", "chance"], [0.5, "adjusted", "value"], [1, "own", "other"]])],
  "effective sets": ["How many different top-k sets the attacked explanations still have; 1 means the same set for every input.", () => ranks(["kept", "new", "kept", "new", "kept", "new", "other", "other"])],
  "own advantage": ["How much more a sample's own attacked top k moves its prediction than another sample's top k does; 0 or less means that the explanation is not about the sample.", () => scale([[0, "none", "chance"], [0.5, "advantage", "value"]], [0, 0.5, "value"])],
  "random points": ["What blind search finds: the worst of random nudges of the same size. An attack that finds less is weak.", ball],
  holds: ["The explanation holds under the attack and still depends on the input: lift is at least 0.2, effective sets are at least 3 and own advantage is above 0, each with its whole 95 % interval.", levels(0.4, 0.9)],
  breaks: ["What the attack leaves of the explanation is surely no more than what two different inputs share anyway.", levels(0.7, 0.4)],
  "weak attack": ["Random nudges of the same size, or another attack, do more harm than this attack found. Use a stronger one, such as gauntlet, before you trust the number.", ball],
  trivial: ["Two different inputs have nearly the same explanation. It cannot break, because it says the same about every input.", levels(0.97, 0.99)],
  "hardly specific": ["What the attack leaves is more than what two different inputs share, but by less than 0.2.", levels(0.6, 0.7)],
  "partly specific": ["The attack leaves clearly more than what two different inputs share. But the explanation takes only a few different forms, or its top features matter no more for this input than those of another input.", levels(0.4, 0.8)],
  "holds in part": ["The attack leaves more than what two different inputs share, and less than 0.9 of the explanation; of a distance: it moves less than two different inputs lie apart.", levels(0.3, 0.6)],
  "hardly moves": ["The attack leaves at least 0.9 of the explanation, and two different inputs share less.", levels(0.3, 0.95)],
  "not decided": ["The 95 % interval includes both answers. More samples would decide.", levels(0.6, 0.62)],
  "first swap": ["The iteration of the attack at which a feature first left the top k.", () => ranks(["kept", "kept", "kept", "new", "lost", "other", "other", "other"])],
};

let open: HTMLElement | null = null;
const close = () => { open?.remove(); open = null; };
document.addEventListener("keydown", (event) => event.key === "Escape" && close());
document.addEventListener("click", (event) => !(event.target as Element).closest?.(".term") && close());

export function term(name: string, text = name): HTMLElement {
  const entry = TERMS[name];
  if (!entry) throw new Error(`no term ${name}`);
  const element = h("span", { role: "button", tabindex: "0", class: "term", "aria-label": `${name}: ${entry[0]}` }, text);
  const show = () => {
    close();
    open = h("div", { class: "tooltip explained", role: "tooltip" }, h("strong", {}, name), h("p", {}, entry[0]), entry[1]());
    document.body.append(open);
    const place = element.getBoundingClientRect();
    open.style.left = `${Math.max(4, Math.min(place.left, document.documentElement.clientWidth - open.offsetWidth - 8)) + window.scrollX}px`;
    open.style.top = `${place.bottom + window.scrollY + 6}px`;
  };
  element.addEventListener("mouseenter", show);
  element.addEventListener("focus", show);
  element.addEventListener("click", show);
  element.addEventListener("mouseleave", close);
  element.addEventListener("blur", close);
  return element;
}
