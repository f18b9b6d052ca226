import type { Frame } from "../process/frame.ts";
import type { ProcessMessage } from "../process/messages.ts";

/** The pipes to kit. Both block, because a Python process does one thing at a time. */
export interface HostLink {
  /** Returns `undefined` if kit has ended. */
  read(): Frame | undefined;
  send(message: ProcessMessage, attachment?: Uint8Array): void;
}
