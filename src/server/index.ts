/**
 * `kit/server`: the HTTP face of a project, for a process of your own.
 */
import "../base/require-node.ts";

export type { AuthRequest, RateLimit } from "../app/config/server-schema.ts";
export type {
  AuthorizeHook,
  AuthorizeRequest,
  AuthResult,
  Principal,
  ServiceAction,
} from "../protocol/access.ts";
export type { AccessOptions } from "./access/access.ts";
export type { RequestEntry } from "./answer-request.ts";
export { createServer, type KitServer, type ServerOptions } from "./create-server.ts";
export type { ServerLimits } from "./limits.ts";
export type { ListenAddress, ListenOptions } from "./listen.ts";
export type { Connection, ServerEnv } from "./route.ts";
export { type ServedApplication, serveApplication } from "./serve-application.ts";
