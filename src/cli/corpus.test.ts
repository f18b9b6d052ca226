import { describe, expect, test } from "vitest";
import { hasSharedCorpus, loadSharedCorpus } from "../testing/shared-corpus.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { runKit } from "./testing/run-kit.ts";

const lines: readonly (readonly string[])[] = [
  ["specs", "list", "--all"],
  ["specs", "validate"],
  ["specs", "validate", "--format", "sarif"],
  ["specs", "coverage", "--all"],
  ["specs", "graph"],
  ["specs", "export", "--format", "jsonl"],
  ["guidelines", "list"],
  ["guidelines", "explain", "src/index.ts"],
  ["guidelines", "lint"],
  ["doctor"],
];

describe.skipIf(!hasSharedCorpus)("on real repositories", async () => {
  const corpus = hasSharedCorpus ? await loadSharedCorpus() : [];
  const chosen = corpus.filter(({ name }) => ["cc-sdd", "langfuse", "rwr"].includes(name));

  test.each(chosen)("every command works on $name", async ({ files }) => {
    const texts = Object.fromEntries([...files].map(([path, { text }]) => [path, text]));
    await using repository = await createTemporaryRepository(texts);
    for (const line of lines) {
      const { exitCode, stdout, stderr } = await runKit(line, { cwd: repository.root });
      expect({ line, exitCode: exitCode === 0 || exitCode === 1, stderr }).toEqual({
        line,
        exitCode: true,
        stderr: expect.not.stringMatching(/Something went wrong|\n {4}at /),
      });
      expect(stdout + stderr).not.toContain("\u001b");
    }
  });
});
