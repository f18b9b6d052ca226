import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { FetchLike } from "@modelcontextprotocol/client";
import { createNearCheck, isLoopback, isMetadata } from "../../processes/private-addresses.ts";
import { limits, times } from "../limits.ts";
import { boundResponse, TooLongError } from "../servers/bound-response.ts";
import { floodSafeFetch } from "../servers/flood-safe-fetch.ts";
import { ServerFailure } from "../servers/server-failure.ts";

/** Resolves a host name to its addresses. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** The MCP server whose metadata decides where requests go, and the authorization server that the configuration names. */
export interface GuardedPlace {
  /** The address of the MCP server. */
  readonly server: URL;
  /** The authorization server that the configuration names. */
  readonly issuer: string | undefined;
  readonly lookup?: Lookup | undefined;
}

/**
 * Creates the `fetch` for authorization servers. A server chooses their addresses, so they must use https, or be on the loopback
 * interface like the server itself; and a server elsewhere must not lead kit into this machine or its network. Errors keep only their
 * code: a text could repeat a secret of the request. Redirects are left to the SDK, which follows those within an origin.
 */
export function createGuardedFetch(place: GuardedPlace): FetchLike {
  return async (input, init = {}) => {
    const refuse = await assertAllowed(new URL(input), place);
    const signal = AbortSignal.timeout(times.authorization);
    const response = await floodSafeFetch(input, { redirect: "manual", ...init, signal }, { refuse });
    const text = await readText(response);
    const { status, headers } = response;
    if (response.ok) return new Response(text === "" ? null : text, { status });
    const location = headers.get("location");
    return new Response(
      status === 304 ? null : JSON.stringify({ error: errorCodeOf(text) ?? "server_error" }),
      { status, headers: location === null ? {} : { location } },
    );
  };
}

/**
 * Throws `ServerFailure` if a server must not make kit send a request to `url`. Returns the same check for the address that the
 * request is connected to, because a name can have another one by then.
 */
export async function assertAllowed(
  url: URL,
  place: GuardedPlace,
): Promise<(address: string) => ServerFailure | undefined> {
  const { server, issuer } = place;
  const host = hostOf(url);
  if (!isAllowedScheme(url, server))
    throw refused(`is not at an address with https (${url.protocol}//${url.host})`);
  // The configuration names these hosts.
  if (url.host === server.host || url.host === URL.parse(issuer ?? "")?.host) return () => undefined;
  const [target, own] = await Promise.all([addressesOf(host, place), addressesOf(hostOf(server), place)]);
  const isNear = createNearCheck();
  // A server with one near address among others may have chosen it to lead kit there.
  const [isLocal, isInside] = [own.every(isLoopback), own.every(isNear)];
  const isTooNear = (address: string): boolean =>
    isMetadata(address) || (isLoopback(address) ? !isLocal : isNear(address) && !isInside);
  const fault = refused(`would be at an address of this machine or its network (${url.host})`);
  if (target.some(isTooNear)) throw fault;
  // A proxy of the person resolves the name itself, and the request is connected to it.
  return (address) => (!isProxied() && isTooNear(address) ? fault : undefined);
}

/** Whether a server may name `url`: with https, or with http on the loopback interface like the server itself. */
export function isAllowedScheme(url: URL, server: URL): boolean {
  if (url.protocol === "https:") return true;
  return url.protocol === "http:" && isOfLoopback(hostOf(url)) && isOfLoopback(hostOf(server));
}

/** Whether `fetch` goes through the proxies that the environment names. */
function isProxied(): boolean {
  const { NODE_USE_ENV_PROXY, NODE_OPTIONS = "" } = process.env;
  return (
    NODE_USE_ENV_PROXY === "1" ||
    [...process.execArgv, ...NODE_OPTIONS.split(" ")].includes("--use-env-proxy")
  );
}

/** Whether requests to a server can carry a token: with https, or within this machine. */
export function isSafeForTokens(server: URL): boolean {
  return server.protocol === "https:" || isOfLoopback(hostOf(server));
}

function refused(what: string): ServerFailure {
  return new ServerFailure(`Its authorization server ${what}, where kit sends nothing.`, {
    outcome: "refused",
  });
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function isOfLoopback(host: string): boolean {
  return host === "localhost" || (isIP(host) !== 0 && isLoopback(host));
}

async function addressesOf(
  host: string,
  { lookup: find = lookUp }: GuardedPlace,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  const fail = (cause: unknown): never => {
    throw new ServerFailure(`Its authorization server has no address (${host}).`, {
      outcome: "not_sent",
      cause,
    });
  };
  const addresses = await find(host).catch(fail);
  return addresses.length === 0 ? fail(undefined) : addresses;
}

async function lookUp(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}

async function readText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of boundResponse(response).body ?? []) {
    bytes += part.length;
    if (bytes > limits.authorizationBytes)
      throw new TooLongError("Its authorization server sent more than kit reads.");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** The code of an OAuth error. */
function errorCodeOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return typeof error === "string" && /^[a-z_]{1,40}$/.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}
