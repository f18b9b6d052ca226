import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { recordResults } from "../../project/results/record-results.ts";
import { asText, parseReportFormat } from "../choices.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { count } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

/** The largest report that kit reads, in bytes. */
const maxBytes = 64 * 1024 * 1024;

export const specsResults: Command = defineCommand({
  arguments: [{ usage: "<file>", description: "The report: JUnit XML, or the JSON of vitest or jest" }],
  options: {
    format: option(
      "--format <name>",
      "junit or vitest; default: detected from the report",
      parseReportFormat,
    ),
    commit: option("--commit <sha>", "The commit that the tests ran on; default: the present one", asText),
  },
  examples: ["kit specs results junit.xml", "kit specs results results.json --json"],
  details:
    "Stores the results in .kit, so that 'kit specs coverage' and a server show which criteria pass, fail, or never ran. Replaces the results of the files in the report, and keeps all others. A renamed test has no result until it runs again. Each result says that it was submitted, and of which commit: kit has not seen the tests run.",
  run: ({ args: [file = ""], options }, context) =>
    withProject(context, async ({ project }) => {
      const { output } = context;
      const recorded = await recordResults(project, readReportFile(resolve(context.cwd, file), file), {
        format: options.format,
        commit: options.commit,
      });
      if (context.json) {
        output.json(recorded);
        return 0;
      }
      const { tests, files, passed, failed, skipped, unknown_tests, unknown_files } = recorded;
      output.note(
        `Recorded ${count(tests, "test")} of ${count(files, "file")}: ${passed} passed, ${failed} failed, ${skipped} skipped.`,
      );
      if (unknown_tests > 0) {
        const listed = unknown_files.map((name) => safeLine(name)).join(", ");
        output.note(
          `${output.noteStyle("yellow", "left out:")} ${count(unknown_tests, "test")} of files that are not in this project: ${listed}`,
        );
      }
    }),
});

function readReportFile(path: string, argument: string): string {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw usageError(`${argument} is not a file.`);
    if (stats.size > maxBytes)
      throw usageError(
        `${argument} has ${Math.ceil(stats.size / 1024 / 1024)} MiB; a report has at most 64.`,
      );
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof KitError) throw error;
    throw usageError(
      `${argument} cannot be read.`,
      "Name a report of tests: vitest --reporter=junit --outputFile=junit.xml writes one.",
    );
  }
}
