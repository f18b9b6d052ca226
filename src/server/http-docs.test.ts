import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { serviceActions } from "../protocol/access.ts";
import { errorCodes } from "../protocol/error-code.ts";
import { serveForTest } from "./testing/serve-for-tests.ts";
import { serveService } from "./testing/serve-service.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/http.md"), "utf8");

test("the page about HTTP names every route", async () => {
  const served = await serveForTest();
  const { paths } = (await served.send("/openapi.json")).body;
  const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `\`${method.toUpperCase()} ${path}\``),
  );
  expect(routes.filter((route) => !page.includes(route))).toEqual([]);
});

test("the page names every error with its status, and every action", () => {
  const rows = new Map(
    [...page.matchAll(/^\| (\d{3}) \| (.*) \|$/gm)].map(([, status, row]) => [status, row]),
  );
  const missing = Object.entries(errorCodes).filter(
    ([code, { status }]) => !rows.get(String(status))?.includes(`\`${code}\``),
  );
  expect(missing).toEqual([]);
  expect(serviceActions.filter((action) => !page.includes(`\`${action}\``))).toEqual([]);
});

test("the page's example of access separates tenants, whatever a request contains", async () => {
  const fence = /```ts\n((?:(?!```)[\s\S])*?TENANT_KEYS[\s\S]*?)```/.exec(page)?.[1] ?? "";
  const folder = await mkdtemp(join(tmpdir(), "kit-docs-"));
  const keys = {
    acme: "key-of-acme-00000",
    "acme-labs": "key-of-labs-00000",
    constructor: "key-of-ctor-00000",
  };
  process.env.TENANT_KEYS = Object.entries(keys)
    .map((pair) => pair.join("="))
    .join(",");
  try {
    const file = join(folder, "config.ts");
    await writeFile(
      file,
      fence.replace(/import \{ defineConfig \}.*/, "const defineConfig = (config) => config;"),
    );
    const { auth, authorize } = (await import(pathToFileURL(file).href)).default.server;
    const served = await serveService({ access: { auth }, authorize });
    const status = async (instance: string, headers: Readonly<Record<string, string>>): Promise<number> =>
      (await served.send(`/agents/echo/${encodeURIComponent(instance)}/approvals`, { headers })).status;
    const as = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });
    try {
      for (const tenant of ["acme", "acme-labs", "constructor"] as const) {
        expect([tenant, await status(`${tenant}:1`, as(keys[tenant]))]).toEqual([tenant, 200]);
      }
      for (const instance of [
        "acme-labs:1",
        "acme-1",
        "acme",
        "acme:",
        ":acme",
        "Acme:1",
        " acme:1",
        "acme;:1",
      ]) {
        const expected = instance === "acme:" ? 200 : 403;
        expect([instance, await status(instance, as(keys.acme))]).toEqual([instance, expected]);
      }
      expect(await status("acme:1", as(keys["acme-labs"]))).toBe(403);
      for (const headers of [
        {},
        { "x-tenant": "acme" },
        as("acme"),
        as(`${keys.acme}x`),
        as("__proto__"),
        { authorization: keys.acme },
        { authorization: `Basic ${keys.acme}` },
      ])
        expect([headers, await status("acme:1", headers as Record<string, string>)]).toEqual([headers, 401]);
      const spoofed = { ...as(keys["acme-labs"]), "x-tenant": "acme" };
      expect(await status("acme:1", spoofed)).toBe(403);
      expect((await served.send("/api/specs", { headers: as(keys.acme) })).status).toBe(403);
    } finally {
      await served.close();
    }
  } finally {
    delete process.env.TENANT_KEYS;
    await rm(folder, { recursive: true, force: true });
  }
});
