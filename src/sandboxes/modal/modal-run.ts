import { randomUUID } from "node:crypto";
import { type RemoteRun, shellLine } from "../remote/driver.ts";
import { reasonOf, remoteError } from "../remote/remote-error.ts";
import { reasonFor, statusOf, toRemote, vendor } from "./modal-error.ts";
import type { ModalMachine } from "./modal-sdk.ts";

/** The package takes 64 KiB of words. */
const mostWordBytes = 60_000;
/** One message of standard input. */
const inputChunk = 1024 * 1024;
/** How long the end of a script may be unheard of once its output has ended. */
const endPatienceMs = 30_000;

/**
 * Runs a script: one request starts it, then its output and its end are read at once. The package sends a request
 * that got no answer again, up to ten times; the vendor tells by its id that the script runs already, and a command
 * looks for itself whether it is the first.
 */
export async function runOnModal(
  machine: ModalMachine,
  request: RemoteRun,
): Promise<{ readonly exitCode: number }> {
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
    const [exitCode] = await Promise.all([ending, output.then(() => heardInTime(ending))]);
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

/** The words that start a script, and what it reads: a long line goes ahead of its standard input. */
function wordsOf({ script, args, stdin, isCommand }: RemoteRun, id: string) {
  const once = `mkdir "\${TMPDIR:-/tmp}/.kit-once-${id}" 2>/dev/null || { echo ${id}:again >&2; exit 75; }\n`;
  const whole = `${isCommand === true ? once : ""}${stdin === undefined ? "exec </dev/null\n" : ""}${script}`;
  const words = ["sh", "-c", whole, "kit", ...args];
  if (Buffer.byteLength(words.join("")) <= mostWordBytes) return { words, input: stdin ?? "" };
  const line = shellLine(whole, args);
  const take = 'line=$(head -c "$1") && eval "$line"';
  return {
    words: ["sh", "-c", take, "kit", String(Buffer.byteLength(line))],
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

/** A program may end without reading all that it is given; where the connection is lost, its own end tells. */
async function feed(stream: WritableStream<string>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    for (let at = 0; at < text.length; at += inputChunk) await writer.write(text.slice(at, at + inputChunk));
    await writer.close();
  } catch {
    await writer.abort().catch(() => undefined);
  }
}

async function heardInTime(ending: Promise<number>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(remoteError(vendor, "lost")), endPatienceMs);
  try {
    await Promise.race([ending, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Converts an error that came before the vendor reported that the script runs. */
async function explain(machine: ModalMachine, error: unknown): Promise<Error> {
  const reason = reasonFor(error);
  if (reason !== "unreachable" && reason !== "gone" && reason !== "refused") return toRemote(error, reason);
  // A machine that has ended answers in many ways.
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
