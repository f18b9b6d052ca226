import type { IncomingMessage } from "node:http";
import { KitError } from "../../base/kit-error.ts";
import { bearerProtocolPrefix } from "../../protocol/socket-protocol.ts";
import type { RequestHead } from "../access/access.ts";
import { readSegment } from "../request/read-request.ts";
import { checkAgent, checkWorkflow, type ServiceContext } from "../service-context.ts";

/** The head of a handshake, and where it comes from. */
export interface Handshake extends RequestHead {
  readonly remoteAddress: string;
  /** With its query, as sent. */
  readonly target: string;
}

/**
 * The head of a WebSocket handshake, as the gate looks at it. A browser can send no headers, so that a
 * key may also come as a subprotocol: `kit.bearer.` and the key as base64url, beside `kit`.
 */
export function readHandshake(incoming: IncomingMessage): Handshake {
  const headers = new Headers();
  // As they came: `incoming.headers` drops the second of two keys, which the routes refuse.
  const { rawHeaders } = incoming;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  }
  const key = keyAmong(headers.get("sec-websocket-protocol") ?? "");
  if (key !== undefined && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
  return {
    method: "GET",
    path: (incoming.url ?? "/").split("?", 1)[0] ?? "/",
    headers,
    host: incoming.headers.host ?? "",
    localAddress: incoming.socket.localAddress ?? "127.0.0.1",
    target: incoming.url ?? "/",
    remoteAddress: incoming.socket.remoteAddress ?? "",
  };
}

/** The handshake as what it starts may look at it. */
export function toRequest({ host, target, headers }: Handshake): Request {
  // The gate has checked the Host; the path begins with a slash, as it found a target.
  return new Request(new URL(target, `http://${host}`), { headers });
}

function keyAmong(protocols: string): string | undefined {
  const offered = protocols.split(",").map((name) => name.trim());
  const bearer = offered.find((name) => name.startsWith(bearerProtocolPrefix));
  if (bearer === undefined) return undefined;
  const key = Buffer.from(bearer.slice(bearerProtocolPrefix.length), "base64url").toString("utf8");
  // Nothing else can stand in a header, and so nothing else is a key.
  return /^[\x21-\x7e]{1,4096}$/.test(key) ? key : undefined;
}

/** The target of a WebSocket, as the `ready` frame says it. */
export type SocketTarget =
  | { readonly target: "agent"; readonly name: string; readonly instance_id: string }
  | { readonly target: "workflow"; readonly name: string };

/** Reads the target out of a path. Throws `invalid_request`, and `not_found` for any other path. */
export function findTarget(path: string): SocketTarget {
  const [, kind, name = "", id, ...rest] = path.split("/");
  if (kind === "agents" && id !== undefined && rest.length === 0) {
    return {
      target: "agent",
      name: readSegment(name, { name: "name" }),
      instance_id: readSegment(id, { name: "id" }),
    };
  }
  if (kind === "workflows" && id === undefined) {
    return { target: "workflow", name: readSegment(name, { name: "name" }) };
  }
  throw new KitError({ code: "not_found", message: "There is no WebSocket here." });
}

/** Refuses what does not exist, or is not reachable. */
export function checkTarget(context: ServiceContext, { target, name }: SocketTarget): void {
  if (target === "agent") checkAgent(context, name);
  else checkWorkflow(context.service.app, name);
}
