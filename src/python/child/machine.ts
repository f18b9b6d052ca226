import type { HostLink } from "./host-link.ts";
import type { Watchdog } from "./watchdog-state.ts";

export type MontyModule = typeof import("@pydantic/monty");

/** The objects that are needed to run a program. */
export interface Machine {
  readonly monty: MontyModule;
  readonly link: HostLink;
  readonly watchdog: Watchdog;
}
