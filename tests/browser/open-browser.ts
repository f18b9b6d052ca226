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

/** Made for screenshots, it would ask no server whether a page of another origin may call it, and end with its first context. */
const left = ["--disable-web-security", "--single-process", "--no-zygote"];

/** It would draw by a graphics card that is computed, which takes half of the time of a test. */
const drawing = /^--(?:use-gl|use-angle|enable-unsafe-swiftshader|ignore-gpu-blocklist|in-process-gpu)/;

/** Chromium from npm, without a window. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = await chromium.executablePath();
  const args = chromium.args.filter((arg) => !left.includes(arg) && !drawing.test(arg));
  return await playwright.launch({ executablePath, args: [...args, ...quiet], headless: true });
}
