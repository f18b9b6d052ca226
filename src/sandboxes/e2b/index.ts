/** `kit/sandboxes/e2b`: machines of E2B as sandboxes. */
import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export type { E2bOptions } from "./e2b-options.ts";
export { e2b } from "./e2b-sandbox.ts";
