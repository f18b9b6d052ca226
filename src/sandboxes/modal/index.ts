/** `kit/sandboxes/modal`: machines of Modal as sandboxes. */
import "../../base/require-node.ts";

export type { RemoteOptions } from "../remote/remote-options.ts";
export { type ModalOptions, modal } from "./modal-sandbox.ts";
