import { finishDispatches } from "../../app/service/instance-calls.ts";
import type { ProjectService } from "../../app/service/service.ts";
import type { Engine } from "../../engine/contract.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { CommandContext } from "../command.ts";
import { type EventPrinter, printRunResult } from "../print/print-events.ts";
import { waitLines } from "../print/runs.ts";
import { safeLine } from "../text/safe-text.ts";

export interface WorkflowRequest {
  readonly service: ProjectService;
  readonly context: CommandContext;
  readonly name: string;
  readonly options: {
    readonly payload?: Readonly<Record<string, unknown>> | undefined;
    readonly stream?: boolean | undefined;
  };
  readonly printer: EventPrinter;
}

/** Runs a workflow and prints its result: a text as it is, anything else as JSON. */
export async function startWorkflow({
  service,
  context,
  name,
  options,
  printer,
}: WorkflowRequest): Promise<undefined> {
  const { app, engine } = service;
  const waits = printWaits(engine, context, engine.capabilities.durable);
  try {
    const { run_id, result } = await app.run(name, {
      payload: options.payload ?? {},
      signal: context.signal,
      onEvent(event) {
        if (event.run_id !== undefined) waits.follow(event.run_id);
        printer.onEvent(event);
      },
    });
    printer.end();
    context.output.progress("");
    printRunResult(
      { status: "completed", run_id, result },
      { context, printer, stream: options.stream === true },
    );
  } finally {
    waits.stop();
    await finishDispatches(engine);
  }
}

/** How often the run is polled, in ms. */
const pollMs = 250;

/** Prints on stderr what a run waits for, once per wait, and how to signal it. */
function printWaits(
  engine: Engine,
  { output }: CommandContext,
  isReachable: boolean,
): { follow(runId: string): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let lastPrinted = "";
  const printWaiting = async (runId: string): Promise<void> => {
    const run = await engine.getRun(runId);
    const waits = run?.status === "waiting" ? (run.waiting_for ?? []) : [];
    const key = JSON.stringify(waits);
    if (run === undefined || waits.length === 0 || key === lastPrinted) return;
    lastPrinted = key;
    output.progress("");
    output.note(output.noteStyle("yellow", safeLine(`The run waits for ${waitLines(run).join(", ")}.`)));
    for (const line of signalLines(run, isReachable)) output.note(line);
  };
  return {
    follow(runId) {
      timer ??= setInterval(() => void printWaiting(runId).catch(() => undefined), pollMs);
    },
    stop() {
      clearInterval(timer);
    },
  };
}

function signalLines(
  { run_id, workflow, waiting_for = [] }: RunRecord,
  isReachable: boolean,
): readonly string[] {
  const signals = waiting_for.map(({ signal }) => signal).filter((signal) => signal !== undefined);
  if (signals.length === 0) return [];
  if (!isReachable) {
    return [
      `It cannot be signalled, because kit stores nothing here. Run it on a server: 'kit invoke ${safeLine(workflow)}'.`,
    ];
  }
  return [
    "Signal it from another terminal, in this folder:",
    ...signals.map((signal) => `  kit runs signal ${run_id} ${shellWord(signal)} --payload '{}'`),
    "Ctrl-C ends the run; on a server ('kit invoke') it would survive the terminal.",
  ];
}

function shellWord(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : `'${safeLine(text).replaceAll("'", "'\\''")}'`;
}
