import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { atVendor, loadSdk } from "./load-vendor-sdk.ts";

test("work at a vendor succeeds once its package is installed, after work that failed without it", async () => {
  const root = await mkdtemp(join(tmpdir(), "kit-vendor-"));
  const work = atVendor(
    () => loadSdk<{ readonly answer: number }>("kit-late-vendor", root),
    () => new Error("of the vendor"),
  );
  await expect(work(async ({ answer }) => answer)).rejects.toMatchObject({
    code: "unavailable",
    hint: "Run: npm install kit-late-vendor",
  });
  const folder = join(root, "node_modules", "kit-late-vendor");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), `{ "name": "kit-late-vendor", "main": "index.cjs" }`);
  await writeFile(join(folder, "index.cjs"), "exports.answer = 42;");
  expect(await work(async ({ answer }) => answer)).toBe(42);
  await expect(work(() => Promise.reject(new Error("refused")))).rejects.toThrow("of the vendor");
});
