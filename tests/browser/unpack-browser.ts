import chromium from "@sparticuz/chromium";

/**
 * Unpacks the browser before the tests; Vitest calls it. On a machine where no test has run yet, test files that unpack it at
 * the same time would start a file that another one still writes (`spawn ETXTBSY`).
 */
export async function setup(): Promise<void> {
  await chromium.executablePath();
}
