import { isIP } from "node:net";

/** Hosts that a command may reach. */
export interface HostPattern {
  /** Lower case, without a final dot; an IPv6 address without brackets. */
  readonly host: string;
  /** Any name below `host`, and not `host` itself. */
  readonly below: boolean;
  readonly port: number | undefined;
}

const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** The forms that `allowNetwork` accepts, for messages. */
export const hostPatternForm =
  'a host such as "api.github.com", "*.example.com" or "localhost:8080", without a scheme or path';

/** Reads `example.com`, `*.example.com`, `10.0.0.1` or `[::1]`, with or without a port; undefined for anything else. */
export function parseHostPattern(text: string): HostPattern | undefined {
  const match = /^(\*\.)?(\[[0-9a-fA-F:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const [, wildcard, hostName = "", digits] = match;
  const host = normalizeHost(hostName);
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  const below = wildcard !== undefined;
  if (isIP(host) !== 0) return below ? undefined : { host, below, port };
  const labels = host.split(".");
  if (host.length > 253 || !labels.every((each) => label.test(each))) return undefined;
  // A number at the end is an address in another notation, and below a top level lies everybody.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") || (below && labels.length < 2)) return undefined;
  return { host, below, port };
}

/** One spelling of a host: names in lower case and without the final dot, addresses without brackets. */
export function normalizeHost(host: string): string {
  const bare = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  return bare.toLowerCase().replace(/\.$/, "");
}

/** Whether a host and port are among those allowed. */
export function isAllowedHost(
  { host, port }: { readonly host: string; readonly port: number },
  patterns: readonly HostPattern[],
): boolean {
  return patterns.some(
    (pattern) =>
      (pattern.port === undefined || pattern.port === port) &&
      (pattern.below ? host.endsWith(`.${pattern.host}`) && isIP(host) === 0 : host === pattern.host),
  );
}
