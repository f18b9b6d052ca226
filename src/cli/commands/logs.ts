import type { RunRecord } from "../../protocol/run.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { createActivityLog } from "../dev/activity-log.ts";
import { urlOption } from "../remote/open-client.ts";
import { type WorkDesk, withWorkDesk } from "../remote/work-desk.ts";
import { type Column, printTable } from "../table.ts";
import { safeLine, toSafeJsonLine } from "../text/safe-text.ts";
import { wholeNumber } from "../values.ts";

export const logs: Command = defineCommand({
  arguments: [{ usage: "[run-id]", description: "A run; without one, the newest runs are listed" }],
  options: {
    follow: flag("-f, --follow", "Go on until the run has ended"),
    after: option("--after <index>", "Start behind this event (default 0)", wholeNumber(0, 999_999_999)),
    limit: option("-n, --limit <number>", "Runs to list (default 20)", wholeNumber(1, 1_000)),
    url: urlOption,
  },
  examples: ["kit logs", "kit logs run_01M7Y2ZJNPKAA8N21S3HAQ99FR --follow"],
  details:
    "Asks the server that runs for this project; without one it reads what is on disk. With --json every event is a line. Exits with 1 when the run has failed.",
  run: ({ args: [runId], options }, context) =>
    withWorkDesk(context, options.url, async (desk) => {
      if (runId === undefined) {
        await listRuns(desk, context, options.limit ?? 20);
        return 0;
      }
      await printEvents(desk, context, {
        runId,
        after: options.after ?? 0,
        follow: options.follow === true,
      });
      const run = await desk.getRun(runId);
      if (!context.json) printEnd(run, context);
      return run.status === "failed" ? 1 : 0;
    }),
});

async function listRuns(desk: WorkDesk, context: CommandContext, limit: number): Promise<void> {
  const page = await desk.listRuns({ limit });
  const { output } = context;
  if (context.json) output.json(page);
  else if (page.runs.length === 0)
    output.note("No workflow has run here. 'kit invoke' and 'kit run' start some.");
  else printTable(output, page.runs, columns);
}

const styles = {
  completed: "green",
  failed: "red",
  cancelled: "yellow",
  running: "cyan",
  waiting: "cyan",
  queued: "dim",
} as const;

const columns: readonly Column<RunRecord>[] = [
  { header: "RUN", value: ({ run_id }) => run_id, style: () => "cyan" },
  { header: "WORKFLOW", value: ({ workflow }) => workflow },
  { header: "STATUS", value: ({ status }) => status, style: ({ status }) => styles[status] },
  { header: "STARTED", value: ({ started_at }) => started_at ?? "", style: () => "dim" },
  {
    header: "MS",
    value: ({ duration_ms }) => (duration_ms === undefined ? "" : String(Math.round(duration_ms))),
    align: "right",
  },
];

async function printEvents(
  desk: WorkDesk,
  context: CommandContext,
  { runId, ...options }: { readonly runId: string; readonly after: number; readonly follow: boolean },
): Promise<void> {
  const { output, signal } = context;
  let time = "";
  const show = createActivityLog({
    runId,
    output: { noteStyle: output.style },
    log: (text) => output.line(`${output.style("dim", time)}  ${text}`),
  });
  for await (const event of desk.runEvents(runId, { ...options, signal })) {
    time = event.timestamp;
    if (context.json) output.write(`${toSafeJsonLine(event)}\n`);
    else show(event);
  }
}

function printEnd({ status, error, event_count }: RunRecord, { output }: CommandContext): void {
  const what = error === undefined ? status : `${status}: ${safeLine(error.message)}`;
  output.note(output.noteStyle(styles[status], `${what} (${event_count} events)`));
}
