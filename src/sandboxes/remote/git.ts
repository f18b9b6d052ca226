import { delimiter, isAbsolute } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { startProcess } from "../../processes/start-process.ts";

const passedVariables = ["HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SystemRoot", "TEMP", "TMP", "TMPDIR"];
const maxOutputBytes = 512 * 1024 * 1024;

export interface GitOutcome {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/**
 * Runs Git on this computer without a shell, in a clean environment, and overrides repository settings that could
 * start a program. Throws `unavailable` if Git cannot be started.
 */
export async function git(cwd: string, args: readonly string[], input = ""): Promise<GitOutcome> {
  const hardening = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"];
  const settings = [
    ...hardening,
    "safe.bareRepository=explicit",
    "core.quotePath=false",
    "apply.whitespace=nowarn",
  ];
  const child = startProcess({
    program: "git",
    args: [...settings.flatMap((setting) => ["-c", setting]), ...args],
    cwd,
    env: environment(),
    hasInput: true,
  });
  const output: Buffer[] = [];
  let size = 0;
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxOutputBytes) child.signal("SIGKILL");
    else output.push(chunk);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < 8_192) stderr += text;
  });
  child.stdin?.end(input);
  const { code } = await child.exited.catch((cause: unknown) => {
    throw new KitError({ code: "unavailable", message: "Git could not be started.", cause });
  });
  await child.closed;
  return { exitCode: code ?? -1, stdout: Buffer.concat(output), stderr };
}

function environment(): NodeJS.ProcessEnv {
  // A relative entry of PATH would be resolved in the repository, which may contain a program named `git`.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  const env: NodeJS.ProcessEnv = {
    PATH: path.join(delimiter),
    LC_ALL: "C",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
  };
  for (const name of passedVariables) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
