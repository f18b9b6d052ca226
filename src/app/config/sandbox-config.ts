import { resolve } from "node:path";
import { defined } from "../../base/defined.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { IsolationOptions, SandboxFactory, SandboxIsolation } from "../../sandboxes/contract.ts";
import { daytona } from "../../sandboxes/daytona/daytona-sandbox.ts";
import { e2b } from "../../sandboxes/e2b/e2b-sandbox.ts";
import { pickEnvironment } from "../../sandboxes/host/exec/environment.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { modal } from "../../sandboxes/modal/modal-sandbox.ts";
import { runloop } from "../../sandboxes/runloop/runloop-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { type SandboxKind, sandboxKinds, type VendorKind, vendorKinds } from "./config-lists.ts";
import type { SandboxChoice, SandboxConfig, SandboxOptions } from "./sandbox-schema.ts";

/** The part of a configuration that says where agents work. */
interface Choice {
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
export function sandboxIssues({ agent, sandbox }: Choice): readonly ErrorIssue[] {
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
      message: `is no option of the ${kind} sandbox, which has ${known.join(", ")}`,
    }));
}

const isVendorKind = (kind: string): kind is VendorKind => vendorKinds.some((known) => known === kind);

/** The sandbox that the configuration of a project names; undefined where it names none. */
export function toSandboxFactory(
  { agent, sandbox }: Choice,
  project: { readonly root: string; readonly environment: Readonly<Record<string, string | undefined>> },
): SandboxFactory | undefined {
  const kind = agent?.sandbox;
  if (kind === undefined || typeof kind !== "string") return kind;
  if (isVendorKind(kind)) return toRemoteFactory(kind, sandbox?.options ?? {}, project.environment);
  const { root, folder, files, env } = sandbox?.options ?? {};
  const shared = env === undefined ? {} : { env: valuesOf(env, project.environment) };
  if (kind === "local") return local({ ...shared, root: resolve(project.root, root ?? "") });
  return virtual({
    ...shared,
    root: project.root,
    ...(folder === undefined ? {} : { folder: resolve(project.root, folder) }),
    ...(files === undefined ? {} : { files }),
  });
}

/** A vendor's sandbox, with the key that the environment or the file of `--env` holds. */
function toRemoteFactory(
  kind: VendorKind,
  options: SandboxOptions,
  environment: Readonly<Record<string, string | undefined>>,
): SandboxFactory {
  const { upload, network, files, env, folder, project, api_url: apiUrl, idle_seconds: idle } = options;
  const shared = defined({
    upload,
    network,
    files,
    folder,
    project,
    apiUrl,
    env: env === undefined ? undefined : valuesOf(env, environment),
    idleMs: idle === undefined ? undefined : idle * 1_000,
  });
  if (kind === "e2b") {
    const { template, domain, sandbox_url: sandboxUrl } = options;
    return e2b({ ...shared, ...defined({ template, domain, sandboxUrl, apiKey: environment.E2B_API_KEY }) });
  }
  if (kind === "modal") {
    const { image, app, environment: vendorEnvironment } = options;
    const { MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret } = environment;
    return modal({
      ...shared,
      ...defined({ image, app, environment: vendorEnvironment, tokenId, tokenSecret }),
    });
  }
  if (kind === "runloop") {
    const { blueprint, size } = options;
    return runloop({ ...shared, ...defined({ blueprint, size, apiKey: environment.RUNLOOP_API_KEY }) });
  }
  const { snapshot, image, target } = options;
  return daytona({ ...shared, ...defined({ snapshot, image, target, apiKey: environment.DAYTONA_API_KEY }) });
}

/** Returns the isolation around the commands of agents that name no sandbox. */
export async function isolationOfConfig({ agent, sandbox }: Choice): Promise<SandboxIsolation> {
  const isolation = toIsolation(sandbox);
  const vendors = { daytona, e2b, modal, runloop };
  const chosen = agent?.sandbox ?? "virtual";
  const factory = typeof chosen === "object" ? chosen : isVendorKind(chosen) ? vendors[chosen]() : virtual();
  const none = { wall: "none", description: `The ${factory.name} sandbox says of no wall.` } as const;
  return (await factory.isolation?.({ isolation })) ?? none;
}

// Names are looked up in what `--env` gave as well, which the process itself does not have.
function valuesOf(
  env: NonNullable<SandboxOptions["env"]>,
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  if (!isList(env)) return env;
  return pickEnvironment(env, environment);
}

function isList(env: NonNullable<SandboxOptions["env"]>): env is readonly string[] {
  return Array.isArray(env);
}
