/**
 * `kit/server`: the HTTP face of a project, for a process of your own.
 */
export type { AuthRequest } from "../app/config/kit-config.ts";
export type { AccessOptions } from "./access/access.ts";
export { createServer, type KitServer, type RequestEntry, type ServerOptions } from "./create-server.ts";
export type { ServerLimits } from "./limits.ts";
export type { ListenAddress, ListenOptions } from "./listen.ts";
