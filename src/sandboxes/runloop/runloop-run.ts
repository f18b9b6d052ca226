import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { KitError } from "../../base/kit-error.ts";
import { type RemoteRun, toUploadedRun, type UploadFile } from "../remote/driver.ts";
import { type RemoteReason, reasonOf, remoteError, wasNotSent } from "../remote/remote-error.ts";

export interface Devbox {
  readonly sdk: RunloopSdk;
  readonly client: RunloopClient;
  readonly id: string;
}

/** Seconds that the first request waits for the end. Short for commands, so that their output is streamed soon. */
const commandSeconds = 1;
const scriptSeconds = 25;
/** The exit code of a shell for a killed program. */
const killed = 137;
/** The vendor returns only the last lines of the output, by default a hundred. */
const maxLines = 100_000;
/** Attempts to resume a broken stream without receiving new output. */
const maxTries = 5;
/** The timeout of a stream, which lasts as long as its command. */
const streamTimeoutMs = 24 * 3_600_000;

/** Runs a script in one request if it ends in time; otherwise reads its output as two streams. */
export async function runOnDevbox(box: Devbox, request: RemoteRun): Promise<{ readonly exitCode: number }> {
  const { client, id } = box;
  const { isCommand = false, onOutput, signal } = request;
  signal?.throwIfAborted();
  const seconds = isCommand ? commandSeconds : scriptSeconds;
  const options = {
    timeout: client.timeout + seconds * 1_000,
    ...(signal === undefined ? {} : { signal }),
  };
  let phase: Phase = "before";
  try {
    const command = await uploadInput(box, request);
    phase = "sent";
    const body = { command, last_n: String(maxLines), optimistic_timeout: seconds };
    const first = await client.devboxes.execute(id, body, options);
    phase = "running";
    if (!isComplete(first)) {
      const { exit_status } = await follow(box, first.execution_id, request);
      return { exitCode: exit_status ?? killed };
    }
    if (first.stdout) onOutput("stdout", first.stdout);
    if (isCommand && first.stderr) onOutput("stderr", first.stderr);
    return { exitCode: first.exit_status ?? killed };
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (reasonOf(error) !== undefined) throw error;
    throw await explain(box, error, phase);
  }
}

/** How far a script got: its request was not sent yet, may have arrived, or has arrived. */
type Phase = "before" | "sent" | "running";
type Execution = Awaited<ReturnType<RunloopClient["devboxes"]["execute"]>>;

function isComplete({ status, stdout, stderr, stdout_truncated, stderr_truncated }: Execution): boolean {
  const isCut = (text: string | null | undefined): boolean => (text ?? "").split("\n").length > maxLines;
  return (
    status === "completed" &&
    stdout_truncated !== true &&
    stderr_truncated !== true &&
    !isCut(stdout) &&
    !isCut(stderr)
  );
}

/** Uploads the script's input, and returns the line that runs the script. */
async function uploadInput({ sdk, client, id }: Devbox, request: RemoteRun): Promise<string> {
  // Relative to the home folder, where uploads go and commands start.
  const { line, files } = toUploadedRun(request, `./.kit-in-${randomUUID()}`);
  const { signal } = request;
  const upload = async ({ path, text }: UploadFile): Promise<void> => {
    const name = path.slice("./".length);
    const file = await sdk.toFile(Buffer.from(text), name);
    await client.devboxes.uploadFile(id, { path: name, file }, signal === undefined ? {} : { signal });
  };
  await Promise.all(files.map(upload));
  return line;
}

/**
 * Reads a script's whole output until it ends. The vendor keeps the output, so a broken stream is resumed at its
 * last offset.
 */
async function follow(
  { client, id }: Devbox,
  execution: string,
  { isCommand = false, onOutput, signal }: RemoteRun,
): Promise<Execution> {
  const { executions } = client.devboxes;
  const shared = signal === undefined ? {} : { signal };
  const options = { timeout: streamTimeoutMs, ...shared };
  const received = { stdout: 0, stderr: 0 };
  const read = async (stream: "stdout" | "stderr"): Promise<void> => {
    const from = { offset: String(received[stream]) };
    const chunks =
      stream === "stdout"
        ? await executions.streamStdoutUpdates(id, execution, from, options)
        : await executions.streamStderrUpdates(id, execution, from, options);
    for await (const { output } of chunks) {
      received[stream] += Buffer.byteLength(output);
      if (output !== "") onOutput(stream, output);
    }
  };
  for (let tries = 1; ; tries += 1) {
    const before = received.stdout + received.stderr;
    try {
      // Wait for both streams, so that none is still running when it is resumed.
      const streams = await Promise.allSettled([read("stdout"), ...(isCommand ? [read("stderr")] : [])]);
      const failed = streams.find((stream) => stream.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      const now = await executions.retrieve(id, execution, {}, shared);
      if (now.status === "completed") return now;
    } catch (error) {
      if (received.stdout + received.stderr > before) tries = 1;
      if (tries >= maxTries || signal?.aborted === true) throw error;
    }
    await setTimeout(100 * Math.min(tries, 20), undefined, shared);
  }
}

/** Converts an error of a script's request to an error of kit. */
async function explain({ sdk, client, id }: Devbox, error: unknown, phase: Phase): Promise<Error> {
  if (phase === "running") return remoteError(vendor, "lost", { cause: error });
  const reason = reasonFor(sdk, error);
  if (reason === "unreachable" && phase === "sent" && !wasNotSent(error))
    return remoteError(vendor, "lost", { cause: error });
  if (reason !== "refused" && reason !== "gone") return toRemote(sdk, error);
  // The vendor refuses requests to a suspended machine, but its message does not say why reliably.
  const machine = await client.devboxes.retrieve(id).catch((cause: unknown) => cause);
  if (machine instanceof Error) return toRemote(sdk, machine);
  const isRunning = (machine as { readonly status?: string }).status === "running";
  return toRemote(sdk, error, isRunning ? "refused" : "detached");
}

export type RunloopSdk = typeof import("@runloop/api-client");
export type RunloopClient = InstanceType<RunloopSdk["Runloop"]>;

export const vendor = "runloop";
export const keyHint = "Set RUNLOOP_API_KEY.";

/** Converts an error of the vendor's package to an error of kit. */
export function toRemote(
  sdk: RunloopSdk,
  error: unknown,
  reason: RemoteReason = reasonFor(sdk, error),
): KitError {
  const waitS = error instanceof sdk.APIError ? Number(error.headers?.["retry-after"]) : Number.NaN;
  return remoteError(vendor, reason, {
    cause: error,
    ...(reason === "key" ? { hint: keyHint } : {}),
    ...(waitS > 0 ? { retryAfterS: waitS } : {}),
  });
}

export function reasonFor(sdk: RunloopSdk, error: unknown): RemoteReason {
  if (!(error instanceof sdk.APIError)) return "unreachable";
  const { status, message } = error;
  const isQuota = /quota|concurren|maximum|limit (?:of|reached|exceeded)/i.test(message);
  switch (status) {
    case undefined:
    case 408:
      return "unreachable";
    case 401:
      return "key";
    case 402:
      return "quota";
    case 403:
      return isQuota ? "quota" : "key";
    case 404:
    case 410:
      return "gone";
    case 429:
      return isQuota ? "quota" : "busy";
    default:
      return status < 500 ? "refused" : "unreachable";
  }
}
