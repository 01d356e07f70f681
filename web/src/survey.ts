// A survey: do two maps of a picture point at the same parts of it? Blinded, in an order of its own for each person; the answers
// stay in the browser until they are saved as a file.
import type { Payload } from "./data";
import { button, counted, download, h, shown } from "./dom";

interface Answer {
  pair: string;
  similar: "yes" | "no" | "unsure";
  seconds: number;
  metrics: Record<string, number | null>;
}

// A small generator that gives the same order for the same person.
function shuffled<T>(items: T[], seed: number): T[] {
  const result = [...items];
  let state = seed >>> 0;
  for (let i = result.length - 1; i > 0; --i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

export function surveyPage(payload: Payload): HTMLElement {
  const survey = payload.survey!, person = crypto.getRandomValues(new Uint32Array(1))[0];
  const pairs = shuffled(survey.pairs, person), answers: Answer[] = [];
  const place = h("section", { class: "card sample", "aria-live": "polite" });
  let since = 0;
  const picture = (at: number, title: string) => h("figure", {}, h("img", { src: payload.pictures[at], alt: title }), h("figcaption", {}, title));
  const finish = () => {
    const text = JSON.stringify({ survey: survey.id, person: person.toString(16), answers }, null, 1);
    place.replaceChildren(h("h2", {}, "Thank you"), h("p", {}, "Save the file and send it to the person who asked you. It holds your answers and nothing about you."),
      button("save my answers", () => download(`answers-${person.toString(16)}.json`, URL.createObjectURL(new Blob([text], { type: "application/json" }))), { id: "save" }));
  };
  const ask = () => {
    const pair = pairs[answers.length];
    if (!pair) return finish();
    since = performance.now();
    // Which map comes first is drawn for each pair and person, so that the side gives nothing away.
    const maps = shuffled(pair.maps, person ^ answers.length);
    const answer = (similar: Answer["similar"]) => {
      answers.push({ pair: pair.id, similar, seconds: Math.round((performance.now() - since) / 100) / 10, metrics: pair.metrics });
      ask();
    };
    place.replaceChildren(h("h2", {}, `${answers.length + 1} of ${pairs.length}`), h("p", {}, `The picture was recognised as “${shown(pair.prediction)}”. Bright dots are what the computer looked at, in two tries.`),
      h("div", { class: "pictures asked" }, picture(pair.input, "picture"), picture(maps[0], "first try"), picture(maps[1], "second try")),
      h("p", { class: "verdict" }, "Do the two maps point at the same parts of the picture?"),
      h("div", { class: "bar" }, button("yes", () => answer("yes")), button("no", () => answer("no")), button("I cannot tell", () => answer("unsure")),
        answers.length ? button("← back", () => { answers.pop(); ask(); }, { class: "quiet" }) : null));
  };
  place.append(h("h2", {}, "Before you start"), h("p", {}, `You see ${pairs.length} pictures, each with two maps. There is no right answer: say what you see. It takes about ${counted(Math.max(1, Math.round(pairs.length / 6)), "minute")}.`), button("start", ask, { id: "start" }));
  return h("main", {}, h("header", {}, h("h1", {}, "Which maps look alike?"), h("p", {}, "A map shows which parts of a picture a computer looked at.")), place);
}
