import { isIP } from "node:net";
import { KitError } from "../../base/kit-error.ts";

/** The rules by which `Host` names are answered. */
export interface HostRules {
  /** The address of this machine that the connection came in on. */
  readonly localAddress: string;
  /** Names beyond the own ones, without port, in lower case. */
  readonly allowedHosts: ReadonlySet<string>;
  /** Whether every request must carry a key or pass the config's `auth`. */
  readonly guarded: boolean;
}

/**
 * Refuses a `Host` that is not ours (DNS rebinding: a foreign page whose name was made to resolve to
 * this machine still sends its own name). Throws `invalid_request` or `forbidden`.
 *
 * A name is ours when it is configured, a loopback name, or, beyond loopback, an IP address, which
 * cannot be rebound. A guarded server on a public address with no configured names answers to any: a
 * browser attaches no key by itself.
 */
export function checkHost(header: string | undefined, rules: HostRules): void {
  const name = hostNameOf(header);
  if (name === undefined) {
    throw new KitError({ code: "invalid_request", message: "The Host header is missing or malformed." });
  }
  if (isLoopbackName(name) || rules.allowedHosts.has(name)) return;
  if (!isLoopbackAddress(rules.localAddress)) {
    if (isIP(name.replace(/^\[|\]$/g, "")) !== 0) return;
    if (rules.guarded && rules.allowedHosts.size === 0) return;
  }
  throw new KitError({
    code: "forbidden",
    message: "This server does not answer to that Host name.",
    hint: "Add the name to server.allowed_hosts in the configuration.",
  });
}

/** The name of a `Host` header in lower case, without its port. */
export function hostNameOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/.exec(header?.toLowerCase() ?? "")?.[1];
}

/** Whether only this machine can reach an address that a server is bound to. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, "");
  return plain === "localhost" || plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

function isLoopbackName(name: string): boolean {
  return name === "[::1]" || isLoopbackAddress(name);
}
