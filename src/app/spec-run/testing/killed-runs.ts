import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { RunRecord } from "../../../protocol/run.ts";
import type { SpecRunBody, SpecRunResult } from "../../../protocol/spec-run.ts";
import { specRepository, tasksPath } from "./spec-repository.ts";

/** When a process of a run is killed: after a number of ms, or at an event of a step. */
export type Kill = { readonly afterMs: number } | { readonly atBoundary: number };

export interface KilledRun {
  /** Why the run broke its promise; undefined if it kept it. */
  readonly fault: string | undefined;
  /** How many processes were killed before they ended. */
  readonly kills: number;
  /** The events of steps in the last process. */
  readonly boundaries: number;
}

/** Does tasks with a process per kill and a last one that ends, in a new repository, and checks what is left. */
export async function runWithKills(body: SpecRunBody, kills: readonly Kill[]): Promise<KilledRun> {
  await using repository = await specRepository({}, ["hurried", "honest"]);
  const { root } = repository;
  let killed = 0;
  for (const kill of kills) if (await isKilled(root, body, kill)) killed += 1;
  const { stdout } = await promisify(execFile)(process.execPath, argumentsOf(root, body), {
    env: environment,
    maxBuffer: 64 * 1024 * 1024,
  });
  const { run, boundaries }: { run: RunRecord; boundaries: number } = JSON.parse(
    stdout.trim().split("\n").at(-1) ?? "",
  );
  return { fault: await faultOf(repository, body, run), kills: killed, boundaries };
}

const environment = { ...process.env, KIT_TRUST: "1" };

function argumentsOf(root: string, body: SpecRunBody, killAt = 0): readonly string[] {
  return [join(import.meta.dirname, "spec-run-process.ts"), root, JSON.stringify(body), String(killAt)];
}

async function isKilled(root: string, body: SpecRunBody, kill: Kill): Promise<boolean> {
  const killAt = "atBoundary" in kill ? kill.atBoundary : 0;
  const child = spawn(process.execPath, argumentsOf(root, body, killAt), {
    env: environment,
    stdio: "ignore",
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once("exit", (_, signal) => resolve(signal)),
  );
  if ("afterMs" in kill) {
    await Promise.race([sleep(kill.afterMs), ended]);
    child.kill("SIGKILL");
  }
  return (await ended) === "SIGKILL";
}

async function faultOf(
  { root, git }: Awaited<ReturnType<typeof specRepository>>,
  { tasks = [] }: SpecRunBody,
  run: RunRecord,
): Promise<string | undefined> {
  if (run.status !== "completed") return `The run ended as ${run.status}: ${run.error?.message ?? ""}`;
  const result = run.result as SpecRunResult;
  const states = result.tasks.map(({ task, state }) => `${task} ${state}`).join(", ");
  if (states !== tasks.map((task) => `${task} closed`).join(", ")) {
    const reasons = result.tasks.flatMap(({ verdict }) => verdict?.reasons ?? []);
    return `The tasks ended as ${states}: ${reasons.map(({ check, message }) => `${check}: ${message}`).join(" ")}`;
  }
  const commits = (
    await git("log", "--format=%(trailers:key=Kit-Task,valueonly,separator=%x20)", "main..kit/cart")
  )
    .split("\n")
    .sort();
  if (
    commits.join() !==
    tasks
      .map((task) => `cart/${task}`)
      .sort()
      .join()
  )
    return `The commits are of ${commits.join(", ")}.`;
  const text = await git("show", `kit/cart:${tasksPath}`);
  const ticks = text.split("\n").filter((line) => /^\s*- \[x\] \d+\.\d/.test(line)).length;
  if (ticks !== tasks.length) return `${ticks} boxes are ticked.`;
  for (const { commit = "", verdict } of result.tasks) {
    const other = await git("diff", "--name-only", verdict?.tree ?? "", commit);
    if (verdict?.end !== "closed" || other !== tasksPath) return `A commit is not what was judged: ${other}`;
  }
  const work = join(root, ".kit/work");
  const left = existsSync(work) ? readdirSync(work) : [];
  if (left.length > 0) return `Work trees are left: ${left.join(", ")}.`;
  if ((await git("worktree", "list")).split("\n").length !== 1) return "Git knows another work tree.";
  if ((await git("status", "--porcelain")) !== "") return "The user's checkout was changed.";
  return undefined;
}
