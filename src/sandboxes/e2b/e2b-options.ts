import type { RemoteOptions } from "../remote/remote-options.ts";

export interface E2bOptions extends RemoteOptions {
  /** The template that a new machine is made of; default "base". */
  readonly template?: string;
  /** The vendor's domain, where it is not the default: an installation of one's own. */
  readonly domain?: string;
  /** Where the vendor's interface is, in place of what the domain says. */
  readonly apiUrl?: string;
  /** Where all machines are reached, in place of what the domain says. */
  readonly sandboxUrl?: string;
  /** What one request to the vendor may take, in milliseconds; default 60,000. Commands have limits of their own. */
  readonly requestTimeoutMs?: number;
}
