import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

const quiet = [
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-software-rasterizer",
];

/** Omitted arguments: they are made for screenshots, disable checks of cross-origin requests, and end the browser with its first context. */
const omitted = ["--disable-web-security", "--single-process", "--no-zygote"];

/** Omitted: it emulates a graphics card in software, which takes half of the time of a test. */
const drawing = /^--(?:use-gl|use-angle|enable-unsafe-swiftshader|ignore-gpu-blocklist|in-process-gpu)/;

/** Chromium from npm, without a window. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = await chromium.executablePath();
  const args = chromium.args.filter((arg) => !omitted.includes(arg) && !drawing.test(arg));
  return await playwright.launch({ executablePath, args: [...args, ...quiet], headless: true });
}
