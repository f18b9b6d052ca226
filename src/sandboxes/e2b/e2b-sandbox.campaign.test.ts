import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { sandboxContract } from "../contract.suite.ts";
import { e2b } from "./e2b-sandbox.ts";
import { startFakeE2b } from "./testing/fake-e2b.ts";

const fake = await startFakeE2b();
const root = await mkdtemp(join(tmpdir(), "kit-e2b-"));
afterAll(async () => {
  await fake.close();
  await rm(root, { recursive: true });
});

const options = { apiKey: "e2b_test", apiUrl: fake.url, sandboxUrl: fake.url };
const owner = { agent: "tester", session: "default", project_root: root };
let count = 0;

sandboxContract({
  name: "e2b",
  create() {
    count += 1;
    return e2b(options).open({ ...owner, instance_id: String(count) });
  },
  reopen: () => e2b(options).open({ ...owner, instance_id: String(count) }),
});
