// The report as a reader meets it: a small audit of tables and images, opened from the disk in Debian's chromium.
//     HOLDFAST_BINARY=build/holdfast node --test web/test
// HOLDFAST_SCREENSHOTS=FOLDER keeps pictures of the pages.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { chromium } from "playwright-core";

const binary = path.resolve(process.env.HOLDFAST_BINARY ?? "build/holdfast");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const skip = browserPath ? false : "no chromium is installed; get it with: apt-get install chromium";

const LONG = "a_network_with_a_long_name_that_was_given_to_it_in_a_hurry_before_the_release_of_version_2";

const CONFIG = `
title = "Does <this> hold?"
samples = 12
attacks = ["random(samples=30)", "er(steps=10)"]
gates = ["top_k(k=3)>1"]
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

describe("report", { skip }, () => {
  let folder, browser, results;

  function holdfast(...args) {
    try {
      execFileSync(binary, [...args, "--quiet"], { cwd: folder, stdio: "pipe" });
    } catch (error) {
      if (error.status !== 1) throw new Error(`${args.join(" ")}: ${error.stderr}`); // 1: the gate, which cannot be met
    }
  }

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "holdfast_report_"));
    writeImages(path.join(folder, "images"));
    writeFileSync(path.join(folder, "audit.toml"), CONFIG);
    holdfast("audit", "audit.toml", "--out", "run", "--gate", "top_k(k=3).low>=0");
    results = JSON.parse(readFileSync(path.join(folder, "run", "results.json"), "utf8"));
    browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  });

  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  // Opens a page that must not complain and must not ask for anything but itself.
  async function open(file, size = { width: 1280, height: 900 }) {
    const page = await browser.newPage({ viewport: size });
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    page.on("request", (request) => /^(file|data):/.test(request.url()) || complaints.push(`asked for ${request.url()}`));
    await page.goto(`file://${path.join(folder, file)}`);
    await page.waitForSelector("body[data-ready]");
    await page.waitForFunction(() => [...document.querySelectorAll("main:not([hidden]) .chart")].every((chart) => chart.querySelector("svg")));
    assert.deepEqual(complaints, []);
    return { page, complaints };
  }

  async function keep(page, name) {
    const place = process.env.HOLDFAST_SCREENSHOTS;
    if (place) await page.screenshot({ path: path.join(place, name), fullPage: true });
  }

  const texts = (page, selector) => page.locator(selector).allTextContents();

  it("shows every row, model and gate of the run", async () => {
    const { page, complaints } = await open("run/report.html");
    assert.equal(await page.title(), "Does <this> hold?");
    assert.deepEqual(await texts(page, "h1"), ["Does <this> hold?"]);
    const tables = page.locator("main table");
    assert.equal(await tables.count(), 6, "one for each dataset, measures, comparisons, correlations and the models");
    const lists = [results.rows, results.models, results.measures, results.comparisons, results.correlations];
    for (const list of lists) assert.ok(list.length > 0);
    assert.equal(await page.locator("main table tbody tr").count(), lists.reduce((sum, list) => sum + list.length, 0));
    for (const row of results.measures) {
      const line = page.locator("tr", { hasText: row.model }).filter({ hasText: row.measure });
      assert.match(await line.first().textContent(), new RegExp(String(Number(row.mean.toPrecision(4))).replace(".", "\\.")));
    }
    for (const row of results.rows) {
      const line = page.locator("tr", { hasText: row.model }).filter({ hasText: row.attack });
      assert.match(await line.first().textContent(), new RegExp(row.mean.toFixed(3).replace(".", "\\.")));
    }
    assert.match((await texts(page, ".gates .missed")).join(), /not met: top_k\(k=3\)>1/);
    assert.equal(await page.locator("dl dt").count() > 5, true);
    assert.match(await page.locator("dl dd").first().textContent(), / --gate 'top_k\(k=3\)\.low>=0' --quiet$/, "a shell reads the command back");
    await keep(page, "report.png");
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("draws charts with marks in them", async () => {
    const { page } = await open("run/report.html");
    for (const chart of await page.locator(".chart").all()) {
      assert.ok(await chart.locator("svg path").count() > 3, "a chart is empty");
      assert.ok(await chart.getAttribute("aria-label"));
    }
    await page.close();
  });

  it("orders a table by the column that is clicked", async () => {
    const { page } = await open("run/report.html");
    const table = page.locator("main table").first();
    const values = () => table.locator("tbody tr td:nth-child(3)").allTextContents().then((cells) => cells.map(parseFloat));
    const head = table.locator("th").nth(2);
    await head.locator("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    const down = await values();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    assert.ok(new Set(down).size > 1, "nothing to order");
    await head.locator("button").click();
    assert.deepEqual(await values(), [...down].sort((a, b) => a - b));
    await page.close();
  });

  it("shows the worst samples of the row that is chosen", async () => {
    const { page, complaints } = await open("run/report.html");
    const choice = page.locator("select");
    const options = await texts(page, "select option");
    assert.equal(options.length, results.rows.length);
    await choice.selectOption({ index: options.findIndex((text) => text.startsWith("images")) });
    assert.equal(await page.locator(".cards.wide article").count(), 4);
    assert.ok(await page.locator(".cards.wide img").count() >= 8, "the image and its maps before and after");
    const sizes = await page.locator(".cards.wide img").evaluateAll((images) => images.map((image) => image.naturalWidth));
    assert.ok(sizes.every((size) => size > 0), "a picture does not load");
    await keep(page, "report-images.png");
    await choice.selectOption({ index: options.findIndex((text) => text.startsWith("synthetic")) });
    assert.equal(await page.locator(".cards.wide img").count(), 0);
    await page.waitForSelector(".cards.wide .chart svg");
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("says what a mark means when it is pointed at", async () => {
    const { page } = await open("run/report.html");
    await page.locator(".chart svg path[aria-roledescription='point'], .chart svg .mark-symbol path").first().hover();
    await page.waitForSelector(".tooltip");
    assert.match(await page.locator(".tooltip").textContent(), /chance/);
    await page.close();
  });

  it("says who found what in an ensemble, and which attack random points beat", async () => {
    writeFileSync(path.join(folder, "ensemble.toml"), ENSEMBLE);
    holdfast("audit", "ensemble.toml", "--out", "ensemble");
    const rows = JSON.parse(readFileSync(path.join(folder, "ensemble", "results.json"), "utf8")).rows;
    const { page } = await open("ensemble/report.html");
    const section = page.locator("section", { has: page.locator("h2", { hasText: "Who found what" }) });
    const parts = rows.flatMap((row) => row.components ?? []);
    assert.ok(parts.length > 3);
    assert.equal(await section.locator("tbody tr").count(), parts.length);
    for (const part of parts) assert.ok(await section.locator("tr", { hasText: part.name }).count() > 0, part.name);
    assert.doesNotMatch((await section.locator("tbody tr td:last-child").allTextContents()).join(), /–/, "seconds are missing");
    assert.equal(await section.locator("p", { hasText: "in the last fifth of the work" }).count(), 2, "one for each epsilon");
    const beaten = rows.filter((row) => row.beaten_by);
    assert.ok(beaten.length > 0);
    assert.equal(await page.locator(".warning", { hasText: "harms more. Do not read this row as robustness" }).count(), beaten.length);
    await keep(page, "report-ensemble.png");
    await page.close();
  });

  it("shows one run at a time when there are several", async () => {
    holdfast("report", "run", "run", "--out", "both.html");
    const { page } = await open("both.html");
    assert.equal(await page.locator("main:visible").count(), 1);
    assert.equal(await page.locator("nav button").count(), 2);
    await page.locator("nav button").nth(1).click();
    assert.equal(await page.locator("main").nth(1).isVisible(), true);
    assert.equal(await page.locator("main").first().isVisible(), false);
    await page.close();
  });

  it("fits screens of every width, whatever models are called", async () => {
    const { page } = await open("run/report.html", { width: 1600, height: 900 });
    const cut = (selector) => page.locator(selector).evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 60)));
    assert.deepEqual(await cut(".scroll"), [], "a table has room on a wide screen");
    for (const width of [1600, 900, 420, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction(() => [...document.querySelectorAll(".chart")].every((chart) => chart.scrollWidth <= chart.clientWidth), null, { timeout: 5000 });
      assert.deepEqual(await cut(".card"), []);
      const content = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(content <= width, `the page is ${content} pixels wide on a screen of ${width}`);
      await keep(page, `report-${width}.png`);
    }
    await page.close();
  });

  it("shows an experiment with what it took and how firm its verdicts are", async () => {
    holdfast("reproduce", "lens/table1", "--out", "survey");
    const { page } = await open("survey/report.html");
    const text = await page.innerText("main");
    assert.match(text, /L9 not decided \(quick: means little\)/);
    assert.match(text, /nothing was trained or measured/);
    assert.doesNotMatch(await page.innerText("footer"), /survey/); // whose folder it lay in is nobody's business
    await page.close();
  });
});
