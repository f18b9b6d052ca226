/** `kit/sandboxes/modal`: machines of Modal as sandboxes. */
import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export type { ModalOptions } from "./modal-options.ts";
export { modal } from "./modal-sandbox.ts";
