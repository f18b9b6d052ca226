import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const secret = "TOP-SECRET";
const files: Readonly<Record<string, string>> = {
  "src/app.ts": "one\r\ntwo\nthree\n",
  ".gitignore": "ignored/\n*.local\n",
  "ignored/notes.md": secret,
  "settings.local": secret,
  ".env": secret,
  ".env.production": secret,
  "config/.ENV": secret,
  ".envrc": secret,
  "certs/server.key": secret,
  "certs/server.pem": secret,
  "home/id_ed25519": secret,
  "home/.npmrc": secret,
  ".kit/note.md": secret,
  ".git/config": secret,
  "empty.txt": "",
  "binary.bin": "a\0b",
  "long.txt": `${"x".repeat(100_000)}\nshort\n`,
  "many.txt": "line\n".repeat(5_000),
  "wide.txt": `${"y".repeat(3_999)}\n`.repeat(200),
  "huge.txt": "z".repeat(5 * 1024 * 1024),
  "hostile.html": "<script>alert(1)</script>\u202Egnirts\n",
};

let client: KitClient;
const served = serveForTests({ files });
beforeAll(async () => {
  const at = (path: string): string => join(served.root, path);
  symlinkSync("/etc/hostname", at("out.txt"));
  symlinkSync("/etc", at("out"));
  symlinkSync(".env", at("innocent.txt"));
  symlinkSync("src/app.ts", at("alias.ts"));
  symlinkSync("src", at("linked"));
  await served.server.app.request("/health");
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

const lines = (query: string) => served.send(`/api/files?${query}`);

test("lines of a file are sent with their numbers and the number of all lines", async () => {
  expect((await lines("path=src/app.ts&start_line=2&end_line=3")).body).toEqual({
    path: "src/app.ts",
    start_line: 2,
    lines: ["two", "three"],
    total_lines: 3,
  });
  expect((await client.files.lines({ path: "./src/app.ts" })).lines).toEqual(["one", "two", "three"]);
  expect((await client.files.lines({ path: "empty.txt" })).lines).toEqual([]);
  expect((await client.files.lines({ path: "hostile.html" })).lines).toEqual([
    "<script>alert(1)</script>\u202Egnirts",
  ]);
});

test.each([
  ...Object.keys(files).filter((path) => files[path] === secret),
  "out.txt",
  "out/hostname",
  "innocent.txt",
  "none.md",
  "src",
  "src/app.ts/below",
  "config/.e\u200Bnv",
])("%j is not found, whether it exists or not", async (path) => {
  const { status, body } = await lines(`path=${encodeURIComponent(path)}`);
  expect([status, body.error?.type]).toEqual([404, "not_found"]);
  expect(JSON.stringify(body)).not.toContain(secret);
});

test.each([
  "path=",
  "path=/etc/passwd",
  "path=../outside.md",
  "path=src/../../x",
  "path=src%5Capp.ts",
  "path=a%00b",
  "",
  "path=src/app.ts&start_line=0",
  "path=src/app.ts&start_line=9",
  "path=src/app.ts&start_line=3&end_line=2",
  "path=src/app.ts&end_line=x",
  "path=src/app.ts&whole=true",
  "path=binary.bin",
])("%j is refused with the name of the invalid field", async (query) => {
  const { status, body } = await lines(query);
  expect([status, body.error.type]).toEqual([400, "invalid_request"]);
  expect(body.error.meta.issues[0].path).toMatch(/^query\./);
});

test("a reply is bounded, however long lines and files are", async () => {
  const long = await client.files.lines({ path: "long.txt" });
  expect([long.lines[0]?.length, long.lines[1], long.cut]).toEqual([4_000, "short", true]);
  const many = await client.files.lines({ path: "many.txt", start_line: 101, end_line: 4_000 });
  expect([many.lines.length, many.total_lines, many.cut]).toEqual([2_000, 5_000, undefined]);
  const wide = await client.files.lines({ path: "wide.txt" });
  expect(wide.lines.join("\n").length).toBeLessThanOrEqual(256 * 1024);
  const huge = await lines("path=huge.txt");
  expect([huge.status, huge.body.error.type]).toEqual([413, "payload_too_large"]);
});

test("a file that was replaced by a link after it was indexed is not followed", async () => {
  const at = (path: string): string => join(served.root, path);
  mkdirSync(at("moved"), { recursive: true });
  renameSync(at("src/app.ts"), at("moved/app.ts"));
  symlinkSync("/etc/hostname", at("src/app.ts"));
  expect((await lines("path=src/app.ts")).status).toBe(404);
  renameSync(at("moved/app.ts"), at("src/app.ts"));
  writeFileSync(at("src/app.ts"), "changed\n");
  expect((await client.files.lines({ path: "src/app.ts" })).lines).toEqual(["changed"]);
});

test("a key alone does not allow reading files: authorize is called", async () => {
  const withKey = await serveForTest({
    files,
    access: { apiKeys: ["k"] },
    authorize: ({ action }) => action !== "file.read",
  });
  const headers = { authorization: "Bearer k" };
  expect((await withKey.send("/api/files?path=src/app.ts")).status).toBe(401);
  expect((await withKey.send("/api/files?path=src/app.ts", { headers })).status).toBe(403);
  expect((await withKey.send("/api/specs", { headers })).status).toBe(200);
});
