import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { loadOuterRules } from "../../files/outer-rules.ts";
import type { Sandbox, SandboxOwner } from "../contract.ts";
import { createHostSandbox } from "../host/create-host-sandbox.ts";
import { basicNames, pickEnvironment } from "../host/exec/environment.ts";
import type { LocalOptions } from "./local-options.ts";

/** Opens the folder. Throws `unavailable` when there is none. */
export async function openLocal(options: LocalOptions, owner: SandboxOwner): Promise<Sandbox> {
  const calledRoot = resolve(options.root ?? owner.project_root ?? process.cwd());
  const root = await folderAt(calledRoot);
  const environment = environmentOf(options.env ?? []);
  return createHostSandbox(
    "local",
    { root, calledRoot, environment: async () => environment, outerRules: () => loadOuterRules(root) },
    { shared: true },
  );
}

function environmentOf(env: NonNullable<LocalOptions["env"]>): Record<string, string> {
  const basics = pickEnvironment(basicNames, process.env);
  const listed = isList(env) ? pickEnvironment(env, process.env) : pickEnvironment(Object.keys(env), env);
  return { ...basics, ...listed };
}

function isList(env: NonNullable<LocalOptions["env"]>): env is readonly string[] {
  return Array.isArray(env);
}

async function folderAt(root: string): Promise<string> {
  try {
    const path = await realpath(root);
    if ((await stat(path)).isDirectory()) return path;
  } catch (error) {
    throw noFolder(error);
  }
  throw noFolder();
}

function noFolder(cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "The folder of the local sandbox cannot be opened.",
    hint: "Set `root` of local(), or `sandbox.options.root` of the configuration, to a folder that exists.",
    cause,
  });
}
