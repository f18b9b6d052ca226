import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";

/** `kit/sandboxes/e2b`: machines of E2B as sandboxes. */
export type { E2bOptions } from "./e2b-driver.ts";
export { e2b } from "./e2b-sandbox.ts";
