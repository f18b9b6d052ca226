import type { IsolationOptions } from "../contract.ts";

export interface LocalOptions extends IsolationOptions {
  /** The workspace; default: the root of the agent's project, else the folder that the process was started in. */
  readonly root?: string;
  /**
   * What commands get beside `PATH`, `HOME`, the language and the like: names of variables of this
   * process (`["NODE_ENV"]`), or values (`{ NODE_ENV: "test" }`). Nothing else is passed on.
   */
  readonly env?: readonly string[] | Readonly<Record<string, string | undefined>>;
}
