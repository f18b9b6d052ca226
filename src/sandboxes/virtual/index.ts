/** `kit/sandboxes/virtual`: a workspace of its own for every session. */
export type { VirtualOptions } from "./virtual-options.ts";
export { virtual } from "./virtual-sandbox.ts";
