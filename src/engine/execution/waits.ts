import { sleepUntil } from "../embedded/work/sleep-until.ts";
import type { ExecutionCore } from "./execution-core.ts";
import type { EntryEnd, JournalEntry } from "./replay.ts";

/** The sleeps of a run, and its waits for signals. */
export interface Waits {
  /** Begins a wait, or goes on with one that the journal knows. Gives what it ended with. */
  wait(
    kind: "sleep" | "wait",
    name: string,
    how: { readonly ms: number | undefined; readonly schema?: unknown },
  ): Promise<unknown>;
  /** Ends those whose time or signal has come. */
  checkWaits(): void;
  /** How many are open. */
  readonly size: number;
  /** When the first of them ends by itself. */
  readonly earliest: number | undefined;
  /** They never end. */
  close(): void;
}

interface OpenWait {
  readonly head: Omit<JournalEntry, "outcome">;
  readonly deadline: number | undefined;
  end(end: EntryEnd): void;
}

export function createWaits(core: ExecutionCore): Waits {
  const { run, host } = core;
  const { time } = host.base;
  const { journal } = host;
  const open = new Map<number, OpenWait>();
  let looking = false;
  let closed = false;
  let callOff: AbortController | undefined;

  /** In a transaction: records the end of a wait that ends now. */
  function recordEnd(head: OpenWait["head"], deadline: number | undefined): EntryEnd | undefined {
    if (head.kind === "wait") {
      const signal = journal.nextSignal(run.id, head.name, deadline);
      if (signal !== undefined) {
        journal.take(signal);
        return core.record(head, { state: "done", value: signal.payload });
      }
    }
    const isOver = deadline !== undefined && deadline <= time.now();
    return isOver ? core.record(head, { state: "done", value: null }) : undefined;
  }

  function isDue({ head, deadline }: OpenWait): boolean {
    if (deadline !== undefined && deadline <= time.now()) return true;
    return head.kind === "wait" && journal.nextSignal(run.id, head.name, deadline) !== undefined;
  }

  function earliest(): number | undefined {
    let first: number | undefined;
    for (const { deadline } of open.values()) {
      if (deadline !== undefined && (first === undefined || deadline < first)) first = deadline;
    }
    return first;
  }

  function arm(): void {
    callOff?.abort();
    callOff = undefined;
    const at = earliest();
    if (closed || at === undefined) return;
    callOff = new AbortController();
    sleepUntil(time, at, callOff.signal).then(checkWaits, () => undefined);
  }

  function checkWaits(): void {
    if (closed || looking) return;
    if (![...open.values()].some(isDue)) {
      arm();
      return;
    }
    looking = true;
    void core.atWork(endThoseDue).finally(() => {
      looking = false;
      if (open.size > 0) checkWaits();
    });
  }

  async function endThoseDue(): Promise<void> {
    // By position, so that of two waits for one name the first gets the first signal.
    const candidates = [...open.values()].sort((one, other) => one.head.position - other.head.position);
    const ended = await core.commit(() =>
      candidates.flatMap((wait) => {
        const end = recordEnd(wait.head, wait.deadline);
        return end === undefined ? [] : [{ wait, end }];
      }),
    );
    for (const { wait, end } of ended) {
      open.delete(wait.head.position);
      wait.end(end);
    }
  }

  /** Records that a wait has begun, or its end when it ends at once. */
  async function begin(
    head: OpenWait["head"],
    deadline: number | undefined,
    schema: unknown,
  ): Promise<EntryEnd | undefined> {
    return await core.atWork(async () => {
      const stored = schema === undefined ? null : await core.store(schema);
      return await core.commit(() => {
        const end = recordEnd(head, deadline);
        if (end === undefined) journal.beginWait(run.id, head, { deadline, schema: stored });
        return end;
      });
    });
  }

  return {
    async wait(kind, name, { ms, schema }) {
      const { position, recorded } = core.ask(kind, name);
      const outcome = recorded?.outcome;
      if (outcome !== undefined && outcome.state !== "pending") return await core.deliver(outcome);
      const head = { position, kind, name };
      const isNew = outcome === undefined;
      const deadline = isNew ? (ms === undefined ? undefined : Math.ceil(time.now() + ms)) : outcome.deadline;
      const ended = isNew ? await begin(head, deadline, schema) : undefined;
      if (ended !== undefined) return await core.deliver(ended);
      if (closed) return await new Promise<never>(() => undefined);
      const end = await new Promise<EntryEnd>((resolve) => {
        open.set(position, { head, deadline, end: resolve });
        // A signal may have come before this wait was registered.
        checkWaits();
        core.settle();
      });
      return await core.deliver(end);
    },
    checkWaits,
    get size() {
      return open.size;
    },
    get earliest() {
      return earliest();
    },
    close() {
      closed = true;
      callOff?.abort();
      open.clear();
    },
  };
}
