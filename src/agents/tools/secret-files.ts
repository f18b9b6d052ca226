import { KitError } from "../../base/kit-error.ts";
import { isGrantedPath, isSecretFile } from "../policy/protected-paths.ts";
import type { ToolEnvironment } from "./tool-environment.ts";

/** Whether a path is a file of secrets that this agent is not granted, whatever a link calls it. */
export async function isSecret(
  path: string,
  { sandbox, policy }: Pick<ToolEnvironment, "sandbox" | "policy">,
): Promise<boolean> {
  const files = await sandbox();
  const granted = policy.allowProtectedPaths ?? [];
  const isOne = (name: string): boolean => isSecretFile(name) && !isGrantedPath(name, granted);
  if (isOne(`${files.cwd}/${path}`)) return true;
  const target = await files.resolve(path).catch(() => "");
  return isOne(target);
}

export function secretRefusal(path: string, { asks }: Pick<ToolEnvironment, "asks">): KitError {
  const otherwise = asks ? "" : "; with `approvals`, a person is asked";
  return new KitError({
    code: "forbidden",
    message: `${path} holds secrets, and is not for models to read. Grant it in allowProtectedPaths${otherwise}. What is set, .env.example may say.`,
  });
}
