import type { RemoteOptions } from "../remote/remote-options.ts";

type Size = "X_SMALL" | "SMALL" | "MEDIUM" | "LARGE" | "X_LARGE" | "XX_LARGE";
export const runloopSizes: readonly Size[] = ["X_SMALL", "SMALL", "MEDIUM", "LARGE", "X_LARGE", "XX_LARGE"];

export interface RunloopOptions extends RemoteOptions {
  /** The name of the blueprint that a new machine is made of; default: the vendor's own image. */
  readonly blueprint?: string;
  /** How large it is, as the vendor calls it: "SMALL". */
  readonly size?: Size;
  /** Where the vendor's interface is; default: the vendor's own. */
  readonly apiUrl?: string;
  /** Time limit of one request to the vendor, in milliseconds; default 60,000. Commands have limits of their own. */
  readonly requestTimeoutMs?: number;
}
