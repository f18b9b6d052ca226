import { KitError } from "../../base/kit-error.ts";
import { type GitArguments, type GitResult, runGit } from "../../processes/git.ts";

/** Runs Git on the files of a whole project. Throws `unavailable` if Git cannot be started. */
export async function gitOnProject(
  cwd: string,
  args: GitArguments,
  input?: string,
): Promise<Exclude<GitResult, { readonly status: "missing" }>> {
  const result = await runGit(args, {
    cwd,
    timeoutMs: 600_000,
    maxBytes: 512 * 1024 * 1024,
    settings: { "core.quotePath": "false" },
    ...(input === undefined ? {} : { input }),
  });
  if (result.status === "missing")
    throw new KitError({ code: "unavailable", message: "Git could not be started." });
  return result;
}
