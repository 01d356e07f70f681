// The pages as a reader meets them: small audits, a comparison, a leaderboard, a survey and an experiment, opened from the disk in
// Debian's chromium.
//     HOLDFAST_BINARY=build/holdfast node --test web/test
// HOLDFAST_SCREENSHOTS=FOLDER keeps pictures of the pages.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const binary = path.resolve(process.env.HOLDFAST_BINARY ?? "build/holdfast");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const skip = browserPath ? false : "no chromium is installed; get it with: apt-get install chromium";

const LONG = "a_network_with_a_long_name_that_was_given_to_it_in_a_hurry_before_the_release_of_version_2";

const CONFIG = `
title = "Does <this> hold?"
samples = 12
attacks = ["random(samples=30)", "er(steps=10)"]
gates = ["top_k(k=3)>=0.999"]
measures = ["thickness(k=3,endpoints=4,points=2)"]
[[dataset]]
name = "synthetic(samples=200)"
metrics = ["top_k(k=3)"]
[dataset.threat]
epsilon = 0.5
[[dataset]]
name = "image_folder(path=images)"
label = "images"
metrics = ["top_k(k=10)"]
[dataset.threat]
norm = "linf"
epsilon = 0.1
box = [0, 1]
[[model]]
name = "${LONG}"
dataset = "synthetic"
architecture = "mlp(hidden=8)"
[model.train]
epochs = 3
[[model]]
name = "flat"
dataset = "synthetic"
architecture = "linear"
[model.train]
epochs = 3
[[model]]
name = "seer"
dataset = "images"
architecture = "cnn_small"
[model.train]
epochs = 1
`;

const ENSEMBLE = `
samples = 8
attacks = ["er(steps=1,step_size=0.0001)", "gauntlet(effort=light)"]
metrics = ["top_k(k=3)"]
[threat]
epsilon = [0.25, 0.5]
[[dataset]]
name = "synthetic(samples=100)"
[[model]]
name = "net"
architecture = "mlp(hidden=8)"
[model.train]
epochs = 3
`;

// Names that end scripts and lines, turn the direction of writing, or are no letters at all.
const HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202egnp.\u0007`${1}`|,\"\\ {{x}}";

// Two classes of pictures: bright at the left or at the right.
function writeImages(folder) {
  const side = 28;
  for (const [name, bright] of [["left", (x) => x < side / 2], ["right", (x) => x >= side / 2]]) {
    mkdirSync(path.join(folder, name), { recursive: true });
    for (let index = 0; index < 30; ++index) {
      const pixels = Buffer.alloc(3 * side * side);
      for (let i = 0; i < pixels.length; ++i) pixels[i] = (bright(Math.floor(i / 3) % side) ? 150 : 40) + ((i * 37 + index * 101) % 60);
      writeFileSync(path.join(folder, name, `${index}.ppm`), Buffer.concat([Buffer.from(`P6\n${side} ${side}\n255\n`), pixels]));
    }
  }
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

describe("report", { skip }, () => {
  let folder, browser, results;

  // Returns the exit code: 0, or 1 for a gate that is not met.
  function holdfast(...args) {
    try {
      execFileSync(binary, args, { cwd: folder, stdio: "pipe" });
      return 0;
    } catch (error) {
      if (error.status !== 1) throw new Error(`${args.join(" ")}: ${error.stderr}`);
      return 1;
    }
  }
  const read = (...parts) => JSON.parse(readFileSync(path.join(folder, ...parts), "utf8"));
  // Reports of runs that were changed are refused. Without digests nobody knows.
  function unseal(run) {
    const { gates_digest, ...manifest } = read(run, "manifest.json");
    writeFileSync(path.join(folder, run, "manifest.json"), JSON.stringify({ ...manifest, digests: {} }));
  }

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "holdfast_report_"));
    writeImages(path.join(folder, "images"));
    writeFileSync(path.join(folder, "audit.toml"), CONFIG);
    writeFileSync(path.join(folder, "ensemble.toml"), ENSEMBLE);
    assert.equal(holdfast("audit", "audit.toml", "--out", "run", "--gate", "top_k(k=3).low>=0", "--quiet"), 1);
    holdfast("audit", "ensemble.toml", "--out", "ensemble", "--quiet");
    results = read("run", "results.json");
    browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  });

  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  // Opens a page that must not complain and must not ask for anything but itself.
  async function open(file, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("dialog", (dialog) => complaints.push(`dialog ${dialog.message()}`));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || complaints.push(`asked for ${request.url()}`));
    await page.goto(`file://${path.join(folder, file)}`);
    await page.waitForSelector("body[data-ready]");
    await drawn(page);
    assert.deepEqual(complaints, []);
    page.complaints = complaints;
    return page;
  }

  const drawn = (page) => page.waitForFunction(() => [...document.querySelectorAll(".drawing")].every((place) => place.querySelector("svg")));
  const texts = (page, selector) => page.locator(selector).allTextContents();
  async function finish(page) {
    assert.deepEqual(page.complaints, []);
    await page.close();
  }
  async function keep(page, name) {
    const place = process.env.HOLDFAST_SCREENSHOTS;
    if (place) await page.screenshot({ path: path.join(place, name), fullPage: true });
  }

  it("answers on the first screen: gates by how much, a sentence for each model, a chart with bands", async () => {
    const page = await open("run/report.html");
    assert.equal(await page.title(), "Does <this> hold?");
    assert.deepEqual(await texts(page, "h1"), ["Does <this> hold?"]);
    const missed = results.gates.find((gate) => !gate.met);
    const worst = Math.min(...missed.rows.map((row) => row.value));
    assert.match(await page.locator(".banner.missed").textContent(), new RegExp(`Failed: 1 of 2 gates.*${escaped(worst.toFixed(3))}, ${escaped((missed.limit - worst).toFixed(3))} short .*${missed.rows.filter((row) => !row.met).length} of ${missed.rows.length} rows`));
    const models = new Set(results.rows.map((row) => row.model));
    assert.equal(await page.locator(".verdicts li").count(), models.size);
    for (const model of models) {
      const row = results.rows.filter((one) => one.model === model).reduce((a, b) => (b.mean < a.mean ? b : a));
      const k = Number(/k=(\d+)/.exec(row.metric)[1]), line = await page.locator(".verdicts li", { hasText: model }).textContent();
      assert.match(line, new RegExp(`keeps ${escaped(String(Number((row.mean * k).toFixed(1))))}0? of its top ${k} features`));
      assert.match(line, new RegExp(`two different inputs share ${escaped(String(Number((row.between * k).toFixed(1))))}`));
    }
    assert.equal(await page.locator(".verdicts li .badge").count(), models.size, "a verdict in one word for each model");
    // Every model is in the chart, of all datasets, between its levels and with the limit of its gate.
    const panels = (await texts(page, "#verdict .drawing svg text")).join("|");
    for (const model of models) assert.ok(panels.includes(model.slice(0, 4)), `${model} is in the chart: ${panels}`);
    assert.ok(await page.locator("#verdict .drawing svg .mark-rect path").count() >= 2 * models.size, "chance and between are bands");
    assert.ok(await page.locator("#verdict .drawing svg .mark-rule line").count() > models.size, "intervals and the gate's limit");
    const place = async (selector) => page.locator(selector).first().boundingBox();
    assert.ok((await place("#verdict .legend")).y < (await place("#verdict .chart")).y, "marks are named before they are used");
    for (const selector of [".banner", ".verdicts", "#verdict .chart"]) assert.ok((await place(selector)).y < 900, `${selector} is on the first screen`);
    await keep(page, "report.png");
    await finish(page);
  });

  it("fits the demo's kind of run on one screen, chart and all", async () => {
    const page = await open("ensemble/report.html", { viewport: { width: 1280, height: 800 } });
    const box = await page.locator("#verdict .chart").boundingBox();
    assert.ok(box.y + box.height <= 800, `the chart ends at ${box.y + box.height}`);
    await finish(page);
  });

  it("shows distances the right way up: far is bad, and the levels lie above", async () => {
    writeFileSync(path.join(folder, "apart.toml"), ENSEMBLE.replace('"er(steps=1,step_size=0.0001)", "gauntlet(effort=light)"', '"er(steps=5,k=3)"').replace('"top_k(k=3)"', '"l2"'));
    holdfast("audit", "apart.toml", "--out", "apart", "--quiet");
    const page = await open("apart/report.html"), rows = read("apart", "results.json").rows;
    assert.ok(rows.every((row) => row.direction === "lower"));
    assert.equal(await page.locator(".verdicts .badge").count(), 1);
    assert.match(await page.locator(".verdicts li").textContent(), new RegExp(`two different inputs are ${escaped(rows[0].between.toFixed(3))} apart`));
    assert.match(await page.locator("#verdict .legend").first().textContent(), /lower is better/);
    const [value, band] = [await page.locator("#verdict .mark-symbol path").first().boundingBox(), await page.locator("#verdict .mark-rect path").first().boundingBox()];
    assert.ok(value.y > band.y, "the untouched explanation lies below the levels");
    await finish(page);
  });

  it("does not call an attack that random points beat a sign of robustness", async () => {
    const beaten = read("ensemble", "results.json").rows.filter((row) => row.beaten_by);
    assert.ok(beaten.length > 0);
    cpSync(path.join(folder, "ensemble"), path.join(folder, "weak"), { recursive: true });
    const changed = read("weak", "results.json");
    changed.rows = changed.rows.map((row) => (row.beaten_by ? { ...row, mean: 0.9, low: 0.85, high: 0.95, between: 0.2, robust_and_specific: "holds" } : { ...row, mean: 1, low: 1, high: 1 }));
    changed.gates = [{ gate: "top_k(k=3)>=0", limit: 0, met: true, rows: changed.rows.map((row, index) => ({ row: index, value: row.mean, met: true })) }];
    writeFileSync(path.join(folder, "weak", "results.json"), JSON.stringify(changed));
    unseal("weak");
    holdfast("report", "weak", "--out", "weak.html");
    const page = await open("weak.html");
    assert.deepEqual(await texts(page, ".verdicts .badge"), ["weak attack"]);
    assert.match(await page.locator(".verdicts li").textContent(), /does more harm.*too weak to judge by/);
    assert.match(await page.locator(".banner.met").textContent(), /Weak attack: in \d+ rows?.*This pass is no sign of robustness/);
    await finish(page);
  });

  it("shows every row once, with the numbers of results.json", async () => {
    const page = await open("run/report.html");
    const lines = page.locator("#explore > div table tbody tr");
    assert.equal(await lines.count(), results.rows.length);
    for (const row of results.rows) {
      const line = lines.filter({ hasText: row.model }).filter({ hasText: row.attack });
      assert.equal(await line.count(), 1);
      const text = await line.textContent();
      for (const number of [row.mean, row.low, row.high, row.chance, row.between, row.lift]) assert.match(text, new RegExp(escaped(number.toFixed(3)), "u"));
    }
    for (const row of results.measures) {
      const line = page.locator("#models details", { hasText: "Measured around" }).locator("tr", { hasText: row.model }).filter({ hasText: row.measure });
      assert.match(await line.first().textContent(), new RegExp(escaped(String(Number(row.mean.toPrecision(4))))));
    }
    assert.deepEqual(await texts(page, "nav.contents a"), ["Verdict", "Explore", "Worst samples", "Models beside each other", "How it was measured"]);
    for (const target of await page.locator("nav.contents a").evaluateAll((links) => links.map((link) => link.getAttribute("href")))) assert.equal(await page.locator(target).count(), 1, target);
    assert.match(await page.locator("dl").innerText(), / --gate 'top_k\(k=3\)\.low>=0' --quiet/, "a shell reads the command back");
    await finish(page);
  });

  it("opens where the address says", async () => {
    const page = await open("run/report.html#worst");
    await page.waitForFunction(() => Math.abs(document.querySelector("#worst").getBoundingClientRect().top) < 120);
    await finish(page);
  });

  it("filters, orders and copies the table, and the charts follow", async () => {
    const page = await open("run/report.html");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const table = page.locator("#explore > div table");
    const bars = () => page.locator("#explore details .mark-symbol path").count();
    const all = await bars();
    await page.locator("#explore .filters select[aria-label=model]").selectOption("flat");
    await drawn(page);
    const mine = results.rows.filter((row) => row.model === "flat");
    assert.equal(await table.locator("tbody tr").count(), mine.length);
    assert.match(await page.locator(".filters [role=status]").textContent(), new RegExp(`${mine.length} of ${results.rows.length} rows`));
    await page.waitForFunction((before) => document.querySelectorAll("#explore details .mark-symbol path").length < before, all);
    await page.locator("#explore .filters select[aria-label=model]").selectOption("");
    const head = table.locator("th", { hasText: "value" });
    const place = await head.evaluate((cell) => cell.cellIndex + 1);
    const values = () => table.locator(`tbody tr td:nth-child(${place})`).allTextContents().then((cells) => cells.map(parseFloat));
    await head.locator("button").first().click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    const down = await values();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    assert.ok(new Set(down).size > 1, "nothing to order");
    await head.locator("button").first().click();
    assert.deepEqual(await values(), [...down].sort((a, b) => a - b));
    await page.locator("#explore .columns summary").click();
    await page.locator("#explore .boxes label", { hasText: "evaluations" }).locator("input").check();
    assert.equal(await table.locator("th", { hasText: "evaluations" }).count(), 1);
    for (const [format, pattern] of [["CSV", /^dataset,model,/], ["Markdown", /^\| dataset \| model \|/], ["LaTeX", /^\\begin\{tabular\}/]]) {
      await page.locator("#explore button", { hasText: `copy ${format}` }).click();
      await page.waitForFunction((name) => document.querySelector("#explore .copied").textContent.includes(name), format);
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(copied, pattern);
      if (format === "CSV") for (const row of results.rows) assert.ok(copied.includes(String(row.mean)), "with every digit");
    }
    await finish(page);
  });

  it("shows the worst samples large, with zoom, slider and arrow keys", async () => {
    const page = await open("run/report.html");
    const section = page.locator("#worst"), choice = section.locator("select");
    const options = await choice.locator("option").allTextContents();
    assert.equal(options.length, results.rows.length);
    await choice.selectOption({ index: options.findIndex((text) => text.includes("images")) });
    const pictures = section.locator("figure img");
    assert.ok(await pictures.count() >= 7, "input, nudge, nudged, two maps, what moved, and the slider's");
    for (const size of await pictures.evaluateAll((all) => all.map((image) => [image.naturalWidth, image.clientWidth]))) assert.ok(size[0] > 0 && size[1] >= 200, `a picture of ${size[1]} pixels`);
    assert.match(await section.innerText(), /nudge, amplified \(full colour: ±0\.\d+\)/);
    assert.match(await section.locator(".facts").innerText(), /keeps \d+ of its top 10 features\s+predicted (left|right), before and after \((right|wrong: it is (left|right))\)/);
    await keep(page, "report-images.png");
    await section.locator("figure button.picture").first().click();
    assert.ok((await page.locator("dialog.zoom img").boundingBox()).width > 500);
    await page.keyboard.press("Escape");
    await page.locator("dialog.zoom").waitFor({ state: "detached" });
    const clip = () => section.locator(".over").evaluate((image) => image.style.clipPath);
    const half = await clip();
    await section.locator("input[type=range]").fill("10");
    assert.notEqual(await clip(), half);
    const name = () => section.locator("h4").textContent();
    const first = await name();
    await section.focus();
    await page.keyboard.press("ArrowRight");
    const second = await name();
    assert.notEqual(second, first);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await name(), first);
    await choice.selectOption({ index: options.findIndex((text) => text.includes("synthetic")) });
    assert.equal(await section.locator("img").count(), 0);
    assert.ok(await section.locator("table.aligned tbody tr").count() > 3);
    const width = () => section.locator(".bar-now").first().evaluate((bar) => bar.style.width);
    const after = await width();
    await section.locator("input[type=range]").fill("0");
    assert.notEqual(await width(), after);
    await finish(page);
  });

  it("shows sentences with the weight of every word before and after", async () => {
    const [start, end] = ['id="holdfast-data">', "</script>"], html = readFileSync(path.join(folder, "run/report.html"), "utf8");
    const from = html.indexOf(start) + start.length, to = html.indexOf(end, from), payload = JSON.parse(html.slice(from, to));
    const words = [["a", 0.1, 0.5, "new"], ["truly", 0.2, 0.3, "other"], ["<b>good</b>", 0.7, 0.2, "lost"]].map(([text, before, after, state]) => ({ text, before, after, state }));
    payload.runs[0].worst = payload.runs[0].worst.map(() => [{ sample: 3, label: null, prediction: "yes", value: 0, words }]);
    writeFileSync(path.join(folder, "sentences.html"), html.slice(0, from) + JSON.stringify(payload).replaceAll("<", "\\u003c") + html.slice(to));
    const page = await open("sentences.html");
    const lines = page.locator("#worst .sentence");
    assert.deepEqual(await lines.first().locator(".word").allTextContents(), words.map((word) => word.text));
    const weights = (line) => line.locator(".word").evaluateAll((all) => all.map((word) => parseFloat(word.style.getPropertyValue("--weight"))));
    const [before, after] = [await weights(lines.nth(0)), await weights(lines.nth(1))];
    assert.deepEqual([before[2], after[2] < before[2], after[0] > before[0]], [80, true, true], "one scale for both");
    assert.equal(await lines.nth(1).locator(".word.lost").count(), 1);
    await keep(page, "report-sentences.png");
    await finish(page);
  });

  it("explains its words and marks when they are pointed at or reached by keyboard", async () => {
    const page = await open("run/report.html");
    for (const badge of await page.locator(".verdicts .badge .term").all()) {
      await badge.hover();
      assert.ok((await page.locator(".explained p").textContent()).length > 40, "a verdict says what it means");
    }
    await page.locator(".verdicts .term", { hasText: "top 3 features" }).first().hover();
    assert.match(await page.locator(".explained").textContent(), /k features with the largest numbers/);
    assert.equal(await page.locator(".explained svg").count(), 1);
    await page.mouse.move(2, 2);
    await page.locator("#verdict .legend .term", { hasText: "chance" }).focus();
    assert.match(await page.locator(".explained").textContent(), /random order/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".explained").count(), 0);
    await page.locator("#verdict .mark-symbol path").first().hover();
    await page.waitForSelector(".tooltip");
    const saved = page.waitForEvent("download");
    await page.locator("#verdict .chart").hover();
    await page.locator("#verdict .tools button", { hasText: "SVG" }).click();
    assert.match((await saved).suggestedFilename(), /\.svg$/);
    await finish(page);
  });

  it("says who found what in an ensemble, and which attack random points beat", async () => {
    const rows = read("ensemble", "results.json").rows;
    const page = await open("ensemble/report.html");
    const fold = page.locator("#explore details", { hasText: "Who found what" });
    await fold.locator("summary").first().click();
    await fold.locator("tbody tr").first().waitFor();
    const parts = rows.flatMap((row) => row.components ?? []);
    assert.ok(parts.length > 3);
    assert.equal(await fold.locator("tbody tr").count(), parts.length);
    for (const part of parts) assert.ok(await fold.locator("tr", { hasText: part.name }).count() > 0, part.name);
    assert.equal(await fold.locator("p", { hasText: "in the last fifth of the work" }).count(), 2, "one for each epsilon");
    const beaten = rows.filter((row) => row.beaten_by);
    assert.ok(beaten.length > 0);
    assert.equal(await page.locator(".warning li", { hasText: "harms more. Do not read this row as robustness" }).count(), beaten.length);
    for (const title of ["Sample by sample", "Iterations until the first swap"]) {
      await page.locator("#explore details", { hasText: title }).locator("summary").first().click();
      await page.locator("#explore details", { hasText: title }).locator(".drawing svg").waitFor();
      assert.ok(await page.locator("#explore details", { hasText: title }).locator("svg path").count() > 3, title);
    }
    await keep(page, "report-ensemble.png");
    await finish(page);
  });

  it("keeps any string a string, and numbers names that look alike", async () => {
    cpSync(path.join(folder, "run"), path.join(folder, "hostile"), { recursive: true });
    const [changed, manifest] = [read("hostile", "results.json"), read("hostile", "manifest.json")];
    for (const list of [changed.rows, changed.models, changed.measures]) for (const row of list) if ((row.model ?? row.name) === "flat") row[row.model ? "model" : "name"] = HOSTILE;
    changed.title = HOSTILE;
    const quoted = `"${HOSTILE.replaceAll('"', '""')}"`;
    writeFileSync(path.join(folder, "hostile", "samples.csv"), readFileSync(path.join(folder, "run", "samples.csv"), "utf8").replaceAll(",flat,", `,${quoted},`));
    const features = manifest.datasets.find((dataset) => dataset.name === "synthetic").schema.features ??= Array.from({ length: manifest.datasets[0].schema.layout.length }, () => ({}));
    features.forEach((feature) => (feature.name = HOSTILE));
    writeFileSync(path.join(folder, "hostile", "results.json"), JSON.stringify(changed));
    writeFileSync(path.join(folder, "hostile", "manifest.json"), JSON.stringify(manifest));
    unseal("hostile");
    holdfast("report", "hostile", "--out", "hostile.html");
    const page = await open("hostile.html");
    assert.equal(await page.locator("main img[onerror]").count(), 0);
    const shown = (await texts(page, "h1"))[0];
    assert.match(shown, /^<\/script><img src=x onerror=alert\(1\)>\\u\{2028\}\\u\{202e\}gnp\.\\u\{7\}/);
    await page.locator("#worst select").selectOption({ label: (await page.locator("#worst option").allTextContents()).find((text) => text.includes("</script>")) });
    const names = await texts(page, "#worst table.aligned th[scope=row]");
    assert.equal(new Set(names).size, names.length, "equal names are numbered");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator("#explore button", { hasText: "copy CSV" }).click();
    await page.waitForFunction(() => document.querySelector("#explore .copied").textContent.includes("CSV"));
    assert.ok((await page.evaluate(() => navigator.clipboard.readText())).includes(quoted), "copies have the exact name");
    assert.equal(await page.locator(".warning", { hasText: "cannot be drawn" }).count(), 0);
    await finish(page);
  });

  it("shows a sentence in the place of a part that cannot be drawn", async () => {
    cpSync(path.join(folder, "run"), path.join(folder, "broken"), { recursive: true });
    const changed = read("broken", "results.json");
    changed.rows[0].flips = null;
    writeFileSync(path.join(folder, "broken", "results.json"), JSON.stringify(changed));
    unseal("broken");
    holdfast("report", "broken", "--out", "broken.html");
    const page = await open("broken.html");
    assert.ok(await page.locator(".warning", { hasText: "cannot be drawn" }).count() >= 1);
    assert.equal(await page.locator(".banner.missed").count(), 1, "the rest is there");
    await finish(page);
  });

  it("puts runs side by side, and gates hold the difference", async () => {
    writeFileSync(path.join(folder, "longer.toml"), ENSEMBLE.replace("epochs = 3", "epochs = 4"));
    holdfast("audit", "longer.toml", "--set", "seed=1", "--set", 'title="second"', "--out", "ensemble2", "--quiet");
    const first = read("ensemble", "results.json").rows, second = read("ensemble2", "results.json").rows;
    const drop = Math.max(...first.map((row, i) => row.mean - second[i].mean));
    assert.equal(holdfast("audit", "longer.toml", "--set", "seed=1", "--set", 'title="second"', "--out", "ensemble2", "--compare", "ensemble", "--gate", `top_k(k=3).drop<=${(drop + 0.01).toFixed(3)}`, "--quiet"), 0);
    assert.equal(holdfast("audit", "longer.toml", "--set", "seed=1", "--set", 'title="second"', "--out", "ensemble2", "--compare", "ensemble", "--gate", `top_k(k=3).drop<=${(drop - 0.01).toFixed(3)}`, "--quiet"), 1);
    holdfast("report", "ensemble", "ensemble2", "--out", "both.html");
    const page = await open("both.html");
    assert.equal(await page.locator("main").count(), 1);
    assert.deepEqual((await texts(page, "nav.runs button")).length, 3);
    assert.deepEqual(await texts(page, "nav.runs button"), ["Compare", "audit", "second"]);
    const chart = page.locator("#comparison section", { hasText: "second against audit" });
    assert.match(await chart.innerText(), new RegExp(`Of ${first.length} rows \\d+ (is|are) worse \\(\\d+ also after correction`));
    // One line for each attack, a point for each epsilon: nothing is repeated.
    assert.equal(await chart.locator(".role-axis-label text").evaluateAll((all) => all.filter((one) => /gauntlet|^er/.test(one.textContent)).length), new Set(first.map((row) => row.attack)).size);
    const lines = page.locator("#comparison section", { hasText: "All differences" }).locator("tbody tr");
    assert.equal(await lines.count(), first.length);
    for (const [i, row] of first.entries()) {
      const text = await lines.nth(i).textContent();
      assert.match(text, new RegExp(escaped((second[i].mean - row.mean).toFixed(3).replace(/^-(0\.0+)$/, "$1"))));
      assert.ok(text.includes(row.attack) && text.includes(String(row.threat.epsilon)), "rows look different");
    }
    assert.match(await page.locator("#comparison").innerText(), /seed/);
    assert.match(await page.locator("#comparison").innerText(), /config\.model\[net\]\.train\.epochs\s+3\s+4/);
    await keep(page, "report-compare.png");
    await page.locator("nav.runs button").nth(2).click();
    await drawn(page);
    assert.equal(await page.locator("#run-2-explore").count(), 1);
    const linked = await open("both.html#run-1-worst");
    assert.equal(await linked.locator("#run-1-worst").count(), 1, "an anchor opens its run");
    await finish(linked);
    await finish(page);
  });

  it("fits screens of every width, light and dark, whatever models are called", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open("run/report.html", { colorScheme, viewport: { width: 1600, height: 900 } });
      const cut = (selector) => page.locator(selector).evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 60)));
      for (const width of colorScheme === "light" ? [1600, 900, 390] : [390]) {
        await page.setViewportSize({ width, height: 900 });
        await page.waitForFunction(() => [...document.querySelectorAll(".chart")].every((chart) => chart.scrollWidth <= chart.clientWidth + 1), null, { timeout: 5000 });
        if (width === 1600) assert.deepEqual(await cut("#explore .scroll"), [], "a table has room on a wide screen");
        const content = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(content <= width, `the page is ${content} pixels wide on a screen of ${width}`);
        await keep(page, `report-${colorScheme}-${width}.png`);
      }
      // Text stands out from what is behind it: at least 4.5 to 1 (WCAG AA).
      const [ink, soft, paper, card] = await colours(page, ["ink", "soft", "paper", "card"]);
      for (const text of [ink, soft]) for (const ground of [paper, card]) assert.ok(contrast(text, ground) >= 4.5, `${colorScheme}: ${contrast(text, ground)}`);
      await page.setViewportSize({ width: 720, height: 1000 });
      await page.emulateMedia({ media: "print", colorScheme });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= 720, null, { timeout: 5000 });
      const label = await page.locator("#verdict .role-axis-title text").first().getAttribute("fill");
      assert.ok(contrast(label, "#ffffff") >= 4.5, `charts print dark on white: ${label}`);
      await keep(page, `report-print-${colorScheme}.png`);
      await page.emulateMedia({ media: "screen", colorScheme });
      for (const set of [["kept", "lost", "new", "other"], ["value", "chance", "between", "certified"], ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6"]]) checkPalette(await colours(page, set), `${colorScheme} ${set}`);
      await finish(page);
    }
  });

  const colours = (page, names) => page.evaluate((list) => list.map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()), names);

  it("stays small and quick", async () => {
    assert.ok(statSync(path.join(folder, "run/report.html")).size < 1.5e6, "of 12 samples");
    const page = await open("run/report.html");
    const ready = await page.evaluate(() => performance.getEntriesByType("paint").find((entry) => entry.name === "first-contentful-paint").startTime);
    assert.ok(ready < 2000, `first drawn after ${ready} ms`);
    await finish(page);
  });

  it("lists models under threats with one file a result", async () => {
    holdfast("leaderboard", "run", "ensemble", "--out", "board");
    const files = readdirSync(path.join(folder, "board", "results"));
    const entries = files.map((name) => read("board", "results", name));
    const page = await open("board/index.html");
    assert.match(await page.locator("section .legend").first().textContent(), /between: what another input's explanation scores/);
    // The largest epsilon first, the others by choice.
    const several = page.locator("section").filter({ has: page.locator("select[aria-label=epsilon]") });
    assert.equal(await several.count(), 1, "the ensemble has two");
    assert.deepEqual([...new Set(await several.locator("tbody tr td:nth-child(2)").allTextContents())], ["0.5"]);
    await several.locator("select").selectOption({ label: "all" });
    assert.equal(await page.locator("tbody tr").count(), entries.length);
    for (const entry of entries) {
      const line = page.locator("section", { hasText: `${entry.dataset}: ${entry.metric}` }).locator("tr", { hasText: entry.model }).filter({ has: page.locator("td", { hasText: new RegExp(`^${escaped(String(entry.threat.epsilon))}$`) }) }).first();
      assert.match(await line.textContent(), new RegExp(escaped(entry.value.toFixed(3))));
    }
    assert.match(await page.locator("#rule").innerText(), /holdfast verify/);
    await keep(page, "leaderboard.png");
    await finish(page);
  });

  it("asks people, and finds the metric that they side with", async () => {
    holdfast("survey", "make", "run", "--out", "survey.html");
    const files = [];
    for (const person of [0, 1]) {
      const page = await open("survey.html");
      const pairs = await page.evaluate(() => JSON.parse(document.getElementById("holdfast-data").textContent).survey.pairs);
      assert.ok(pairs.length >= 8);
      await page.locator("#start").click();
      // People of known taste: similar where lens_precision(w=2) says so. What they see does not say which pair it is.
      for (let i = 0; i < pairs.length; ++i) {
        const sources = await page.locator("figure img").evaluateAll((images) => images.map((image) => image.src));
        const pictures = await page.evaluate(() => JSON.parse(document.getElementById("holdfast-data").textContent).pictures);
        const pair = pairs.find((one) => pictures[one.input] === sources[0] && one.maps.every((map) => sources.includes(pictures[map])));
        await page.getByRole("button", { name: pair.metrics["lens_precision(w=2)"] >= 0.5 ? "yes" : "no", exact: true }).click();
      }
      const saved = page.waitForEvent("download");
      await page.locator("#save").click();
      files.push(`answers${person}.json`);
      await (await saved).saveAs(path.join(folder, files.at(-1)));
      await finish(page);
    }
    const score = JSON.parse(execFileSync(binary, ["survey", "score", ...files, "--json"], { cwd: folder }));
    assert.equal(score.people, 2);
    const side = score.sides.find((row) => row.metric === "lens_precision(w=2)");
    if (side.count > 0) assert.equal(side.share, 1);
    const best = score.prediction[0];
    if (best.auc != null) assert.equal(score.prediction.find((row) => row.metric === "lens_precision(w=2)").auc, best.auc);
    assert.equal(score.agreement.share, 1, "two people of one mind");
  });

  it("makes a site of the papers' results: verdicts, charts beside the paper's numbers, CSV", async () => {
    holdfast("report", path.join(root, "results/r2et"), path.join(root, "results/lens"), "--out", "site");
    const verdicts = ["r2et", "lens"].flatMap((paper) => JSON.parse(readFileSync(path.join(root, "results", paper, "verdicts.json"), "utf8")));
    const index = await open("site/index.html");
    assert.equal(await index.locator(".claims li").count(), verdicts.length);
    for (const summary of await texts(index, ".claims summary")) assert.match(summary, /Evidence: .*[a-z]{3,} [a-z]/, "a number alone says nothing");
    assert.deepEqual((await texts(index, ".counts strong")).map(Number).reduce((sum, count) => sum + count, 0), verdicts.length, "how many hold, in front");
    assert.match((await texts(index, "h2"))[0], /Training for Stable Explanation for Free/, "papers by their titles");
    assert.match(await index.locator("#r2et ul.words").innerText(), /P@k is the share of the top k features that stay/, "words before claims");
    // A claim's link opens the experiment that tested it, and the way back is there.
    const claim = verdicts.find((verdict) => verdict.experiment === "r2et/fig3");
    await index.locator(".claims li", { hasText: claim.claim }).locator("a[href='r2et.html#fig3']").first().click();
    await index.waitForSelector("nav.runs button[aria-pressed=true]");
    assert.deepEqual(await texts(index, "nav.runs button[aria-pressed=true]"), ["r2et/fig3"]);
    await drawn(index);
    await index.locator("nav.runs a", { hasText: "all claims" }).click();
    await index.waitForSelector(".claims");
    await index.locator("a[href='lens.html']").click();
    await index.waitForSelector("nav.runs button");
    await drawn(index);
    const experiments = readdirSync(path.join(root, "results/lens")).filter((name) => name.endsWith(".manifest.json"));
    assert.equal(await index.locator("nav.runs button").count(), experiments.length);
    await index.locator("nav.runs button", { hasText: "lens/table2" }).click();
    await drawn(index);
    assert.match(await index.locator("h1").textContent(), /table 2/i);
    assert.ok(await index.locator(".drawing svg .mark-symbol path").count() > 3);
    const dark = await open("site/lens.html#fig4", { colorScheme: "dark" });
    assert.deepEqual(await texts(dark, "nav.runs button[aria-pressed=true]"), ["lens/fig4"]);
    assert.ok(await dark.locator(".drawing svg .mark-rule line").count() > 3, "intervals");
    assert.equal(await dark.locator(".drawing svg [stroke=black]").count(), 0, "black is not seen on a dark page");
    await finish(dark);
    await keep(index, "site.png");
    const table = JSON.parse(readFileSync(path.join(root, "results/lens/table2.json"), "utf8")).tables[0];
    const csv = readdirSync(path.join(folder, "site/csv/lens")).find((name) => name.startsWith("table2_"));
    const lines = readFileSync(path.join(folder, "site/csv/lens", csv), "utf8").trim().split("\n");
    assert.equal(lines.length, table.rows.length + 1);
    assert.ok(lines[1].includes(String(table.rows[0].values[0].value)));
    await finish(index);
  });

  it("has pages in docs that are made of the kept results, and no page with endless lines", () => {
    for (const paper of ["r2et", "lens"]) {
      holdfast("report", path.join(root, "results", paper), "--out", `${paper}.md`);
      const page = readFileSync(path.join(folder, `${paper}.md`), "utf8");
      assert.equal(page, readFileSync(path.join(root, "docs", `${paper}.md`), "utf8"), `make it again: holdfast report results/${paper} --out docs/${paper}.md`);
      assert.ok(page.split(/\s+/).length < 2500);
    }
    for (const name of readdirSync(path.join(root, "docs")).filter((file) => file.endsWith(".md"))) {
      const longest = Math.max(...readFileSync(path.join(root, "docs", name), "utf8").split("\n").map((line) => line.length));
      assert.ok(longest <= 1200, `docs/${name} has a line of ${longest} characters`);
    }
    assert.ok(readFileSync(path.join(root, "README.md"), "utf8").split(/\s+/).length <= 700, "the README is one screen");
  });

  it("shows an experiment with what it took and how firm its verdicts are", async () => {
    holdfast("reproduce", "lens/table1", "--out", "quick", "--quiet");
    const page = await open("quick/report.html");
    const text = await page.innerText("main");
    assert.match(await page.locator(".claims li", { hasText: "L9" }).locator(".badge.quick").textContent(), /not decided/);
    assert.match(text, /Quick scale shows that all of it works. Its verdicts mean little/);
    assert.match(text, /nothing was trained or measured/);
    assert.doesNotMatch(await page.innerText("footer"), /quick/); // whose folder it lay in is nobody's business
    await finish(page);
  });
});

// Relative luminance and contrast as WCAG 2 has them.
const full = (hex) => (hex.length === 4 ? `#${[...hex.slice(1)].map((digit) => digit + digit).join("")}` : hex); // "#fff"
const channels = (short, hex = full(short)) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = (hex) => channels(hex).map(linear).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

// What people without one kind of cone see: Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
const BLIND = {
  none: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
function lab(hex, matrix) {
  const plain = channels(hex).map(linear), seen = matrix.map((row) => Math.min(1, Math.max(0, row.reduce((sum, value, i) => sum + value * plain[i], 0))));
  const xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]].map((row, i) => row.reduce((sum, value, j) => sum + value * seen[j], 0) / [0.95047, 1, 1.08883][i]);
  const f = xyz.map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116));
  return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])];
}
function checkPalette(colours, what) {
  for (const [kind, matrix] of Object.entries(BLIND)) {
    for (let i = 0; i < colours.length; ++i) {
      for (let j = 0; j < i; ++j) {
        const [a, b] = [lab(colours[i], matrix), lab(colours[j], matrix)], distance = Math.hypot(...a.map((value, at) => value - b[at]));
        assert.ok(distance > 12, `${what}: ${colours[i]} and ${colours[j]} are ${distance.toFixed(1)} apart (${kind})`);
      }
    }
  }
}
