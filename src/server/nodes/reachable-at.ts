import { networkInterfaces } from "node:os";
import type { ListenAddress } from "../listen.ts";

/**
 * Where the machines of a network reach a server that listens there: an address that it listens on, or, where it listens on
 * all of them, the first one of this machine that is not its own loopback.
 */
export function reachableAt({ host, port }: ListenAddress): string {
  const isEvery = host === "0.0.0.0" || host === "::" || host === "";
  const name = isEvery ? (ownAddress(host === "0.0.0.0") ?? "127.0.0.1") : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

function ownAddress(isOnlyIpv4: boolean): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  const outer = all.filter(({ internal, scopeid }) => !internal && !scopeid);
  const ipv4 = outer.find(({ family }) => family === "IPv4");
  return (ipv4 ?? (isOnlyIpv4 ? undefined : outer[0]))?.address;
}
