import { resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { IsolationOptions, SandboxFactory, SandboxIsolation } from "../../sandboxes/contract.ts";
import type { ConfiguredSandbox, SandboxConfig, SandboxOptions } from "../config/sandbox-schema.ts";
import { isVendorKind, type VendorKind } from "../config/sandbox-schema.ts";
import type { KeepWorkspaces, RuntimeParts } from "./agent-factory.ts";

/** The environment, with the variables of `--env`. */
type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the sandbox named in a project's configuration, else a virtual workspace for each session. Only the code of that sandbox is
 * loaded.
 */
export async function openSandbox(
  { agent, sandbox }: ConfiguredSandbox,
  project: { readonly root: string; readonly environment: Environment },
): Promise<SandboxFactory> {
  const kind = agent?.sandbox ?? "virtual";
  if (typeof kind !== "string") return kind;
  const { root, folder, files, env, ...vendorOptions } = sandbox?.options ?? {};
  const values = env === undefined ? undefined : await valuesOf(env, project.environment);
  if (isVendorKind(kind))
    return await openRemote(kind, { folder, files, ...vendorOptions, env: values }, project.environment);
  const shared = defined({ env: values });
  if (kind === "local") {
    const { local } = await import("../../sandboxes/local/local-sandbox.ts");
    return local({ ...shared, root: resolve(project.root, root ?? "") });
  }
  const { virtual } = await import("../../sandboxes/virtual/virtual-sandbox.ts");
  return virtual({
    ...shared,
    root: project.root,
    folder: folder === undefined ? undefined : resolve(project.root, folder),
    files,
  });
}

/** Opens a vendor's sandbox, with its key from the environment or the file of `--env`. */
async function openRemote(
  kind: VendorKind,
  options: Omit<SandboxOptions, "env"> & { readonly env: Readonly<Record<string, string>> | undefined },
  environment: Environment,
): Promise<SandboxFactory> {
  const { upload, network, files, env, folder, project, api_url: apiUrl, idle_seconds: idle } = options;
  const idleMs = idle === undefined ? undefined : idle * 1_000;
  const shared = defined({ upload, network, files, folder, project, apiUrl, env, idleMs });
  switch (kind) {
    case "e2b": {
      const { e2b } = await import("../../sandboxes/e2b/e2b-sandbox.ts");
      const { template, domain, sandbox_url: sandboxUrl } = options;
      return e2b({
        ...shared,
        ...defined({ template, domain, sandboxUrl, apiKey: environment.E2B_API_KEY }),
      });
    }
    case "modal": {
      const { modal } = await import("../../sandboxes/modal/modal-sandbox.ts");
      const { image, app, environment: vendorEnvironment } = options;
      const { MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret } = environment;
      const modalOptions = defined({ image, app, environment: vendorEnvironment, tokenId, tokenSecret });
      return modal({ ...shared, ...modalOptions });
    }
    case "runloop": {
      const { runloop } = await import("../../sandboxes/runloop/runloop-sandbox.ts");
      const { blueprint, size } = options;
      return runloop({ ...shared, ...defined({ blueprint, size, apiKey: environment.RUNLOOP_API_KEY }) });
    }
    case "daytona": {
      const { daytona } = await import("../../sandboxes/daytona/daytona-sandbox.ts");
      const { snapshot, image, target } = options;
      const { DAYTONA_API_KEY: apiKey, DAYTONA_API_URL: addressOfVariable } = environment;
      // The package would look for it in a `.env` of the folder, too.
      const address = { apiUrl: apiUrl ?? addressOfVariable };
      return daytona({ ...shared, ...defined({ ...address, snapshot, image, target, apiKey }) });
    }
  }
}

/** Returns the options that the configuration gives to every sandbox of the project. */
export function toIsolation({ isolation, limits }: SandboxConfig = {}): IsolationOptions {
  const { processes, memory_mb } = limits ?? {};
  return defined({
    isolation,
    limits: limits === undefined ? undefined : defined({ processes, memoryMb: memory_mb }),
  });
}

/** Returns the isolation around the commands of agents that name no sandbox. */
export async function isolationOfConfig(config: ConfiguredSandbox): Promise<SandboxIsolation> {
  // The options of a sandbox do not affect the isolation of its commands.
  const factory = await openSandbox({ agent: config.agent }, { root: process.cwd(), environment: {} });
  const none = { wall: "none", description: `The ${factory.name} sandbox reports no isolation.` } as const;
  return (await factory.isolation?.({ isolation: toIsolation(config.sandbox) })) ?? none;
}

// Names are also looked up in the variables of `--env`, which are not in the environment of the process.
async function valuesOf(
  env: NonNullable<SandboxOptions["env"]>,
  environment: Environment,
): Promise<Readonly<Record<string, string>>> {
  if (!isList(env)) return env;
  const { pickEnvironment } = await import("../../sandboxes/host/exec/command-environment.ts");
  return pickEnvironment(env, environment);
}

function isList(env: NonNullable<SandboxOptions["env"]>): env is readonly string[] {
  return Array.isArray(env);
}

/**
 * Returns a function that persists workspaces in stores, if the configuration asks for it. `fenceOf` returns the fence of this machine's lease on an instance.
 * Throws `invalid_request` for a session store that cannot store workspaces.
 */
export async function workspaceKeeper(
  { persistedBytes: maxBytes, store }: Pick<RuntimeParts, "persistedBytes" | "store">,
  fenceOf?: (instance: { readonly agent: string; readonly instance_id: string }) => number | undefined,
): Promise<KeepWorkspaces | undefined> {
  if (maxBytes === undefined) return undefined;
  if (store.workspaces === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: "sandbox.persist is set, but the session store cannot store workspaces.",
      hint: "Use a store of kit's own: sqlite or Postgres.",
    });
  }
  const { persistWorkspaces } = await import("../../sandboxes/persist/persistent-sandbox.ts");
  const within = new WeakMap<SandboxFactory, SandboxFactory>();
  return (sandbox, { workspaces }) => {
    if (sandbox.name !== "virtual" || workspaces === undefined) return sandbox;
    const inner = within.get(sandbox) ?? sandbox;
    const persistent = persistWorkspaces(inner, { store: workspaces, maxBytes, fenceOf });
    within.set(persistent, inner);
    return persistent;
  };
}
