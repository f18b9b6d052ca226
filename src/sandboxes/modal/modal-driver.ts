import { randomUUID } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import {
  hasLabels,
  type MachineInfo,
  type MachineSpec,
  type RemoteDriver,
  type RemoteMachine,
  type RemoteRun,
  shellLine,
} from "../remote/driver.ts";
import { atVendor } from "../remote/load-vendor-sdk.ts";
import { reasonOf, remoteError } from "../remote/remote-error.ts";
import { reasonFor, statusOf, toRemote, vendor } from "./modal-error.ts";
import {
  type ModalApp,
  type ModalClient,
  type ModalCreation,
  type ModalImage,
  type ModalMachine,
  type ModalOptions,
  openModal,
} from "./modal-sdk.ts";

/** The vendor's limit for a machine's lifetime. */
const maxLifeMs = 24 * 3_600_000;

interface Account {
  readonly client: ModalClient;
  readonly app: ModalApp;
  readonly image: ModalImage;
}

/** Creates the driver of Modal, which cannot pause machines, with the vendor's package of the project at `root`. */
export function createModalDriver(options: ModalOptions, root: string): RemoteDriver {
  const open = async (): Promise<Account> => {
    try {
      const client = await openModal(options, root);
      const app = await client.apps.fromName(options.app ?? "kit", { createIfMissing: true });
      return { client, app, image: client.images.fromRegistry(options.image ?? "debian:12") };
    } catch (error) {
      throw error instanceof KitError ? error : toRemote(error);
    }
  };
  const withAccount = atVendor(open, (_, error) => toRemote(error));
  return {
    name: vendor,
    folder: options.folder ?? "/home/user/workspace",
    network: "hosts",
    create: (spec) =>
      withAccount(async ({ client, app, image }) => {
        try {
          return toMachine(await client.sandboxes.create(app, image, creationOf(spec)));
        } catch (error) {
          // NOT_FOUND here means that the environment or the image is missing.
          throw toRemote(error, reasonFor(error) === "gone" ? "refused" : reasonFor(error));
        }
      }),
    attach: (id) =>
      withAccount(async ({ client }) => {
        const machine = await client.sandboxes.fromId(id);
        if ((await machine.poll()) !== null) throw remoteError(vendor, "gone");
        return toMachine(machine);
      }),
    destroy: (id) =>
      withAccount(async ({ client }) => {
        try {
          await (await client.sandboxes.fromId(id)).terminate();
        } catch (error) {
          if (reasonFor(error) !== "gone") throw error;
        }
      }),
    list: (labels) =>
      withAccount(async ({ client, app }) => {
        const machines: ModalMachine[] = [];
        for await (const machine of client.sandboxes.list({ appId: app.appId, tags: toTags(labels) }))
          machines.push(machine);
        const found = await Promise.all(machines.map(infoOf));
        return found.filter((info) => info !== undefined).filter((info) => hasLabels(info, labels));
      }),
  };
}

function creationOf({ labels, env, network, aliveMs }: MachineSpec): ModalCreation {
  const rules =
    network === undefined
      ? {}
      : network.length === 0
        ? { blockNetwork: true }
        : { outboundDomainAllowlist: [...network] };
  return {
    timeoutMs: maxLifeMs,
    // The vendor accepts whole seconds only.
    idleTimeoutMs: Math.min(Math.ceil(aliveMs / 1_000) * 1_000, maxLifeMs),
    env: { ...env },
    tags: toTags(labels),
    ...rules,
  };
}

/** `undefined` if the machine has ended meanwhile. */
async function infoOf(machine: ModalMachine): Promise<MachineInfo | undefined> {
  try {
    return { id: machine.sandboxId, state: "running", labels: toLabels(await machine.getTags()) };
  } catch (error) {
    if (reasonFor(error) === "gone") return undefined;
    throw error;
  }
}

function toMachine(machine: ModalMachine): RemoteMachine {
  return {
    id: machine.sandboxId,
    run: (request) => runOnModal(machine, request),
    // Running a script resets the idle time; the vendor has no other way.
    keepAlive: async () => undefined,
  };
}

const maxTagLength = 63;
const plainValue = /^[A-Za-z0-9._-]{1,63}$/;
const encodedPrefix = "b64.";
const partName = /^(.+)\.(\d+)$/;

/**
 * Converts labels to Modal's tags, whose values have at most 63 letters, digits, dots, dashes and underscores. Other
 * values are encoded in base64url and split over several tags (`kit_instance`, `kit_instance.1`, ...).
 */
export function toTags(labels: Readonly<Record<string, string>>): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const [name, value] of Object.entries(labels)) {
    const text =
      plainValue.test(value) && !value.startsWith(encodedPrefix)
        ? value
        : `${encodedPrefix}${Buffer.from(value).toString("base64url")}`;
    for (let part = 0; part * maxTagLength < text.length; part += 1)
      tags[part === 0 ? name : `${name}.${part}`] = text.slice(
        part * maxTagLength,
        (part + 1) * maxTagLength,
      );
  }
  return tags;
}

/** The inverse of `toTags`. */
export function toLabels(tags: Readonly<Record<string, string>>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [name, first] of Object.entries(tags)) {
    if (partName.test(name)) continue;
    let text = first;
    for (let part = 1; tags[`${name}.${part}`] !== undefined; part += 1) text += tags[`${name}.${part}`];
    labels[name] = text.startsWith(encodedPrefix)
      ? Buffer.from(text.slice(encodedPrefix.length), "base64url").toString()
      : text;
  }
  return labels;
}

/** The package accepts 64 KiB of words. */
const maxWordBytes = 60_000;
/** Characters per message of standard input. */
const inputChunk = 1024 * 1024;
/** Time to wait for a script's exit code after its output has ended. */
const endPatienceMs = 30_000;

/**
 * Runs a script: one request starts it, then its output and exit code are read concurrently. The package repeats a
 * request without an answer up to ten times. The vendor recognizes a repeated request by its id, and a command
 * checks itself that it runs only once.
 */
async function runOnModal(machine: ModalMachine, request: RemoteRun): Promise<{ readonly exitCode: number }> {
  const { stdin, env = {}, isCommand = false, signal } = request;
  signal?.throwIfAborted();
  const id = randomUUID();
  const { words, input } = wordsOf(request, id);
  const giveUp = new AbortController();
  const stop = (): void => giveUp.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  let hasStarted = false;
  try {
    const program = await machine.exec(words, {
      mode: "text",
      stderr: isCommand ? "pipe" : "ignore",
      env: { ...env },
    });
    hasStarted = true;
    const ending = program._wait(giveUp.signal);
    const output = Promise.all([
      receive(program.stdout, giveUp.signal, (text) => request.onOutput("stdout", text)),
      receive(program.stderr, giveUp.signal, (text) => {
        if (text.includes(`${id}:again`)) throw remoteError(vendor, "lost");
        request.onOutput("stderr", text);
      }),
      input === "" && stdin === undefined ? undefined : feed(program.stdin, input),
    ]);
    const [exitCode] = await Promise.all([ending, output.then(() => waitForEnd(ending))]);
    return { exitCode };
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (reasonOf(error) !== undefined) throw error;
    throw hasStarted ? remoteError(vendor, "lost", { cause: error }) : await explain(machine, error);
  } finally {
    signal?.removeEventListener("abort", stop);
    giveUp.abort();
  }
}

/** The words that start a script, and its standard input. A long script goes to the beginning of standard input. */
function wordsOf({ script, args, stdin, isCommand }: RemoteRun, id: string) {
  const runOnce = `mkdir "\${TMPDIR:-/tmp}/.kit-once-${id}" 2>/dev/null || { echo ${id}:again >&2; exit 75; }\n`;
  const fullScript = `${isCommand === true ? runOnce : ""}${stdin === undefined ? "exec </dev/null\n" : ""}${script}`;
  const words = ["sh", "-c", fullScript, "kit", ...args];
  if (Buffer.byteLength(words.join("")) <= maxWordBytes) return { words, input: stdin ?? "" };
  const line = shellLine(fullScript, args);
  const readScript = 'line=$(head -c "$1") && eval "$line"';
  return {
    words: ["sh", "-c", readScript, "kit", String(Buffer.byteLength(line))],
    input: line + (stdin ?? ""),
  };
}

async function receive(
  stream: ReadableStream<string>,
  signal: AbortSignal,
  listener: (text: string) => void,
): Promise<void> {
  const reader = stream.getReader();
  const stop = (): void => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      listener(value);
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Sends standard input. A program can end without reading all of it; if the connection is lost, `_wait` fails. */
async function feed(stream: WritableStream<string>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    for (let at = 0; at < text.length; at += inputChunk) await writer.write(text.slice(at, at + inputChunk));
    await writer.close();
  } catch {
    await writer.abort().catch(() => undefined);
  }
}

async function waitForEnd(ending: Promise<number>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(remoteError(vendor, "lost")), endPatienceMs);
  try {
    await Promise.race([ending, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Converts an error that occurred before the vendor confirmed that the script runs. */
async function explain(machine: ModalMachine, error: unknown): Promise<Error> {
  const reason = reasonFor(error);
  if (reason !== "unreachable" && reason !== "gone" && reason !== "refused") return toRemote(error, reason);
  // A machine that has ended answers with various errors.
  if (reason === "gone" || (await hasEnded(machine))) return toRemote(error, "gone");
  const mayRun = reason === "unreachable" && statusOf(error)?.call === "TaskExecStart";
  return toRemote(error, mayRun ? "lost" : reason);
}

async function hasEnded(machine: ModalMachine): Promise<boolean> {
  try {
    return (await machine.poll()) !== null;
  } catch (error) {
    return reasonFor(error) === "gone";
  }
}
