import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { specRepository } from "../../app/spec-run/testing/spec-repository.ts";
import { createOutput } from "../print/output.ts";
import { openEditorProject } from "./editor-project.ts";

test("work that waits in the engine of a spec run has only the rights that 'kit.toml' gives", async () => {
  const coder = new URL("../../app/spec-run/testing/coder.ts", import.meta.url).href;
  await using repository = await specRepository({
    "kit.toml": '[agent]\nsandbox = "local"\n',
    "src/agents/honest.ts": `import { coder } from "${coder}";\nexport const triggers = { webhook: true };\nexport default coder("honest");\n`,
  });
  const { root } = repository;
  vi.stubEnv("KIT_TRUST", "1");
  const leaving = new AbortController();
  const context = {
    ...{ output: createOutput(new PassThrough(), new PassThrough()), input: new PassThrough() },
    ...{ cwd: root, root, configFile: undefined, envFile: undefined, json: false },
    ...{ signal: leaving.signal, platform: process.platform },
  };
  const project = await openEditorProject(root, { context, agent: "honest", models: [] }, createApprovals());
  try {
    const runs = await project.openRuns(undefined);
    try {
      const message = "Do this task: Add up";
      const { metadata } = await runs.client.agents.invoke("honest", { id: "other", message });
      expect(metadata.finish_reason).toBe("stop");
      expect(await repository.git("status", "--porcelain")).toBe("");
    } finally {
      await runs.close();
    }
  } finally {
    await project.service.close({ timeoutMs: 0 });
    vi.unstubAllEnvs();
  }
});
