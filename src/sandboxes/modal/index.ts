import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export { modal } from "./modal-sandbox.ts";
/** `kit/sandboxes/modal`: machines of Modal as sandboxes. */
export type { ModalOptions } from "./modal-sdk.ts";
