import { resolve } from "node:path";
import { defined } from "../../base/defined.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type {
  IsolationMode,
  IsolationOptions,
  SandboxFactory,
  SandboxIsolation,
} from "../../sandboxes/contract.ts";
import { daytona } from "../../sandboxes/daytona/daytona-sandbox.ts";
import { e2b } from "../../sandboxes/e2b/e2b-sandbox.ts";
import { pickEnvironment } from "../../sandboxes/host/exec/environment.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { modal } from "../../sandboxes/modal/modal-sandbox.ts";
import type { RunloopOptions } from "../../sandboxes/runloop/runloop-options.ts";
import { runloop } from "../../sandboxes/runloop/runloop-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";

/** The sandboxes that have a name in the configuration. */
export type SandboxKind = "virtual" | "local" | VendorKind;
type VendorKind = "daytona" | "e2b" | "modal" | "runloop";
const vendorKinds: readonly VendorKind[] = ["daytona", "e2b", "modal", "runloop"];
export const sandboxKinds: readonly SandboxKind[] = ["virtual", "local", ...vendorKinds];

/** Where agents that name no sandbox work: a sandbox by its name, or, in `kit.config.ts`, one of your own. */
export type SandboxChoice = SandboxKind | SandboxFactory;

/** The `sandbox.options` table: options of the sandbox that `agent.sandbox` names. */
export interface SandboxOptions {
  /** Of `local`: the workspace, relative to the root of the project, which is the default. */
  readonly root?: string;
  /**
   * Of `virtual`: the folder of all workspaces, relative to the root; default `.kit/sandboxes`. Of a vendor: the
   * workspace on the machine, absolute.
   */
  readonly folder?: string;
  /** Of all but `local`: the texts that a new workspace starts with, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Variables that commands get: a list of names to hand on, or names with values. */
  readonly env?: readonly string[] | Readonly<Record<string, string>>;
  /** For vendors. Whether kit uploads the project's files to a machine, or a folder of them, as Git knows them. */
  readonly upload?: boolean | string;
  /** For vendors. Hosts that machines may reach, or "any"; default: those of `agent.allow_network`. */
  readonly network?: readonly string[] | "any";
  /** For vendors. Seconds without work after which kit pauses a machine; default 300. */
  readonly idle_seconds?: number;
  /** For vendors. The name that marks this project's machines; default: one that kit keeps in `.kit`. */
  readonly project?: string;
  /** Of `e2b`: the template of new machines. */
  readonly template?: string;
  /** Of `e2b`: the vendor's domain, where it is one's own. */
  readonly domain?: string;
  /** Of `daytona`: the snapshot of new machines. */
  readonly snapshot?: string;
  /** Of `daytona`: their image, in place of a snapshot. Of `modal`: their image, as a registry names it. */
  readonly image?: string;
  /** Of `daytona`: the region. */
  readonly target?: string;
  /** Of `runloop`: the name of the blueprint of new machines. */
  readonly blueprint?: string;
  /** Of `runloop`: how large they are: "SMALL". */
  readonly size?: NonNullable<RunloopOptions["size"]>;
  /** Of `modal`: the vendor's app that machines belong to. */
  readonly app?: string;
  /** Of `modal`: the vendor's environment. */
  readonly environment?: string;
  /** For vendors. The address of the vendor's interface; default: the vendor's own. */
  readonly api_url?: string;
  /** Of `e2b`: where machines are reached, in place of what the domain says. */
  readonly sandbox_url?: string;
}

/** The `sandbox.limits` table. */
export interface LimitsConfig {
  /** Processes and threads at a time; default 1,024. */
  readonly processes?: number;
  /** MiB; default 4,096. */
  readonly memory_mb?: number;
}

/** The `sandbox` table. */
export interface SandboxConfig {
  /**
   * Whether commands are walled in by the operating system: `required` runs none without a wall, `auto` (default)
   * takes the wall that the machine has, `off` has none. For every sandbox of the project.
   */
  readonly isolation?: IsolationMode;
  /** What one command may use up. */
  readonly limits?: LimitsConfig;
  readonly options?: SandboxOptions;
}

/** The part of a configuration that says where agents work. */
interface Choice {
  readonly agent?: { readonly sandbox?: SandboxChoice };
  readonly sandbox?: SandboxConfig;
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

export const isolationModes: readonly IsolationMode[] = ["required", "auto", "off"];

/** What the configuration says to every sandbox of the project. */
export function toIsolation({ isolation, limits }: SandboxConfig = {}): IsolationOptions {
  const { processes, memory_mb } = limits ?? {};
  return defined({
    isolation,
    limits: limits === undefined ? undefined : defined({ processes, memoryMb: memory_mb }),
  });
}

/** What is wrong with options beside the sandbox that they are for. */
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

/** What stands around the commands of agents that name no sandbox. */
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
