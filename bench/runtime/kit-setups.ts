import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentProfile } from "../../src/index.ts";
import { generateRepository } from "../project/generate-repository.ts";

/**
 * kit in three setups, each a separate subject: with its defaults in an empty folder; with its defaults in
 * a repository with specs and rules; and with all repository features turned off, which no peer has either.
 */
export const kitSetups = ["kit", "kit-repository", "kit-plain"] as const;
export type KitSetup = (typeof kitSetups)[number];

export const kitLabels: Readonly<Record<KitSetup, string>> = {
  kit: "kit, empty folder",
  "kit-repository": "kit, repository",
  "kit-plain": "kit, features off",
};

/** The agent's profile in a setup; empty for kit's defaults. */
export const profileOf = (setup: KitSetup): AgentProfile =>
  setup === "kit-plain" ? { specs: false, guidelines: false, projectInstructions: false } : {};

const rules = `# Payments

- Money is counted in cents, as integers.
- Every handler checks who asks before it reads.
- Errors name the field that was wrong, never its value.

## Tests

- Each criterion of a spec has a test that names it.
- No test reaches the network.
`;

/** Makes the folder that kit runs in: 200 files of specs and rules below AGENTS.md and CLAUDE.md, or nothing. */
export async function prepareRoot(setup: KitSetup, root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  if (setup !== "kit-repository") return;
  generateRepository({ root, files: 200, seed: 8 });
  await writeFile(
    join(root, "AGENTS.md"),
    rules.repeat(8).replaceAll("# ", () => "# On "),
  );
  await writeFile(join(root, "CLAUDE.md"), "@AGENTS.md\n");
}
