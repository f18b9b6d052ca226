import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** `kit start` as a separate process. */
export interface ServiceProcess extends AsyncDisposable {
  readonly url: string;
  /** Kills it as a power failure would. */
  kill(): Promise<void>;
  /** Restarts it with the same folder and port. */
  restart(): Promise<void>;
}

const example = join(import.meta.dirname, "..");
const kit = join(dirname(fileURLToPath(import.meta.resolve("kit/package.json"))), "bin/kit.mjs");

/** Serves a fresh copy of this example, so that your work in the example is not touched. */
export async function startService(env: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  await mkdir(join(example, ".kit"), { recursive: true });
  const folder = await mkdtemp(join(example, ".kit/demo-"));
  for (const name of ["kit.config.ts", "AGENTS.md", "src"])
    await cp(join(example, name), join(folder, name), { recursive: true });
  let running = await start({ folder, env, port: 0 });
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (running.child.exitCode !== null || running.child.signalCode !== null) return;
    running.child.kill(signal);
    await running.exit;
  };
  return {
    url: running.url,
    kill: () => kill("SIGKILL"),
    async restart() {
      running = await start({ folder, env, port: running.port });
    },
    async [Symbol.asyncDispose]() {
      await kill("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface StartOptions {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** 0 chooses a free port. */
  readonly port: number;
}

async function start({ folder, env, port }: StartOptions) {
  const child = spawn(process.execPath, [kit, "start", "--json", "--port", `${port}`, "--cwd", folder], {
    env: { ...ownEnvironment(), ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  // The process prints its address once it listens; later output does not matter here.
  let output = "";
  for await (const chunk of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += chunk;
    if (output.endsWith("}\n")) break;
  }
  child.stdout.resume();
  if (!output.endsWith("}\n")) throw new Error("kit start has ended before it served.");
  const address: { url: string; port: number } = JSON.parse(output);
  return { ...address, child, exit };
}

/** The environment without kit's settings for your own projects. */
function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KIT_")));
}
