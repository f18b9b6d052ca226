import { createInterface } from "node:readline";
import type { LoadedConfig } from "../app/config/load-config.ts";
import { addTrust, describeTarget, trustsCode, untrustedError } from "../app/trust/trust.ts";
import type { CommandContext } from "./command.ts";
import { canAsk, type InputStream } from "./print/output.ts";
import { safeLine } from "./text/safe-text.ts";

export interface ConfirmOptions
  extends Pick<CommandContext, "input" | "output" | "json" | "root" | "signal"> {
  /** Whether the person trusts the code of the project, because the command runs it. */
  readonly trustsCode: boolean;
  /** Whether the command sends keys of the environment. */
  readonly sendsKeys: boolean;
  /** False for a service. */
  readonly mayAsk: boolean;
}

/**
 * Asks the person at the terminal, once for each folder and address, before a key of the environment goes to an address of a file of
 * the repository. Throws `forbidden` if there is no person, or the answer is no.
 */
export async function confirmTrust(loaded: LoadedConfig, options: ConfirmOptions): Promise<LoadedConfig> {
  const { untrusted = [] } = loaded;
  const { output, root, json, sendsKeys } = options;
  const isPersonThere = options.mayAsk && !json && canAsk(options) && !process.env.CI;
  const mustAsk = sendsKeys && untrusted.length > 0;
  if (mustAsk) {
    if (!isPersonThere) throw untrustedError(untrusted);
    for (const target of untrusted) output.note(output.noteStyle("yellow", safeLine(describeTarget(target))));
    output.note("Trust that in this folder, now and later? [y/N]");
    if (!(await isYes(options.input, options.signal))) throw untrustedError(untrusted);
  }
  const isNew = options.trustsCode && !trustsCode(root, process.env);
  if (isPersonThere && (mustAsk || isNew)) {
    try {
      addTrust(root, { code: options.trustsCode, targets: mustAsk ? untrusted : [] }, process.env);
    } catch (error) {
      // It holds for this command all the same.
      if (mustAsk)
        output.note(output.noteStyle("yellow", `warning: ${error instanceof Error ? error.message : error}`));
    }
  }
  if (!mustAsk) return loaded;
  const { untrusted: _, ...trusted } = loaded;
  return trusted;
}

function isYes(input: InputStream, signal: AbortSignal): Promise<boolean> {
  // The terminal's own line editing, so that Ctrl-C stays a signal.
  const lines = createInterface({ input, terminal: false, signal });
  return new Promise((resolve, reject) => {
    lines.once("line", (line) => {
      resolve(/^\s*y(?:es)?\s*$/i.test(line));
      lines.close();
    });
    lines.once("close", () => (signal.aborted ? reject(signal.reason) : resolve(false)));
  });
}
