import type { ContractCase } from "../../base/contract-case.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Engine, EngineHandlers, RunContext, WorkContext } from "../contract.ts";

/** The session that most cases work in. */
export const sessionKey: SessionKey = { agent: "reviewer", instance_id: "pr-7", session: "default" };

/** Limits that a case needs; the engine's defaults hold for the others. */
export interface EngineCaseLimits {
  readonly waitingPerSession?: number;
  readonly waiting?: number;
  readonly running?: number;
  readonly attempts?: number;
  /** Before the second attempt. */
  readonly backoffMs?: number;
}

/** Opens the engines of the cases. `reopen` opens the data of the last `create` again; leave it out for an engine in memory. */
export interface EngineSubject {
  readonly create: (limits?: EngineCaseLimits) => Engine | Promise<Engine>;
  readonly reopen?: (limits?: EngineCaseLimits) => Engine | Promise<Engine>;
}

/** Opens engines for one case; all of them are drained after it. */
export interface EngineTools {
  create(limits?: EngineCaseLimits): Promise<Engine>;
  reopen(limits?: EngineCaseLimits): Promise<Engine>;
}

export type EngineCheck = (tools: EngineTools) => Promise<void>;

/** Checks that open an engine again are left out for one that does not last. */
export function toCases(
  subject: EngineSubject,
  checks: { readonly fresh: Checks; readonly lasting?: Checks },
): readonly ContractCase[] {
  const asked = { ...checks.fresh, ...(subject.reopen === undefined ? {} : checks.lasting) };
  return Object.entries(asked).map(([name, check]) => ({ name, run: () => runCheck(subject, check) }));
}

type Checks = Readonly<Record<string, EngineCheck>>;

async function runCheck(subject: EngineSubject, check: EngineCheck): Promise<void> {
  const opened: Engine[] = [];
  const opener = (open: EngineSubject["create"] | undefined) => async (limits?: EngineCaseLimits) => {
    if (open === undefined) throw new Error("This engine does not last.");
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

/** Handlers of which a case is interested in some. */
export function handlers(some: Partial<EngineHandlers>): EngineHandlers {
  return {
    dispatch: async () => undefined,
    run: async (_context: RunContext) => undefined,
    ...some,
  };
}

/** Something that a handler waits at until the case lets it go on. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** Ends when the work is told to stop, with the reason that it is given. */
export function untilAborted({ signal }: Pick<WorkContext, "signal">): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
