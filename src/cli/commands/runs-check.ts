import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { sharedEngineOf } from "../../app/config/engine-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { CheckedRun, RunCheck } from "../../app/service/check-runs.ts";
import { KitError } from "../../base/kit-error.ts";
import { quoteName } from "../../base/names.ts";
import type { OpenRuns } from "../../engine/shared/runs/replay-check.ts";
import { asText } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, option } from "../command.ts";
import type { Output } from "../print/output.ts";
import { runStyles } from "../print/runs.ts";
import { type Column, count, printTable } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { loadProjectConfig } from "../with-project.ts";

export const runsCheck: Command = defineCommand({
  options: {
    against: option("--against <folder>", "The project with the new code (default: this one)", asText),
  },
  examples: ["kit runs check", "kit runs check --against ../release --json"],
  details:
    "Replays each run that has not ended, in this project's engine, with the workflows of the folder. Runs no step and writes nothing, so you can use it next to a running server, and in CI before a deploy: with KIT_ENGINE_URL, against the database that several machines share. The code between the steps does run, as in each replay. Exits with 1 if a run would fail, with replay_mismatch or otherwise.",
  async run({ options }, context) {
    const against = folderOf(options.against, context);
    const loaded = await loadProjectConfig(context, { runsCode: true, sendsKeys: true, dotEnv: true });
    const runs = await openRuns(loaded, context);
    try {
      const { checkRuns } = await import("../../app/service/check-runs.ts");
      const check = await checkRuns({
        root: against,
        loaded,
        runs: runs.read(),
        signal: context.signal,
        onProgress: (done) => context.output.progress(`${count(done, "run")} checked`),
      });
      context.output.progress("");
      if (context.json)
        context.output.json({ checked: check.runs.length, runs: check.runs, problems: check.problems });
      else print(check, context.output);
      return check.runs.some(isBroken) ? 1 : 0;
    } finally {
      await runs.close();
    }
  },
});

function folderOf(against: string | undefined, { cwd, root }: CommandContext): string {
  if (against === undefined) return root;
  const folder = resolve(cwd, against);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return folder;
  throw new KitError({
    code: "invalid_request",
    message:
      stats === undefined
        ? `There is no folder ${quoteName(against)}.`
        : `${quoteName(against)} is not a folder.`,
    hint: "--against names the folder of a project: kit runs check --against ../release",
  });
}

async function openRuns({ config, environment }: LoadedConfig, { root }: CommandContext): Promise<OpenRuns> {
  const shared = sharedEngineOf(config, environment);
  if (shared !== undefined) {
    const { openSharedRuns } = await import("../../engine/postgres/read-open-runs.ts");
    return await openSharedRuns(shared);
  }
  const { openStoredRuns } = await import("../../engine/embedded/runs/read-open-runs.ts");
  return openStoredRuns(resolve(root, config.engine?.folder ?? join(".kit", "engine")));
}

function isBroken({ outcome }: CheckedRun): boolean {
  return outcome === "mismatch" || outcome === "fails";
}

const columns: readonly Column<CheckedRun>[] = [
  { header: "RUN", value: ({ run_id }) => run_id, style: () => "cyan" },
  { header: "WORKFLOW", value: ({ workflow }) => workflow, wraps: true },
  { header: "STATUS", value: ({ status }) => status, style: ({ status }) => runStyles[status] },
];

const mismatchColumns: readonly Column<CheckedRun>[] = [
  ...columns,
  { header: "AT", value: ({ position }) => String(position ?? ""), align: "right" },
  { header: "RECORDED", value: ({ recorded }) => recorded ?? "", style: () => "green", wraps: true },
  {
    header: "THE CODE ASKS FOR",
    value: ({ asked, message }) => asked ?? message ?? "",
    style: () => "red",
    wraps: true,
  },
];

const failureColumns: readonly Column<CheckedRun>[] = [
  ...columns,
  { header: "WHY", value: ({ message }) => message ?? "", style: () => "red", wraps: true },
];

const unclearColumns: readonly Column<CheckedRun>[] = [
  ...columns,
  { header: "AT", value: ({ position }) => String(position ?? ""), align: "right" },
  { header: "RECORDED", value: ({ recorded }) => recorded ?? "", wraps: true },
];

function print({ runs, problems }: RunCheck, output: Output): void {
  for (const { path, message } of problems) {
    output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(`${path}: ${message}`)}`);
  }
  const runsWith = (outcome: CheckedRun["outcome"]): CheckedRun[] =>
    runs.filter((run) => run.outcome === outcome);
  const sections = [
    { rows: runsWith("mismatch"), columns: mismatchColumns, title: "would end in replay_mismatch" },
    { rows: runsWith("fails"), columns: failureColumns, title: "would fail" },
    {
      rows: runsWith("unclear"),
      columns: unclearColumns,
      title: "unknown: the code waits for something that no journal records",
    },
  ];
  for (const section of sections) {
    if (section.rows.length === 0) continue;
    output.note(`${count(section.rows.length, "run")} ${section.title}:`);
    printTable(output, section.rows, section.columns);
    // Printed whole, because the table's column may be too narrow for the advice.
    const reasons =
      section.columns === failureColumns ? section.rows.map(({ message }) => message ?? "") : [];
    if (output.isTerminal) for (const reason of new Set(reasons)) output.note(safeLine(reason));
  }
  const broken = runs.filter(isBroken).length;
  if (runs.length === 0) output.note("No run is in flight.");
  else if (broken === 0)
    output.note(
      `${count(runs.length, "run")} in flight ${runs.length === 1 ? "goes" : "go"} on with this code.`,
    );
  else {
    output.note(
      `${broken} of ${count(runs.length, "run")} in flight would break. Keep the old branch for them with ctx.patched(), or leave the old file as it is until they have ended.`,
    );
  }
}
