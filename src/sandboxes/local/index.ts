import "../../base/require-node.ts";

/** `kit/sandboxes/local`: the real folder of a project as a sandbox. */
export { local } from "./local-sandbox.ts";
export type { LocalOptions } from "./open-local.ts";
