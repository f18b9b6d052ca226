import * as z from "zod/mini";
import {
  dictionary,
  flag,
  integer,
  list,
  live,
  longText,
  name,
  nameOr,
  table,
  text,
  textLike,
  variables,
} from "../../base/settings.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { Infer } from "../../protocol/fields.ts";
import type { IsolationMode, SandboxFactory } from "../../sandboxes/contract.ts";
import {
  hostPatternForm,
  hostPatternSyntax,
  parseHostPattern,
} from "../../sandboxes/host/wall/host-pattern.ts";
import { runloopSizes } from "../../sandboxes/runloop/runloop-options.ts";

export const vendorKinds = ["daytona", "e2b", "modal", "runloop"] as const;
export type VendorKind = (typeof vendorKinds)[number];

/** The sandboxes that the configuration can name. */
export const sandboxKinds = ["virtual", "local", ...vendorKinds] as const;
export type SandboxKind = (typeof sandboxKinds)[number];

const isolationModes = ["required", "auto", "off"] as const satisfies readonly IsolationMode[];

export const isVendorKind = (kind: string): kind is VendorKind =>
  vendorKinds.some((vendor) => vendor === kind);

export const networkHost = textLike(
  hostPatternForm,
  hostPatternSyntax,
  (host) => parseHostPattern(host) !== undefined,
);

/** The sandbox of agents that name none: by its name, or, in `kit.config.ts`, your own sandbox. */
export const sandboxChoice = z.union(
  [z.enum(sandboxKinds), live<SandboxFactory>("a sandbox", isSandboxFactory)],
  { error: nameOr(sandboxKinds, "a sandbox") },
);
export type SandboxChoice = z.output<typeof sandboxChoice>;

/** The `sandbox.options` table: options of the sandbox that `agent.sandbox` names. */
const sandboxOptionsTable = table({
  /** For `local`: the workspace, relative to the root of the project, which is the default. */
  root: text,
  /**
   * For `virtual`: the folder of all workspaces, relative to the root; default `.kit/sandboxes`. For a vendor: the
   * workspace on the machine, absolute.
   */
  folder: text,
  /** For all but `local`: the texts that a new workspace starts with, by path. */
  files: dictionary(longText),
  /** Variables in the environment of commands: a list of names to pass on, or names with values. */
  env: variables,
  /** For vendors. Whether kit uploads the project's files, or one folder of them, to a machine: the files that Git knows. */
  upload: z.union([text, flag]),
  /** For vendors. Hosts that machines may reach, or "any"; default: those of `agent.allow_network`. */
  network: z.union([list(networkHost), z.literal("any")]),
  /** For vendors. Seconds without work after which kit pauses a machine; default 300. */
  idle_seconds: integer(10, 86_400),
  /** For vendors. The name that marks this project's machines; default: one that kit keeps in `.kit`. */
  project: textLike("1 to 63 letters, digits, dots and dashes", /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/),
  /** For `e2b`: the template of new machines. */
  template: text,
  /** For `e2b`: the domain of your own installation instead of the vendor's. */
  domain: text,
  /** For `daytona`: the snapshot of new machines. */
  snapshot: text,
  /** For `daytona`: the image of new machines, in place of a snapshot. For `modal`: their image in a registry. */
  image: text,
  /** For `daytona`: the region. */
  target: text,
  /** For `runloop`: the name of the blueprint of new machines. */
  blueprint: text,
  /** For `runloop`: the size of new machines: "SMALL". */
  size: name(runloopSizes),
  /** For `modal`: the vendor's app that machines belong to. */
  app: text,
  /** For `modal`: the vendor's environment. */
  environment: text,
  /** For vendors. The address of the vendor's API; default: the vendor's own. */
  api_url: text,
  /** For `e2b`: the address of machines; default: derived from the domain. */
  sandbox_url: text,
});
export interface SandboxOptions extends Infer<typeof sandboxOptionsTable> {}

/** The `sandbox.limits` table. */
const limitsTable = table({
  /** Processes and threads at a time; default 1,024. */
  processes: integer(1, 1_000_000),
  /** MiB; default 4,096. */
  memory_mb: integer(16, 16_777_216),
});

/** The `sandbox` table. */
export const sandboxTable = table({
  /**
   * Whether the operating system isolates commands: `required` runs no command without isolation, `auto` (default)
   * uses the isolation that the machine has, `off` uses none. For every sandbox of the project.
   */
  isolation: name(isolationModes),
  /** The limits of one command. */
  limits: limitsTable,
  options: sandboxOptionsTable,
  /**
   * `store`: the session store also holds the files of each session, so that the next owner of an instance has them on
   * any machine. For `virtual`; default: only this machine's disk holds them.
   */
  persist: name(["store"]),
  /** For `persist`: maximum MiB of all files of a workspace; default 256. */
  persist_max_mb: integer(1, 1_048_576),
});
export interface SandboxConfig extends Infer<typeof sandboxTable> {}

function isSandboxFactory(value: unknown): value is SandboxFactory {
  if (typeof value !== "object" || value === null) return false;
  const factory: Partial<Record<keyof SandboxFactory, unknown>> = value;
  return typeof factory.name === "string" && typeof factory.open === "function";
}

/** The part of a configuration that chooses the sandbox of agents. */
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

/**
 * The rules of `sandboxIssues` for the JSON Schema of the configuration. The first needs `agent.sandbox` with any option; the
 * others allow the options of the named sandbox only.
 */
export const sandboxKeywords = {
  allOf: [
    implies(
      {
        required: ["sandbox"],
        properties: { sandbox: { required: ["options"], properties: { options: { minProperties: 1 } } } },
      },
      { required: ["agent"], properties: { agent: { required: ["sandbox"] } } },
    ),
    ...sandboxKinds.map((kind) => {
      const options = {
        propertyNames: { enum: optionsOf[kind] },
        ...(isVendorKind(kind) ? { properties: { folder: { pattern: "^/" } } } : {}),
      };
      return implies(
        {
          required: ["agent"],
          properties: { agent: { required: ["sandbox"], properties: { sandbox: { const: kind } } } },
        },
        { properties: { sandbox: { properties: { options } } } },
      );
    }),
  ],
};

function implies(condition: object, consequence: object): object {
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  return { if: condition, then: consequence };
}

/** Reports options that do not fit the sandbox that `agent.sandbox` names. */
export function sandboxIssues({ agent, sandbox }: ConfiguredSandbox): readonly ErrorIssue[] {
  const givenOptions = Object.keys(sandbox?.options ?? {});
  if (givenOptions.length === 0) return [];
  const kind = agent?.sandbox;
  if (typeof kind !== "string") {
    const instead =
      kind === undefined ? `set it to ${sandboxKinds.join(" or ")}` : "give them to the sandbox itself";
    return [{ path: "sandbox.options", message: `is for the sandbox that agent.sandbox names: ${instead}` }];
  }
  const { folder } = sandbox?.options ?? {};
  if (isVendorKind(kind) && folder?.startsWith("/") === false)
    return [{ path: "sandbox.options.folder", message: "must be absolute: it lies on the machine" }];
  const knownOptions: readonly string[] = optionsOf[kind];
  return givenOptions
    .filter((option) => !knownOptions.includes(option))
    .map((option) => ({
      path: `sandbox.options.${option}`,
      message: `is not an option of the ${kind} sandbox, which has ${knownOptions.join(", ")}`,
    }));
}
