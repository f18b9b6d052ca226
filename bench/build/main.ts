/**
 * `npm run bench:build`: what `kit build` makes of a new project, in seconds and megabytes, and how long a server takes from its start to
 * the first answer of /health: the output against the same project served by the installed package.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "../../scripts/build.ts";
import { repositoryRoot } from "../../scripts/files.ts";

const run = promisify(execFile);
const rounds = 5;
const kit = join(repositoryRoot, "bin/kit.mjs");

await build();
const root = await mkdtemp(join(tmpdir(), "kit-bench-build-"));
try {
  await run(process.execPath, [kit, "init", root]);
  const rows: string[][] = [["", "build", "size", "files", "start to /health", "processor time"]];
  const started = performance.now();
  const { stdout } = await run(process.execPath, [kit, "build", "--json"], { cwd: root });
  const built: { readonly bytes: number; readonly files: number } = JSON.parse(stdout);
  const seconds = (performance.now() - started) / 1_000;
  const unbundled = await coldStarts([kit, "start", "--cwd", root]);
  const output = await coldStarts([join(root, "build/node/server.mjs")]);
  rows.push(["installed package", "–", "–", "–", ...unbundled]);
  rows.push([
    "kit build, node",
    `${seconds.toFixed(1)} s`,
    `${(built.bytes / 1e6).toFixed(1)} MB`,
    String(built.files),
    ...output,
  ]);
  for (const row of rows) console.log(row.map((cell) => cell.padEnd(20)).join(""));
} finally {
  await rm(root, { recursive: true, force: true });
}

/** The quickest of a few starts: wall time to the first answer, and the processor time until then. */
async function coldStarts(command: readonly string[]): Promise<readonly string[]> {
  const found: { readonly wallMs: number; readonly cpuMs: number }[] = [];
  for (let round = 0; round < rounds; round++) found.push(await coldStart(command));
  const least = (of: "wallMs" | "cpuMs"): string =>
    `${Math.round(Math.min(...found.map((one) => one[of])))} ms`;
  return [least("wallMs"), least("cpuMs")];
}

async function coldStart(
  command: readonly string[],
): Promise<{ readonly wallMs: number; readonly cpuMs: number }> {
  const started = performance.now();
  const child = spawn(process.execPath, [...command, "--port", "0", "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let text = "";
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.on("data", (chunk) => {
        text += String(chunk);
        const [, found] = /"url":\s*"([^"]+)"/.exec(text) ?? [];
        if (found !== undefined) resolve(found);
      });
      child.once("exit", () => reject(new Error(`The server ended: ${text}`)));
    });
    const { ok } = await fetch(`${url}/health`);
    if (!ok) throw new Error("/health did not answer.");
    const wallMs = performance.now() - started;
    return { wallMs, cpuMs: await processorMsOf(child.pid ?? 0) };
  } finally {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  }
}

/** The processor time of a process until now, in ms, by hundredths of a second; NaN where the system does not tell. */
async function processorMsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
