import { isIP } from "node:net";

/** A pattern of hosts that a command may reach. */
export interface HostPattern {
  /** Lower case, without a final dot; an IPv6 address without brackets. */
  readonly host: string;
  /** Matches every name below `host`, but not `host` itself. */
  readonly matchesSubdomains: boolean;
  readonly port: number | undefined;
}

/** The syntax of a pattern: `*.`, an IPv6 address in brackets or the labels of a name, and a port. */
export const hostPatternSyntax =
  /^(\*\.)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?)(?::(\d{1,5}))?$/;

/** The forms that `allowNetwork` accepts, for messages. */
export const hostPatternForm =
  'a host such as "api.github.com", "*.example.com" or "localhost:8080", without a scheme or path';

/** Parses `example.com`, `*.example.com`, `10.0.0.1` or `[::1]`, with or without a port; `undefined` for anything else. */
export function parseHostPattern(text: string): HostPattern | undefined {
  const match = hostPatternSyntax.exec(text);
  if (match === null) return undefined;
  const [, wildcard, hostName = "", digits] = match;
  const host = normalizeHost(hostName);
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  const matchesSubdomains = wildcard !== undefined;
  if (isIP(host) !== 0) return matchesSubdomains ? undefined : { host, matchesSubdomains, port };
  const labels = host.split(".");
  // Brackets are for an IPv6 address only.
  if (host.length > 253 || hostName.startsWith("[")) return undefined;
  // A numeric last label is an IP address in another notation, and `*.com` would match far too much.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") || (matchesSubdomains && labels.length < 2))
    return undefined;
  return { host, matchesSubdomains, port };
}

/** Normalizes a host: names in lower case without a final dot, addresses without brackets. */
export function normalizeHost(host: string): string {
  const bare = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  return bare.toLowerCase().replace(/\.$/, "");
}

export function isAllowedHost(
  { host, port }: { readonly host: string; readonly port: number },
  patterns: readonly HostPattern[],
): boolean {
  return patterns.some(
    (pattern) =>
      (pattern.port === undefined || pattern.port === port) &&
      (pattern.matchesSubdomains
        ? host.endsWith(`.${pattern.host}`) && isIP(host) === 0
        : host === pattern.host),
  );
}
