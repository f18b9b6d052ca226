import type { RemoteOptions } from "../remote/remote-options.ts";

export interface DaytonaOptions extends RemoteOptions {
  /** The snapshot that a new machine is made of; default: the account's. */
  readonly snapshot?: string;
  /** The image that it is made of, in place of a snapshot: "debian:12". */
  readonly image?: string;
  /** The region, such as "eu". */
  readonly target?: string;
  /** Where the vendor's interface is; default: the vendor's own. */
  readonly apiUrl?: string;
  /** What one request to the vendor may take, in milliseconds; default 60,000. Commands have limits of their own. */
  readonly requestTimeoutMs?: number;
}
