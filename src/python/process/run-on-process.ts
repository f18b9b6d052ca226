import { linkSignals, raceSignal } from "../../base/abort.ts";
import type {
  AnswerMessage,
  CallMessage,
  EndMessage,
  HostMessage,
  ParkedProgress,
  ProcessMessage,
  RunMessage,
} from "./messages.ts";
import type { Lease, ProcessPool } from "./process-pool.ts";
import type { ProcessEnd } from "./python-process.ts";

export interface ProcessRun {
  readonly message: RunMessage;
  readonly attachment: Uint8Array;
  readonly signal: AbortSignal;
  output(text: string): void;
  /**
   * Answers a call from Python; never rejects. The signal fires when the run no longer waits for the answer.
   */
  call(message: CallMessage, signal: AbortSignal): Promise<AnswerMessage>;
}

export type RunEnd =
  | { readonly message: EndMessage; readonly attachment: Uint8Array }
  /** The process ended before the program did. */
  | { readonly end: ProcessEnd };

/** A process with more memory than this after a run is replaced. */
const maxIdleBytes = 200 * 1024 * 1024;

/**
 * Runs one program on a process of the pool. The deadline counts computing time, not the time of host calls; at the deadline,
 * or when the signal fires, the process is killed. During a host call the program may be parked and continued in another
 * process. Rejects with the reason of the signal or the pool; resolves with every other outcome.
 */
export async function runOnProcess(pool: ProcessPool, run: ProcessRun): Promise<RunEnd> {
  const lease = await pool.acquire(run.signal);
  const over = linkSignals([run.signal, pool.closing]);
  let ended: RunEnd | undefined;
  try {
    ended = await new ProgramOnLease(lease, run, over.signal).toEnd();
    return ended;
  } finally {
    over.unlink();
    lease.release(isFit(ended));
    over.abort(new Error("The run is over."));
  }
}

function isFit(ended: RunEnd | undefined): boolean {
  if (ended === undefined || "end" in ended) return false;
  return "memory" in ended.message && ended.message.memory < maxIdleBytes;
}

function isEnd(message: ProcessMessage): message is EndMessage {
  return ["done", "failed", "refused", "broken"].includes(message.type);
}

/** A process's message while its program computes: a host call, or the end of the run. */
type Heard = RunEnd | { readonly call: CallMessage };

class ProgramOnLease {
  readonly #lease: Lease;
  readonly #run: ProcessRun;
  readonly #over: AbortSignal;
  #executedMs = 0;
  #progress: ParkedProgress = { executed_ms: 0, printed_chars: 0 };

  constructor(lease: Lease, run: ProcessRun, over: AbortSignal) {
    this.#lease = lease;
    this.#run = run;
    this.#over = over;
  }

  async toEnd(): Promise<RunEnd> {
    const { message, attachment } = this.#run;
    this.#over.throwIfAborted();
    let reply = await this.#compute(message, attachment);
    while ("call" in reply) {
      const answer = await this.#answer(reply.call);
      if ("end" in answer) return answer;
      const snapshot = await raceSignal(this.#lease.resume(this.#over), this.#over);
      reply = await (snapshot === undefined
        ? this.#compute(answer)
        : this.#compute(this.#resumeMessage(answer), snapshot));
    }
    return reply;
  }

  #compute(message: HostMessage, attachment?: Uint8Array): Promise<Heard> {
    const { process } = this.#lease;
    const reply = Promise.withResolvers<Heard>();
    let last: NodeJS.Immediate | undefined;
    const timer = setTimeout(
      () => {
        // If the host was busy, the answer may be in the pipe, not read yet.
        last = setImmediate(() => process.kill("time"));
      },
      Math.max(0, this.#run.message.deadline_ms - this.#executedMs),
    );
    const since = performance.now();
    process.listen({
      message: (frame, bytes) => {
        if (frame.type === "output") this.#run.output(frame.text);
        else if (frame.type === "call") reply.resolve({ call: frame });
        else if (isEnd(frame)) reply.resolve({ message: frame, attachment: bytes });
      },
      ended: (end) => reply.resolve({ end }),
    });
    process.send(message, attachment);
    return raceSignal(reply.promise, this.#over).finally(() => {
      clearTimeout(timer);
      clearImmediate(last);
      this.#executedMs += performance.now() - since;
    });
  }

  /** The host's answer, or the end of the process if it ends first. */
  async #answer(call: CallMessage): Promise<AnswerMessage | { readonly end: ProcessEnd }> {
    const { process } = this.#lease;
    const died = Promise.withResolvers<{ readonly end: ProcessEnd }>();
    const parked = Promise.withResolvers<Uint8Array | undefined>();
    process.listen({
      message: (frame, bytes) => {
        if (frame.type === "parked") this.#progress = frame.progress;
        if (frame.type === "parked" || frame.type === "stays") {
          parked.resolve(frame.type === "parked" ? bytes : undefined);
        }
      },
      ended: (end) => {
        parked.resolve(undefined);
        died.resolve({ end });
      },
    });
    const answer = this.#run.call(call, this.#over);
    this.#lease.pause(() => {
      process.send({ type: "park" });
      return parked.promise;
    });
    return raceSignal(Promise.race([answer, died.promise]), this.#over);
  }

  #resumeMessage(answer: AnswerMessage): HostMessage {
    const { message } = this.#run;
    const inputs = message.inputs.map(([name]) => [name, null] as const);
    return { type: "resume", run: { ...message, inputs }, progress: this.#progress, answer };
  }
}
