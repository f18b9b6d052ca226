import type { RemoteOptions } from "../remote/remote-options.ts";

export interface ModalOptions extends Omit<RemoteOptions, "apiKey"> {
  /** The two halves of the vendor's key; default: `MODAL_TOKEN_ID` and `MODAL_TOKEN_SECRET`, else its profile on this computer. */
  readonly tokenId?: string | undefined;
  readonly tokenSecret?: string | undefined;
  /** The image that a new machine is made of, as a registry names it; default "debian:12". */
  readonly image?: string | undefined;
  /** The vendor's app that machines belong to, made when it is missing; default "kit". */
  readonly app?: string | undefined;
  /** The vendor's environment, such as "staging"; default: the profile's. */
  readonly environment?: string | undefined;
  /** Where the vendor's interface is; default: the vendor's own. */
  readonly apiUrl?: string | undefined;
}
