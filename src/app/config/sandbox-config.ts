import { defined } from "../../base/record.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import { type SandboxKind, sandboxKinds, type VendorKind, vendorKinds } from "./config-lists.ts";
import type { SandboxChoice, SandboxConfig, SandboxOptions } from "./sandbox-schema.ts";

/** The part of a configuration that says where agents work. */
export interface ConfiguredSandbox {
  readonly agent?: { readonly sandbox?: SandboxChoice | undefined } | undefined;
  readonly sandbox?: SandboxConfig | undefined;
}

const optionsOfVendors = [
  "upload",
  "network",
  "files",
  "env",
  "folder",
  "idle_seconds",
  "project",
  "api_url",
] as const;
const optionsOf: Readonly<Record<SandboxKind, readonly (keyof SandboxOptions)[]>> = {
  virtual: ["folder", "files", "env"],
  local: ["root", "env"],
  daytona: [...optionsOfVendors, "snapshot", "image", "target"],
  e2b: [...optionsOfVendors, "template", "domain", "sandbox_url"],
  modal: [...optionsOfVendors, "image", "app", "environment"],
  runloop: [...optionsOfVendors, "blueprint", "size"],
};

/** Returns the options that the configuration gives to every sandbox of the project. */
export function toIsolation({ isolation, limits }: SandboxConfig = {}): IsolationOptions {
  const { processes, memory_mb } = limits ?? {};
  return defined({
    isolation,
    limits: limits === undefined ? undefined : defined({ processes, memoryMb: memory_mb }),
  });
}

/** Reports options that do not fit the sandbox that `agent.sandbox` names. */
export function sandboxIssues({ agent, sandbox }: ConfiguredSandbox): readonly ErrorIssue[] {
  const given = Object.keys(sandbox?.options ?? {});
  if (given.length === 0) return [];
  const kind = agent?.sandbox;
  if (typeof kind !== "string") {
    const instead =
      kind === undefined ? `set it to ${sandboxKinds.join(" or ")}` : "give them to the sandbox itself";
    return [{ path: "sandbox.options", message: `is for the sandbox that agent.sandbox names: ${instead}` }];
  }
  const { folder } = sandbox?.options ?? {};
  if (isVendorKind(kind) && folder?.startsWith("/") === false)
    return [{ path: "sandbox.options.folder", message: "must be absolute: it lies on the machine" }];
  const known: readonly string[] = optionsOf[kind];
  return given
    .filter((option) => !known.includes(option))
    .map((option) => ({
      path: `sandbox.options.${option}`,
      message: `is not an option of the ${kind} sandbox, which has ${known.join(", ")}`,
    }));
}

export const isVendorKind = (kind: string): kind is VendorKind => vendorKinds.some((known) => known === kind);
