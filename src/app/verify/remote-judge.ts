import { KitError } from "../../base/kit-error.ts";
import type { Project } from "../../project/project.ts";
import type { Verdict, VerifyRequest } from "../../protocol/verdict.ts";
import { findWall } from "../../sandboxes/host/wall/find-wall.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { toIsolation } from "../runtime/open-sandbox.ts";
import { CriteriaOfChange } from "./select-criteria.ts";
import { Trees } from "./trees.ts";
import type { VerifyOptions } from "./verify-options.ts";
import { verifySpecs } from "./verify-specs.ts";

/** Judges for callers who are not at the terminal, over HTTP and MCP: isolated, or not at all. */
export interface RemoteJudge {
  /**
   * Checks whether a verdict can be given. Throws `forbidden` in a read-only project and on a system without isolation, `invalid_request`
   * for a feature, task, criterion or revision that is not there, and `unavailable` outside of Git.
   */
  admit(request: VerifyRequest): Promise<void>;
  judge(request: VerifyRequest, how: Pick<VerifyOptions, "signal" | "onStep">): Promise<Verdict>;
}

export function createRemoteJudge(project: Project, config: LoadedConfig["config"]): RemoteJudge {
  const settings = config.specs?.verify;
  const checks = config.guidelines?.check;
  // A person at the terminal can answer for the code of a folder; these callers cannot, whatever the configuration says.
  const isolation = { ...toIsolation(config.sandbox), isolation: "required" } as const;
  return {
    async admit(request) {
      await checkMayJudge(project);
      try {
        await checkRequest(project, request);
      } catch (error) {
        throw withHint(error);
      }
    },
    async judge(request, how) {
      // A run that resumes may do so in a process that may less.
      await checkMayJudge(project);
      try {
        return await verifySpecs(project, { ...request, ...how, settings, checks, isolation });
      } catch (error) {
        throw withHint(error);
      }
    },
  };
}

async function checkMayJudge({ readOnly }: Project): Promise<void> {
  if (readOnly)
    throw new KitError({
      code: "forbidden",
      message: "The project is read-only here, and a verdict records the results of its tests.",
      hint: "Ask a server that may write, or run kit specs verify in the project.",
    });
  const found = await findWall();
  if (found.wall !== "none") return;
  throw new KitError({
    code: "forbidden",
    message: `The tests of a verdict run in isolation or, for callers over a network or MCP, not at all. ${found.reason} ${found.hint}`,
    hint: "A person can run kit specs verify at the terminal without it.",
  });
}

/** Finds at once what the judge would find after it has listed the files of both sides. */
async function checkRequest(project: Project, request: VerifyRequest): Promise<void> {
  const { since, ...choice } = request;
  if (Object.keys(choice).length > 0) {
    await project.refresh();
    new CriteriaOfChange(project, { before: new Map(), after: new Map(), paths: [] }).choose(choice);
  }
  await using trees = await Trees.open(project.root);
  await trees.base(since);
}

/** Servers keep the hints of errors to themselves; those of the judge say what to do, and nothing about the machine. */
function withHint(error: unknown): unknown {
  if (!(error instanceof KitError) || error.hint === undefined) return error;
  const { code, message, hint, meta } = error;
  return new KitError({ code, message: `${message} ${hint}`, meta, cause: error });
}
