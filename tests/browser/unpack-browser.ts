import chromium from "@sparticuz/chromium";

/**
 * Vitest calls it before the tests of a project that opens a browser. Test files that unpack it at the same time start a
 * file that another one still writes, on a machine where no test has run yet (`spawn ETXTBSY`).
 */
export async function setup(): Promise<void> {
  await chromium.executablePath();
}
