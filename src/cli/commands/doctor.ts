import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { version } from "../../base/own-package.ts";
import { runGit } from "../../processes/git.ts";
import { type Command, defineCommand } from "../command.ts";
import { type Check, printChecks } from "../doctor/checks.ts";

export const doctor: Command = defineCommand({
  options: {},
  examples: ["kit doctor", "kit doctor --json"],
  details:
    "✗ marks what keeps kit from working, and makes the command exit with 1; ! marks what works but needs attention.",
  run: async (_, context) => {
    const { checkProject } = await import("../doctor/check-project.ts");
    const checks = [...(await checkMachine()), ...(await checkProject(context))];
    const errors = checks.filter((check) => check.status === "error").length;
    if (context.json) context.output.json({ ok: errors === 0, checks });
    else printChecks(context.output, checks);
    return errors === 0 ? 0 : 1;
  },
});

/** Checks what kit needs from the machine, independent of the project. */
async function checkMachine(): Promise<readonly Check[]> {
  return [
    { name: "kit", status: "ok", message: version },
    { name: "Node", status: "ok", message: `${process.version}, ${process.execPath}` },
    checkSqlite(),
    await checkGit(),
  ];
}

function checkSqlite(): Check {
  const name = "SQLite";
  const database = new DatabaseSync(":memory:");
  try {
    const { version: number } = database.prepare("SELECT sqlite_version() AS version").get() ?? {};
    database.exec("CREATE VIRTUAL TABLE search USING fts5(text)");
    return { name, status: "ok", message: `${number} with full-text search` };
  } catch {
    return {
      name,
      status: "error",
      message: "This Node's SQLite has no full-text search (FTS5).",
      hint: "Use a Node from https://nodejs.org.",
    };
  } finally {
    database.close();
  }
}

async function checkGit(): Promise<Check> {
  const name = "Git";
  const result = await runGit(["--version"], { cwd: tmpdir() });
  if (result.status === "ok")
    return {
      name,
      status: "ok",
      message: result.stdout
        .toString()
        .trim()
        .replace(/^git version /, ""),
    };
  return {
    name,
    status: "warning",
    message: "Git is not installed or does not answer.",
    hint: "Install Git: without it, specs have no dates, and 'kit specs stale' and 'impact --since' cannot work.",
  };
}
