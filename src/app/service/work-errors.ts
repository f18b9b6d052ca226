import { KitError } from "../../base/kit-error.ts";
import type { Engine, WorkContext } from "../../engine/contract.ts";
import { isPermanent, isRetryableError, storeUnavailable } from "../../protocol/error-code.ts";
import { nodesOf } from "../cluster/owners.ts";
import type { Sources } from "../sources/sources.ts";

/** How often a lasting outage of a store is reported, in ms. */
const everyMs = 60_000;

/** Reports that work waits for a store: once when the outage begins, and each minute while it lasts. */
export function createOutageLog(onError: (error: unknown) => void): (error: unknown) => void {
  const reported = new Map<string, number>();
  return (error) => {
    if (!(error instanceof KitError)) return;
    const now = performance.now();
    if (now - (reported.get(error.message) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    reported.set(error.message, now);
    const { code, message, hint, meta, cause } = error;
    onError(
      new KitError({
        code,
        message: `${message} Accepted work waits for it, and goes on by itself.`,
        hint,
        meta,
        cause,
      }),
    );
  };
}

/**
 * Whether the engine retries an input after an error: the application's `EngineHandlers.isRetryable`. A conflict is
 * retried: a process that was frozen wrote its entries before it learned that another process had taken over. They belong
 * to the same operation, which continues after them.
 */
export function isRetryableInput(error: unknown): boolean {
  if (!(error instanceof KitError) || error.code === "aborted") return false;
  return (error.code === "conflict" && !isPermanent(error)) || isRetryableError(error);
}

export function nameDispatch(error: unknown, { id: dispatch_id }: WorkContext): unknown {
  if (!(error instanceof KitError)) return error;
  const { code, message, hint, meta, cause } = error;
  const described = { code, message, meta: { ...meta, dispatch_id }, cause };
  return new KitError(hint === undefined ? described : { ...described, hint });
}

/** Creates a notice that explains unexpected times of schedules; it reports no failure. */
export function clockSet(byMs: number): KitError {
  const seconds = Math.round(Math.abs(byMs) / 1_000);
  const size = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ].flatMap(([number, unit]) => (number === 0 ? [] : [`${number} ${unit}`]));
  return new KitError({
    code: "unavailable",
    message: `The clock was set ${byMs > 0 ? "forward" : "back"} by ${size.join(" ")}. Waiting work is not affected; schedules follow the new time.`,
  });
}

export function keepsNothing(): KitError {
  return new KitError({
    code: "unavailable",
    message: "This application stores nothing on disk: dispatched work would be lost with the process.",
    hint: "Open the project with openService, or have kit start serve it; or prompt the agent and wait.",
  });
}

export function workLost(count: number): KitError {
  const operations = count === 1 ? "1 operation" : `${count} operations`;
  return new KitError({
    code: "store_unavailable",
    message: `${operations} lost the last entries: kit stopped while the session store could not be reached.`,
    hint: "Where results of tools are missing, the model is told that their outcome is unknown.",
  });
}

/**
 * Throws `store_unavailable`, so that an input waits, if this node's files lack its agent while other nodes are live: during a
 * deploy, one of them can have it. A node that is alone continues, and the input then fails.
 */
export async function checkKnownByNode(
  agent: string,
  { engine, sources }: { readonly engine: Engine; readonly sources: Sources },
): Promise<void> {
  if (isKnown(agent, sources)) return;
  const nodes = await nodesOf(engine).nodes();
  if (nodes.length < 2) return;
  throw storeUnavailable({
    store: `The agent "${agent}"`,
    reason: "this node's files have none of that name; those of another node can have one",
    hint: "During a deploy there is nothing to do. Two projects over one database need two schemas: engine.schema.",
  });
}

function isKnown(agent: string, sources: Sources): boolean {
  try {
    sources.checkAgent(agent);
    return true;
  } catch {
    return false;
  }
}
