// Drives the playground in Chromium and prints what it saw as JSON; run by test_playground.py.
import { createRequire } from "node:module";
const [modules, chromium, address] = process.argv.slice(2);
const { chromium: browserType } = createRequire(modules + "/")("playwright-core");
const browser = await browserType.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
const seen = { errors: [], requests: [], printed: {}, texts: {} };
page.on("console", message => { if (message.type() === "error") seen.errors.push(message.text()); });
page.on("pageerror", error => seen.errors.push(String(error)));
page.on("request", request => { if (!request.url().startsWith(address) && !/^(data|blob|about):/.test(request.url())) seen.requests.push(request.url()); });

const state = () => page.textContent("#state");
const waitFor = (pattern, timeout = 120000) => page.waitForFunction(p => new RegExp(p).test(document.getElementById("state").textContent), pattern, { timeout });
async function run(code) {
  await page.fill("#code", code);
  await page.click("#run");
  await waitFor("^Done");
  return page.textContent("#output");
}

await page.goto(address);
await waitFor("^Python 3");
seen.ready = await state();
const titles = await page.$$eval("#examples option", options => options.map(o => o.value));
for (const title of titles.slice(0, 8)) {
  await page.selectOption("#examples", title);
  await page.click("#run");
  await waitFor("^Done");
  seen.printed[title] = await page.textContent("#output");
}
seen.gradient = await run("print(pb.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))");
seen.compiled = await run("print(pb.compile(pb.grad(lambda x: np.sum(np.tanh(x))))(np.zeros(2)))");
seen.error = await run("x = np.ones(3)\ndef f(x):\n    return x @ np.ones(5)\npb.grad(f)(x)");
await run(`plot(np.sin, 0, 6, derivatives=2)\ngraph(lambda x: np.sum(np.exp(x)), np.ones(3))\nreport(lambda x: np.log(x - 1.0), 1.0)`);
seen.frames = await page.$$eval("#output iframe", frames => frames.map(f => f.title));
await page.waitForFunction(() => [...document.querySelectorAll("#output iframe")].every(f => f.clientHeight > 60));
seen.heights = await page.$$eval("#output iframe", frames => frames.map(f => f.clientHeight));
const frames = page.frames().filter(f => f !== page.mainFrame());
for (const frame of frames) seen.texts[seen.frames[frames.indexOf(frame)]] = await frame.textContent("body");
await page.setViewportSize({ width: 390, height: 844 });
await page.emulateMedia({ colorScheme: "dark" });
seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
const picture = frames[seen.frames.indexOf("picture")];
seen.pictureOverflow = await picture.evaluate(() => document.documentElement.scrollWidth - innerWidth);
seen.pictureBack = await picture.evaluate(() => getComputedStyle(document.body).backgroundColor);
if (process.argv[5]) await page.screenshot({ path: process.argv[5] });
await page.fill("#code", "while True:\n    pass");
await page.click("#run");
await page.waitForTimeout(300);
await page.click("#stop");
await waitFor("^Python 3");
seen.afterStop = await run("print(1 + 1)");
await page.fill("#code", "print('shared ✓')");
await page.click("#share");
const shared = page.url();
const other = await browser.newPage();
await other.goto(shared);
seen.shared = await other.inputValue("#code");
console.log(JSON.stringify(seen));
await browser.close();
