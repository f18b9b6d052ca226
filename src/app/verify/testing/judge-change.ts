import { rm } from "node:fs/promises";
import { join } from "node:path";
import { openProject } from "../../../project/open-project.ts";
import type { Verdict } from "../../../protocol/verdict.ts";
import { createTemporaryRepository } from "../../../testing/temporary-repository.ts";
import type { VerifyOptions } from "../verify-options.ts";
import { verifySpecs } from "../verify-specs.ts";

/** Texts by path; `null` removes a file. */
export type Files = Readonly<Record<string, string | null>>;

interface JudgeChangeOptions extends VerifyOptions {
  /** Called between the commit and the change. */
  readonly prepare?: (root: string) => Promise<void>;
}

/** Judges a change of a new repository that has the files of `before`. */
export async function judgeChange(
  before: Readonly<Record<string, string>>,
  change: Files,
  { prepare, ...options }: JudgeChangeOptions = {},
): Promise<Verdict> {
  await using repository = await createTemporaryRepository(before);
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await prepare?.(repository.root);
  for (const [path, text] of Object.entries(change)) {
    if (text === null) await rm(join(repository.root, path));
    else await repository.write(path, text);
  }
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  try {
    return await verifySpecs(project, options);
  } finally {
    await project.close();
  }
}

/** A verdict in a few words: its end, then the checks of its reasons. */
export function checksOf({ end, reasons }: Verdict): string {
  return [end, ...new Set(reasons.map(({ check }) => check))].join(" ");
}
