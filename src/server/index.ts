/**
 * `kit/server`: the HTTP service of an open project.
 */
export type { AccessOptions } from "./access/access.ts";
export { createServer, type KitServer, type RequestEntry, type ServerOptions } from "./create-server.ts";
export type { ServerLimits } from "./limits.ts";
export type { ListenAddress, ListenOptions } from "./listen.ts";
