/** Ended by Ctrl-C or by SIGTERM, as shells write it. */
export type InterruptExitCode = 130 | 143;

/** Ctrl-C and SIGTERM, as a command sees them. */
export interface Interrupt {
  readonly signal: AbortSignal;
  exitCode(): InterruptExitCode;
  /** Whether an error only says that the work was ended. */
  isCause(error: unknown): boolean;
  /** Ends the process when a command is still at work so long after the first signal, in ms. */
  insistAfter(ms: number): void;
  /** Gives the signals back to Node: at once, or, when one came, after the time of its echo. */
  stop(): void;
}

/** Time in which a second signal is the same Ctrl-C, sent on by npm or by the launcher, in ms. */
const echoMs = 500;

/** Emits SIGINT and SIGTERM by name: `process`, or an emitter of a program that runs a command line inside itself. */
export type SignalSource = Pick<NodeJS.EventEmitter, "on" | "off">;

/** The first Ctrl-C or SIGTERM asks the command to end; a second one ends the process at once. */
export function listenForInterrupt(source: SignalSource = process): Interrupt {
  const controller = new AbortController();
  const ended = new AbortController();
  let exitCode: InterruptExitCode = 130;
  let firstAt = 0;
  const onSignal = (name: NodeJS.Signals): void => {
    if (!controller.signal.aborted) {
      exitCode = name === "SIGTERM" ? 143 : 130;
      firstAt = Date.now();
      controller.abort(new DOMException(`Ended by ${name}.`, "AbortError"));
    } else if (Date.now() - firstAt > echoMs) {
      process.exit(exitCode);
    }
  };
  source.on("SIGINT", onSignal);
  source.on("SIGTERM", onSignal);
  const restore = (): void => {
    source.off("SIGINT", onSignal);
    source.off("SIGTERM", onSignal);
  };
  return {
    signal: controller.signal,
    insistAfter(ms) {
      const insist = (): void => {
        // Held: what waits without a handle would otherwise end the process with another exit code.
        const timer = setTimeout(() => process.exit(exitCode), ms);
        ended.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
      };
      if (controller.signal.aborted) insist();
      else controller.signal.addEventListener("abort", insist, { once: true });
    },
    exitCode: () => exitCode,
    isCause: (error) =>
      controller.signal.aborted &&
      (error === controller.signal.reason || (error instanceof Error && error.name === "AbortError")),
    stop: () => {
      ended.abort();
      // An echo that comes while the process ends would end it by the signal, without its exit code.
      if (controller.signal.aborted) setTimeout(restore, echoMs).unref();
      else restore();
    },
  };
}
