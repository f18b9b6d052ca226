import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../contract.ts";
import { createCalledEngine } from "../postgres/create-postgres-engine.ts";
import type { PostgresEngineOptions } from "../postgres/postgres-base.ts";
import { RestateExecutor } from "./restate-executor.ts";

/** The addresses of Restate, and how it reaches this node. */
export interface RestateOptions {
  /** The address of Restate's ingress, or those of several servers; default "http://127.0.0.1:8080". */
  readonly ingress?: string | readonly string[] | undefined;
  /** The address of Restate's admin API, or those of several servers; default "http://127.0.0.1:9070". */
  readonly admin?: string | readonly string[] | undefined;
  /** `host:port` on which this node serves Restate; default "127.0.0.1:9080". */
  readonly listen?: string | undefined;
  /** The URL under which Restate reaches the nodes, by HTTP/2 without TLS or through a balancer; default: `listen` of this node. */
  readonly address?: string | undefined;
  /** `publickeyv1_…` of Restate, or several: calls without its signature are refused. Required unless `listen` is a loopback address. */
  readonly identityKey?: string | readonly string[] | undefined;
  /** The token that kit sends to Restate as `Authorization: Bearer`. */
  readonly token?: string | undefined;
  /** The name of kit's object in Restate; default: the schema. */
  readonly service?: string | undefined;
}

export interface RestateEngineOptions extends PostgresEngineOptions {
  readonly restate?: RestateOptions | undefined;
}

const defaults = {
  ingress: "http://127.0.0.1:8080",
  admin: "http://127.0.0.1:9070",
  listen: "127.0.0.1:9080",
};

/**
 * The engine that several machines share, with Restate, which decides when and on which machine work begins: it calls the
 * nodes for turns of instances and runs, keeps their timers, and calls another node if one is gone. Postgres stores all
 * accepted work, so a receipt never waits for Restate.
 *
 * Throws `invalid_request` for invalid addresses, `store_unavailable` if the database cannot be reached, and `unavailable`
 * if the package `pg` is missing. `start` throws `forbidden` if anyone could call this node, and `unavailable` without the
 * package `@restatedev/restate-sdk`.
 *
 * @example
 * import { createRestateEngine } from "kit/engines/restate";
 *
 * const engine = await createRestateEngine({
 *   url: "postgres://kit@db.example/kit",
 *   restate: { ingress: "http://restate.example:8080", admin: "http://restate.example:9070" },
 * });
 */
export async function createRestateEngine(options: RestateEngineOptions): Promise<Engine> {
  const { restate = {}, ...shared } = options;
  const service = restate.service ?? shared.schema ?? "kit";
  if (!/^(?!restate|openapi)[a-z][\w.-]{0,127}$/i.test(service)) throw badService(service);
  const executor = new RestateExecutor({
    ingress: addressesOf("ingress", restate.ingress),
    admin: addressesOf("admin", restate.admin),
    service,
    token: restate.token,
    listen: restate.listen ?? defaults.listen,
    address: restate.address === undefined ? undefined : addressesOf("address", restate.address)[0],
    identityKeys: toList(restate.identityKey).map(toIdentityKey),
  });
  return await createCalledEngine(shared, executor);
}

function toList(value: string | readonly string[] | undefined): readonly string[] {
  return typeof value === "string" ? [value] : (value ?? []);
}

/** Checks addresses, and removes slashes at their ends. */
function addressesOf(name: "ingress" | "admin" | "address", value: string | readonly string[] | undefined) {
  const addresses = toList(value ?? (name === "address" ? undefined : defaults[name]));
  for (const address of addresses) if (!isAddress(address)) throw badAddress(name, address);
  if (addresses.length === 0) throw badAddress(name, "");
  return addresses.map((address) => address.replace(/\/+$/, ""));
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "";
}

function toIdentityKey(key: string): string {
  if (/^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,64}$/.test(key)) return key;
  throw new KitError({
    code: "invalid_request",
    message: "The identity key of Restate is not valid.",
    hint: "It begins with publickeyv1_. restate-server logs it when it starts with a private key.",
  });
}

function badAddress(name: string, address: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `engine.restate.${name} is not an address: ${JSON.stringify(address.replace(/\/\/[^/@]*@/, "//***@"))}.`,
    hint: "Write http://host:port, without a user, a password or a query.",
  });
}

function badService(service: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(service)} is not a valid name of an object in Restate.`,
    hint: "Set engine.restate.service to a name of letters, digits, dots, dashes and underscores that begins with a letter, but not with restate.",
  });
}
