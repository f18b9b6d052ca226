import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { serviceActions } from "../app/config/access-config.ts";
import { errorCodes } from "../protocol/error-code.ts";
import { serveService } from "./testing/serve-service.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/http.md"), "utf8");

test("the page about HTTP names every route", async () => {
  const served = await serveService();
  try {
    const { paths } = (await served.send("/openapi.json")).body;
    const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `\`${method.toUpperCase()} ${path}\``),
    );
    expect(routes.filter((route) => !page.includes(route))).toEqual([]);
  } finally {
    await served.close();
  }
});

test("it names every error with its status, and every action", () => {
  const rows = new Map(
    [...page.matchAll(/^\| (\d{3}) \| (.*) \|$/gm)].map(([, status, row]) => [status, row]),
  );
  const missing = Object.entries(errorCodes).filter(
    ([code, { status }]) => !rows.get(String(status))?.includes(`\`${code}\``),
  );
  expect(missing).toEqual([]);
  expect(serviceActions.filter((action) => !page.includes(`\`${action}\``))).toEqual([]);
});
