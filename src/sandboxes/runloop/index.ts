/** `kit/sandboxes/runloop`: machines of Runloop as sandboxes. */
import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export type { RunloopOptions } from "./runloop-options.ts";
export { runloop } from "./runloop-sandbox.ts";
