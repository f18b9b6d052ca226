import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import type { Environment } from "../app/config/environment.ts";
import { KitError } from "../base/kit-error.ts";
import type { Deployment, DeploymentStep } from "./targets/target.ts";

export interface DeployOptions {
  readonly environment: Environment;
  readonly signal: AbortSignal;
  /** Called with each command before it runs, and with its output. */
  readonly print: (text: string) => void;
  /** Called with what it waits for after the last command. */
  readonly note: (text: string) => void;
}

export interface Deployed {
  /** The exit code of the platform's tool: of the first failed step, else 0; 1 if the address does not answer. */
  readonly exitCode: number;
  readonly address: string | undefined;
  /** Whether `/health` has answered; undefined where there is no address. */
  readonly healthy: boolean | undefined;
}

/**
 * Runs the steps of a deployment by the platform's own tool, then asks the address for its health.
 *
 * Throws `unavailable` where the tool is not installed or not signed in, before anything is sent.
 */
export async function deploy(deployment: Deployment, options: DeployOptions): Promise<Deployed> {
  const { environment, print } = options;
  const tool = await findTool(deployment.tools, environment);
  if (tool === undefined) throw missingTool(deployment);
  const missing = deployment.required.filter((name) => !environment[name]);
  if (missing.length > 0) throw missingVariables(missing);
  const check = await runStep(tool, { args: deployment.check }, { ...options, print: () => undefined });
  if (check.exitCode !== 0) {
    throw new KitError({
      code: "unavailable",
      message: `${deployment.tools[0]} is not signed in, or does not work: ${lastLine(check.text)}`,
      hint: `Run: ${deployment.signIn}. What was built is in place; nothing was sent.`,
    });
  }
  let printed = "";
  for (const step of deployment.steps) {
    print(`$ ${toLine(deployment, step)}\n`);
    const { exitCode, text } = await runStep(tool, step, options);
    if (exitCode !== 0) return { exitCode, address: undefined, healthy: undefined };
    printed += text;
  }
  const address = await addressOf(tool, deployment, { ...options, printed });
  if (address === undefined) return { exitCode: 0, address, healthy: undefined };
  options.note(`Waiting up to ${healthMs / 1_000} s for ${address}/health to answer …`);
  const healthy = await becomesHealthy(address, options.signal);
  return { exitCode: healthy ? 0 : 1, address, healthy };
}

/** A step as a shell line; values that a command reads from the environment are named, never printed. */
export function toLine({ tools }: Deployment, { args, input }: DeploymentStep): string {
  const words = [tools[0], ...args].map((word) =>
    /^[\w./:@=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`,
  );
  return `${words.join(" ")}${input === undefined ? "" : ` < $${input}`}`;
}

async function findTool(names: readonly string[], { PATH = "" }: Environment): Promise<string | undefined> {
  for (const name of names) {
    for (const folder of PATH.split(delimiter)) {
      const file = join(folder, name);
      const isThere = await access(file, constants.X_OK).then(
        () => true,
        () => false,
      );
      if (folder !== "" && isThere) return file;
    }
  }
  return undefined;
}

function missingTool({ tools, install }: Deployment): KitError {
  return new KitError({
    code: "unavailable",
    message: `${tools[0]} is not installed; nothing was sent.`,
    hint: `${install} What was built is in place.`,
  });
}

function missingVariables(names: readonly string[]): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${names.join(" and ")} must be set: a deployed server accepts only requests with a key.`,
    hint: `Such as: export ${names[0]}=$(openssl rand -hex 24)`,
  });
}

interface Ran {
  readonly exitCode: number;
  readonly text: string;
}

/** How much of a step's output is kept, from its end. */
const maxText = 65_536;

async function runStep(
  tool: string,
  { args, cwd, input }: DeploymentStep,
  { environment, signal, print }: DeployOptions,
): Promise<Ran> {
  signal.throwIfAborted();
  const child: ChildProcess = spawn(tool, args, {
    cwd,
    env: environment as NodeJS.ProcessEnv,
    stdio: [input === undefined ? "inherit" : "pipe", "pipe", "pipe"],
  });
  let text = "";
  const collect = (chunk: Buffer): void => {
    text = (text + chunk.toString("utf8")).slice(-maxText);
    print(chunk.toString("utf8"));
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  child.stdin?.on("error", () => undefined).end(input === undefined ? "" : environment[input]);
  // A killed tool leaves a deployment half done, so it gets the signal and ends by itself.
  const interrupt = (): boolean => child.kill("SIGINT");
  signal.addEventListener("abort", interrupt, { once: true });
  try {
    const exitCode = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve(code ?? 1));
    });
    signal.throwIfAborted();
    return { exitCode, text };
  } finally {
    signal.removeEventListener("abort", interrupt);
  }
}

async function addressOf(
  tool: string,
  { address }: Deployment,
  { printed, ...options }: DeployOptions & { readonly printed: string },
): Promise<string | undefined> {
  if (address === undefined || typeof address === "string") return address;
  if ("printed" in address) {
    const plain = stripVTControlCharacters(printed);
    const [, found] =
      address.printed.map((pattern) => pattern.exec(plain)).find((match) => match !== null) ?? [];
    return found?.replace(/[/.,]+$/, "");
  }
  const { text, exitCode } = await runStep(tool, { args: address }, { ...options, print: () => undefined });
  const [found] = /https?:\/\/[^\s"',]+/.exec(text) ?? [];
  return exitCode === 0 ? found?.replace(/\/$/, "") : undefined;
}

/** How long a new server may take until it answers, in ms. */
const healthMs = 120_000;

async function becomesHealthy(address: string, signal: AbortSignal): Promise<boolean> {
  const end = Date.now() + healthMs;
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, 4_000)) {
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(5_000)]);
    const answer = await fetch(`${address}/health`, { signal: timeout }).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok === true) return true;
    signal.throwIfAborted();
    if (Date.now() + waitMs > end) return false;
    await delay(waitMs, undefined, { signal });
  }
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
}
