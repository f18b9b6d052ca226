import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { createFolder, wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { checksOf, judgeChange } from "./testing/judge-change.ts";

const folder = await createFolder();
let visits = 0;
const server = createServer((_request, response) => {
  visits += 1;
  response.end();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
afterAll(() => void server.close());

const before = {
  ".gitignore": ".kit\nnode_modules\n",
  ".kiro/specs/a/requirements.md":
    "# Requirements\n\n## Requirement 1: One\n\n#### Acceptance Criteria\n\n1. WHEN it is asked THEN the system SHALL say one.\n",
  "a.mjs": "export const other = 0;\n",
};

wallTest(
  "the tests see neither the machine's secrets and files nor its network, and change no package",
  async () => {
    const secret = join(folder, "secret");
    writeFileSync(secret, "key");
    process.env.KIT_VERIFY_SECRET = "key";
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    let installed = "";
    const prepare = async (root: string): Promise<void> => {
      installed = join(root, "node_modules/one/index.js");
      mkdirSync(join(root, "node_modules/one"), { recursive: true });
      writeFileSync(installed, "module.exports = 1;\n");
    };
    const test = `import assert from "node:assert/strict";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import one from "one";
import { say } from "./a.mjs";
test("a#1.1", async () => {
  assert.equal(say(), one);
  assert.equal(process.env.KIT_VERIFY_SECRET, undefined);
  assert.throws(() => readFileSync(${JSON.stringify(secret)}), { code: "ENOENT" });
  await assert.rejects(fetch("http://127.0.0.1:${port}/"));
  assert.throws(() => writeFileSync(realpathSync("node_modules/one/index.js"), ""), { code: "EROFS" });
});
`;
    try {
      const verdict = await judgeChange(
        before,
        { "a.mjs": "export function say() {\n  return 1;\n}\n", "a.test.mjs": test },
        {
          prepare,
          criteria: ["a#1.1"],
          onStep: () => expect(readFileSync(installed, "utf8")).toContain("1"),
        },
      );
      expect(checksOf(verdict)).toBe("closed");
      expect(verdict.isolated).toBe(true);
      expect(visits).toBe(0);
    } finally {
      delete process.env.KIT_VERIFY_SECRET;
    }
  },
);

wallTest("a link that a test leaves behind leads no write of the judge out of its folder", async () => {
  const target = join(folder, "target.mjs");
  writeFileSync(target, "safe");
  const test = `import assert from "node:assert/strict";
import { rmSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { say } from "./a.mjs";
test("a#1.1", () => {
  assert.equal(say(), 1);
  rmSync("a.mjs");
  symlinkSync(${JSON.stringify(target)}, "a.mjs");
});
`;
  const verdict = await judgeChange(
    before,
    { "a.mjs": "export function say() {\n  return 1;\n}\n", "a.test.mjs": test },
    { criteria: ["a#1.1"] },
  );
  expect(checksOf(verdict)).toBe("refused flaky");
  expect(readFileSync(target, "utf8")).toBe("safe");
});
