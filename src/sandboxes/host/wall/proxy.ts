import { lookup as lookupName } from "node:dns/promises";
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { KitError } from "../../../base/kit-error.ts";
import { createNearCheck, isLoopback } from "../../../processes/private-addresses.ts";
import {
  type HostPattern,
  hostPatternForm,
  isAllowedHost,
  normalizeHost,
  parseHostPattern,
} from "./host-pattern.ts";

/** Resolves a host name to its addresses. */
export type Lookup = (name: string) => Promise<readonly string[]>;

export interface ProxyOptions {
  /** Allowed hosts, in the forms of `allowNetwork`. */
  readonly allowed: readonly string[];
  /** The path of a socket, or 0 for a free port of the loopback interface. */
  readonly at: string | 0;
  /** Required from every client, if other processes than the command can reach the proxy. */
  readonly token?: string;
  readonly lookup?: Lookup;
}

export interface Proxy {
  /** The port of the proxy on the loopback interface. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** Throws `invalid_request` for an entry that is not a host pattern. */
function readHosts(allowed: readonly string[]): readonly HostPattern[] {
  return allowed.map((text) => {
    const pattern = parseHostPattern(text);
    if (pattern !== undefined) return pattern;
    throw new KitError({
      code: "invalid_request",
      message: `"${text}" in allowNetwork is not a host.`,
      hint: `Name ${hostPatternForm}.`,
    });
  });
}

/**
 * Opens the only network access of isolated commands: an HTTP proxy (`CONNECT` included) to the allowed hosts. The proxy resolves
 * each name once. It refuses names that resolve to this machine, its network or cloud metadata addresses, unless
 * that address is allowed too, because the owner of a name decides where it leads.
 */
export async function openProxy(options: ProxyOptions): Promise<Proxy> {
  const patterns = readHosts(options.allowed);
  const lookup = options.lookup ?? addressesOf;
  const open = new Set<Duplex>();
  const addressOf = (target: Target): Promise<string> => reachableAddress(target, patterns, lookup);
  const isKnown = ({ headers }: IncomingMessage): boolean =>
    options.token === undefined ||
    headers["proxy-authorization"] === `Basic ${Buffer.from(`kit:${options.token}`).toString("base64")}`;
  const server = createServer((request, response) => {
    if (!isKnown(request)) return refuse(response, 407, "This proxy belongs to another command.");
    forward(request, response, addressOf).catch((error: unknown) => refuse(response, ...faultOf(error)));
  });
  server.on("connect", (request, client, head) => {
    const answer = (status: number, text: string): void => {
      client.end(
        `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n${text}\n`,
      );
    };
    client.on("error", () => client.destroy());
    if (!isKnown(request)) return answer(407, "This proxy belongs to another command.");
    tunnel({ to: request.url ?? "", client, head }, addressOf).then(
      (socket) => {
        open.add(socket);
        socket.once("close", () => open.delete(socket));
      },
      (error: unknown) => answer(...faultOf(error)),
    );
  });
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    // Stays: without descriptors, the system reports each connection that it cannot hand over.
    server.on("error", reject);
    if (options.at === 0) server.listen(0, "127.0.0.1", resolve);
    else server.listen(options.at, resolve);
  });
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : undefined,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

interface Target {
  readonly host: string;
  readonly port: number;
}

class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function faultOf(error: unknown): readonly [status: number, text: string] {
  if (error instanceof Refused) return [error.status, error.message];
  return [502, "The host cannot be reached."];
}

/** The address to connect to for a host. Throws `Refused`, with the client's answer, if it is not allowed. */
async function reachableAddress(
  target: Target,
  patterns: readonly HostPattern[],
  lookup: Lookup,
): Promise<string> {
  const { host, port } = target;
  if (!isAllowedHost(target, patterns)) {
    throw new Refused(
      403,
      `kit: ${host}:${port} is not one of the hosts this agent may reach (allowNetwork).`,
    );
  }
  if (isIP(host) !== 0) return host;
  const addresses = await lookup(host).catch(() => {
    throw new Refused(502, `kit: ${host} has no address.`);
  });
  // "localhost" can only mean this machine, so allowing the name allows its address.
  const isIntended = (address: string): boolean =>
    (host === "localhost" && isLoopback(address)) || isAllowedHost({ host: address, port }, patterns);
  const isNear = createNearCheck();
  const address = addresses.find((each) => !isNear(each) || isIntended(each));
  if (address !== undefined) return address;
  throw new Refused(
    403,
    `kit: ${host} resolves to an address of this machine or its network; add that address to allowNetwork as well.`,
  );
}

async function addressesOf(name: string): Promise<readonly string[]> {
  return (await lookupName(name, { all: true })).map(({ address }) => address);
}

async function tunnel(
  { to, client, head }: { readonly to: string; readonly client: Duplex; readonly head: Buffer },
  addressOf: (target: Target) => Promise<string>,
): Promise<Socket> {
  const match = /^(\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(to);
  const port = Number(match?.[2]);
  if (match?.[1] === undefined || port < 1 || port > 65_535)
    throw new Refused(400, "kit: CONNECT needs a host and a port.");
  const address = await addressOf({ host: normalizeHost(match[1]), port });
  const socket = connect({ host: address, port });
  if (client.destroyed) socket.destroy();
  client.once("close", () => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.on("error", reject);
    socket.once("close", reject);
  });
  socket.on("error", () => client.destroy());
  client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
  if (head.length > 0) socket.write(head);
  socket.pipe(client).pipe(socket);
  return socket;
}

/** Hop-by-hop headers, which a proxy does not forward. */
const betweenHops = new Set([
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  addressOf: (target: Target) => Promise<string>,
): Promise<void> {
  const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : undefined;
  if (url?.protocol !== "http:")
    throw new Refused(400, "kit: this is a proxy; ask it for http://… or CONNECT.");
  const port = url.port === "" ? 80 : Number(url.port);
  const address = await addressOf({ host: normalizeHost(url.hostname), port });
  const headers: Record<string, string | string[]> = { host: url.host, connection: "close" };
  for (const [name, value] of Object.entries(request.headers)) {
    if (name !== "host" && !betweenHops.has(name) && value !== undefined) headers[name] = value;
  }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage | undefined>();
  const outgoing = sendRequest({
    ...{ host: address, port, method: request.method, path: url.pathname + url.search, headers },
    agent: false,
  });
  outgoing.once("response", resolve).on("error", reject);
  // A switch of protocols, which kit never asks for, and an end without an answer.
  for (const event of ["upgrade", "close"]) outgoing.once(event, () => reject(new Error(event)));
  response.once("close", () => {
    outgoing.destroy();
    resolve(undefined);
  });
  request.pipe(outgoing);
  try {
    const answer = await promise;
    if (answer === undefined) return;
    // Node reads a status such as 099 or 101, but cannot pass it on.
    const { statusCode: status = 0 } = answer;
    if (status < 200) throw new Refused(502, `kit: the host answered with the status ${status}.`);
    const passed = Object.entries(answer.headers).filter(([name]) => !betweenHops.has(name));
    response.writeHead(status, Object.fromEntries(passed));
    answer.on("error", () => response.destroy()).pipe(response);
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { "content-type": "text/plain", connection: "close" }).end(`${text}\n`);
}

/** The port of the proxy for isolated commands. */
export const bridgePort = 3128;

/**
 * Runs in isolation and starts the command: listens on the loopback interface, forwards connections to the
 * socket of kit's proxy, and exits with the command's exit code. Passed as text, because kit's own files are
 * not visible there.
 */
const bridgeScript = `
const { connect, createServer } = require("node:net");
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const [socket, port, program, ...args] = process.argv.slice(1);
const bridge = createServer({ allowHalfOpen: true }, (client) => {
  const proxy = connect({ path: socket, allowHalfOpen: true });
  client.on("error", () => proxy.destroy()).pipe(proxy);
  proxy.on("error", () => client.destroy()).pipe(client);
});
bridge.listen(Number(port), "127.0.0.1", () => {
  process.on("SIGTERM", () => {});
  const child = spawn(program, args, { stdio: "inherit" });
  child.on("error", (error) => {
    process.stderr.write(program + ": " + (error.code === "EACCES" ? "permission denied" : "command not found") + "\\n");
    process.exit(error.code === "EACCES" ? 126 : 127);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
});
`;

/** Arguments to put before a command so that it can reach the proxy. */
export function bridgeArguments(socket: string): readonly string[] {
  return [process.execPath, "-e", bridgeScript, "--", socket, String(bridgePort)];
}
