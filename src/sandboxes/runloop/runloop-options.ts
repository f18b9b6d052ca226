import type { RemoteOptions } from "../remote/remote-options.ts";

type Size = "X_SMALL" | "SMALL" | "MEDIUM" | "LARGE" | "X_LARGE" | "XX_LARGE";
export const runloopSizes: readonly Size[] = ["X_SMALL", "SMALL", "MEDIUM", "LARGE", "X_LARGE", "XX_LARGE"];

export interface RunloopOptions extends RemoteOptions {
  /** The name of the blueprint for new machines; default: the vendor's own image. */
  readonly blueprint?: string;
  /** The vendor's name of the machine size, such as "SMALL". */
  readonly size?: Size;
  /** The address of the vendor's API; default: the vendor's own. */
  readonly apiUrl?: string;
  /** Time limit of one request to the vendor, in milliseconds; default 60,000. Does not limit commands. */
  readonly requestTimeoutMs?: number;
}
