/** `kit/sandboxes/local`: the real folder of a project as a sandbox. */
import "../../base/require-node.ts";

export type { LocalOptions } from "./local-options.ts";
export { local } from "./local-sandbox.ts";
