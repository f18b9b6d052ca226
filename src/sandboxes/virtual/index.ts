import "../../base/require-node.ts";

export type { VirtualOptions } from "./open-virtual.ts";

/** `kit/sandboxes/virtual`: a workspace of its own for every session. */
export { virtual } from "./virtual-sandbox.ts";
