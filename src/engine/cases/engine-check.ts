import type { ContractCase } from "../../base/contract-case.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Engine, EngineHandlers, RunContext, WorkContext } from "../contract.ts";

/** The session that most cases use. */
export const sessionKey: SessionKey = { agent: "reviewer", instance_id: "pr-7", session: "default" };

/** Limits that a case needs; the others have the engine's defaults. */
export interface EngineCaseLimits {
  readonly waitingPerSession?: number;
  readonly waiting?: number;
  readonly running?: number;
  readonly attempts?: number;
  /** The pause before the second attempt. */
  readonly backoffMs?: number;
}

/** Opens the engines of the cases. `reopen` opens the data of the last `create` again; omit it for an engine in memory. */
export interface EngineSubject {
  readonly create: (limits?: EngineCaseLimits) => Engine | Promise<Engine>;
  readonly reopen?: (limits?: EngineCaseLimits) => Engine | Promise<Engine>;
}

/** Opens the engines of one case, which are drained after it. */
export interface EngineTools {
  create(limits?: EngineCaseLimits): Promise<Engine>;
  reopen(limits?: EngineCaseLimits): Promise<Engine>;
}

export type EngineCheck = (tools: EngineTools) => Promise<void>;

/** Converts checks to cases; without `reopen`, the checks that reopen an engine are omitted. */
export function toCases(
  subject: EngineSubject,
  checks: { readonly fresh: Checks; readonly lasting?: Checks },
): readonly ContractCase[] {
  const selected = { ...checks.fresh, ...(subject.reopen === undefined ? {} : checks.lasting) };
  return Object.entries(selected).map(([name, check]) => ({ name, run: () => runCheck(subject, check) }));
}

type Checks = Readonly<Record<string, EngineCheck>>;

async function runCheck(subject: EngineSubject, check: EngineCheck): Promise<void> {
  const opened: Engine[] = [];
  const opener = (open: EngineSubject["create"] | undefined) => async (limits?: EngineCaseLimits) => {
    if (open === undefined) throw new Error("This subject has no reopen.");
    const engine = await open(limits);
    opened.push(engine);
    return engine;
  };
  try {
    await check({ create: opener(subject.create), reopen: opener(subject.reopen) });
  } finally {
    await Promise.all(opened.map((engine) => engine.drain({ timeoutMs: 0 })));
  }
}

/** Handlers, of which a case replaces some. */
export function handlers(some: Partial<EngineHandlers>): EngineHandlers {
  return {
    dispatch: async () => undefined,
    run: async (_context: RunContext) => undefined,
    ...some,
  };
}

/** Lets a handler wait until the case opens the gate. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** Rejects with the signal's reason when the work is aborted. */
export function untilAborted({ signal }: Pick<WorkContext, "signal">): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
