import { KitError } from "../../base/kit-error.ts";
import type { RestateOptions } from "../../engine/restate/create-restate-engine.ts";
import type { EngineLimits } from "../../engine/shared/engine-base.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import type { EngineConfig, KitConfig, SessionsConfig } from "./config-schema.ts";

/** The `engine` table of a configuration that may name a database alone. */
export function toEngineTable(engine: KitConfig["engine"]): EngineConfig {
  return typeof engine === "string" ? { kind: "postgres", url: engine } : (engine ?? {});
}

/** Where accepted work is kept, for people: without the user and the password of a database. */
export function describeEngine(
  config: Pick<KitConfig, "engine" | "store">,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const shared = sharedEngineOf(config, environment);
  if (shared === undefined)
    return `Accepted work is kept in ${toEngineTable(config.engine).folder ?? ".kit/engine"}.`;
  const { host, pathname } = new URL(shared.url);
  const text = `Accepted work is shared through Postgres at ${host}${pathname}, schema ${shared.schema ?? "kit"}.`;
  if (shared.restate === undefined) return text;
  const at = shared.restate.address ?? shared.restate.listen;
  return `${text} Restate calls the machines for it${at === undefined ? "" : ` at ${at}`}.`;
}

/** The database of an engine that several machines share; undefined for one of this machine. */
export interface SharedEngine {
  readonly url: string;
  /** The database without the pooler that `url` leads to. */
  readonly directUrl?: string | undefined;
  readonly schema: string | undefined;
  /** Where Restate calls the nodes. */
  readonly restate?: RestateOptions | undefined;
}

/**
 * The database that the configuration names for the engine. Throws `invalid_request` if it names none, or if sessions would be stored on
 * one machine.
 */
export function sharedEngineOf(
  { engine: engineSetting, store }: Pick<KitConfig, "engine" | "store">,
  environment: Environment,
): SharedEngine | undefined {
  const engine = toEngineTable(engineSetting);
  if (engine.kind === "embedded" || (engine.kind === undefined && engine.url === undefined)) return undefined;
  const { kind = "postgres" } = engine;
  const url =
    engine.url ?? readVariable(environment.KIT_ENGINE_URL) ?? readVariable(environment.DATABASE_URL);
  if (url === undefined || !isPostgresUrl(url)) throw noAddress(url, kind);
  const directUrl = engine.direct_url ?? readVariable(environment.KIT_ENGINE_DIRECT_URL);
  if (directUrl !== undefined && !isPostgresUrl(directUrl)) throw noDirectAddress();
  if (store === "sqlite" || store === "memory") throw sessionsElsewhere(store, kind);
  if (typeof store === "object" && store.claim === undefined)
    throw sessionsElsewhere("one without `claim`", kind);
  return {
    url,
    directUrl,
    schema: engine.schema,
    ...(engine.kind === "restate" ? { restate: restateOf(engine, environment) } : {}),
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the value of a variable; undefined if it is empty. */
function readVariable(variable: string | undefined): string | undefined {
  const value = variable?.trim();
  return value === "" ? undefined : value;
}

function restateOf({ restate = {} }: EngineConfig, environment: Environment): RestateOptions {
  const { ingress, admin, listen, address, identity_key, service } = restate;
  return {
    ingress: toList(ingress ?? environment.KIT_RESTATE_INGRESS),
    admin: toList(admin ?? environment.KIT_RESTATE_ADMIN),
    listen: listen ?? environment.KIT_RESTATE_LISTEN,
    address: address ?? environment.KIT_RESTATE_ADDRESS,
    identityKey: toList(identity_key ?? environment.KIT_RESTATE_IDENTITY_KEY),
    token: environment.KIT_RESTATE_TOKEN,
    service,
  };
}

function toList(text: string | undefined): readonly string[] | undefined {
  return text
    ?.split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function noAddress(url: string | undefined, kind: string): KitError {
  return new KitError({
    code: "invalid_request",
    message:
      url === undefined
        ? `engine.kind is ${kind}, and no address of a database is set.`
        : "The address of the engine's database is not a Postgres address.",
    hint: "Set KIT_ENGINE_URL (or DATABASE_URL) to postgres://user:password@host:5432/name, or engine.url; percent-encode special characters of the password, such as %2F for /.",
  });
}

function noDirectAddress(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The direct address of the engine's database is not a Postgres address.",
    hint: "Set KIT_ENGINE_DIRECT_URL, or engine.direct_url, to postgres://user:password@host:5432/name: the database itself, not its pooler. Percent-encode special characters of the password.",
  });
}

function sessionsElsewhere(store: string, kind: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `engine.kind is ${kind}, and store is ${store}: other machines could not read the sessions of this one.`,
    hint: "Leave store out, so that the engine's database holds the sessions, or name a Postgres database.",
  });
}

const defaultPersistedMb = 256;

/** Returns the maximum bytes of a stored workspace; undefined if the store keeps no workspaces. Throws `invalid_request` for a sandbox that is not virtual. */
export function persistedBytesOf({
  agent,
  sandbox,
}: Pick<KitConfig, "agent" | "sandbox">): number | undefined {
  if (sandbox?.persist === undefined) return undefined;
  const kind = agent?.sandbox ?? "virtual";
  if (kind === "virtual") return (sandbox.persist_max_mb ?? defaultPersistedMb) * 1_048_576;
  throw new KitError({
    code: "invalid_request",
    message: `sandbox.persist keeps the workspaces of virtual sandboxes, and agent.sandbox is ${typeof kind === "string" ? kind : "one of your own"}.`,
    hint: "Leave it out: a vendor's machine is reached from everywhere, and a folder of the project is on each machine.",
  });
}

/** Returns a warning about workspaces that the next owner of an instance would not have on another machine. */
export function workspacesElsewhere({
  agent,
  engine: engineSetting,
  sandbox,
}: Pick<KitConfig, "agent" | "engine" | "sandbox">): string | undefined {
  const engine = toEngineTable(engineSetting);
  if (engine.kind === "embedded" || (engine.kind === undefined && engine.url === undefined)) return undefined;
  const kind = agent?.sandbox ?? "virtual";
  const { folder, root } = sandbox?.options ?? {};
  const isElsewhere =
    (kind === "virtual" && sandbox?.persist === undefined && folder === undefined) ||
    (kind === "local" && root === undefined);
  if (!isElsewhere) return undefined;
  return `Several machines share the work, and the files that agents work on are on the disk of one machine (agent.sandbox = "${String(kind)}"): after a takeover the next machine does not have them. ${
    kind === "virtual" ? 'Set sandbox.persist = "store", name' : "Name"
  } a folder that all machines share (sandbox.options.${kind === "virtual" ? "folder" : "root"}), or use a remote sandbox.`;
}

const dayMs = 24 * 3_600_000;

/** Returns how long sessions are kept, in ms; undefined if they are never removed. */
export function sessionRetentionMs({ retention_days }: SessionsConfig = {}): number | undefined {
  return retention_days === undefined ? undefined : retention_days * dayMs;
}

/** Returns the limits of the configuration, without `waitingPerSession`, which agents set. */
export function toEngineLimits(engine: EngineConfig, waitingPerSession?: number): Partial<EngineLimits> {
  const {
    concurrency,
    max_waiting,
    max_waiting_per_principal,
    max_attempts,
    retention_days,
    max_event_bytes,
  } = engine;
  return {
    ...(waitingPerSession === undefined ? {} : { waitingPerSession }),
    ...(concurrency === undefined ? {} : { running: concurrency }),
    ...(max_waiting === undefined ? {} : { waiting: max_waiting }),
    ...(max_waiting_per_principal === undefined ? {} : { waitingPerOwner: max_waiting_per_principal }),
    ...(max_attempts === undefined ? {} : { attempts: max_attempts }),
    ...(max_event_bytes === undefined ? {} : { eventBytes: max_event_bytes }),
    ...(retention_days === undefined ? {} : { retentionMs: retention_days * dayMs }),
  };
}
