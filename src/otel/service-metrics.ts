import { monitorEventLoopDelay } from "node:perf_hooks";
import { type Meter, metrics } from "@opentelemetry/api";
import { version } from "../base/own-package.ts";

/** The load of a service at this moment. */
export interface ServiceLoad {
  /** Accepted inputs and runs that have not begun. */
  readonly queued_dispatches: number;
  readonly queued_runs: number;
  readonly running_runs: number;
  readonly waiting_runs: number;
  /** Failed inputs that were not redriven. */
  readonly dead_letters: number;
  readonly waiting_approvals: number;
}

/**
 * Measures waiting and running work of a service, and the delay of the event loop, whenever the SDK reads its metrics.
 * Returns the function that stops it. When `load` fails, because a store is away for instance, the next read measures again.
 *
 * @example
 * import { openService } from "kit";
 * import { observeService } from "kit/otel";
 *
 * const service = await openService();
 * const stop = observeService(async () => ({ ...(await service.engine.load()), waiting_approvals: 0 }));
 */
export function observeService(
  load: () => Promise<ServiceLoad>,
  { meter = metrics.getMeter("kit", version) }: { readonly meter?: Meter } = {},
): () => void {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(name, { unit, description });
  const queue = gauge("kit.queue.depth", "{item}", "Accepted work that has not begun.");
  const runs = gauge("kit.runs", "{run}", "Runs of workflows at work, and those that wait.");
  const approvals = gauge("kit.approvals.waiting", "{call}", "Tool calls that wait for approval.");
  const dead = gauge("kit.dead_letters", "{item}", "Inputs that have failed for good.");
  const mean = gauge(
    "nodejs.eventloop.delay.mean",
    "s",
    "Mean delay of the event loop since the last reading.",
  );
  const p99 = gauge("nodejs.eventloop.delay.p99", "s", "99th percentile of that delay.");
  const max = gauge("nodejs.eventloop.delay.max", "s", "The longest such delay.");
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const read = async (
    result: Parameters<Parameters<Meter["addBatchObservableCallback"]>[0]>[0],
  ): Promise<void> => {
    for (const [instrument, nanoseconds] of [
      [mean, delay.mean],
      [p99, delay.percentile(99)],
      [max, delay.max],
    ] as const)
      if (Number.isFinite(nanoseconds)) result.observe(instrument, nanoseconds / 1e9);
    delay.reset();
    const now = await load().catch(() => undefined);
    if (now === undefined) return;
    result.observe(queue, now.queued_dispatches, { "kit.queue": "dispatches" });
    result.observe(queue, now.queued_runs, { "kit.queue": "runs" });
    result.observe(runs, now.running_runs, { "kit.run.status": "running" });
    result.observe(runs, now.waiting_runs, { "kit.run.status": "waiting" });
    result.observe(approvals, now.waiting_approvals);
    result.observe(dead, now.dead_letters);
  };
  const instruments = [queue, runs, approvals, dead, mean, p99, max];
  meter.addBatchObservableCallback(read, instruments);
  return () => {
    meter.removeBatchObservableCallback(read, instruments);
    delay.disable();
  };
}
