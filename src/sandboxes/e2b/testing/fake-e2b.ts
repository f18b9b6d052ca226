import type { ChildProcess } from "node:child_process";
import type { ServerResponse } from "node:http";
import type { FakeMachine } from "../../remote/testing/fake-machine.ts";
import {
  type FakeHandler,
  type FakeRequest,
  type FakeVendor,
  type FakeVendorState,
  sendJson,
  startFakeVendor,
  textsOf,
} from "../../remote/testing/fake-vendor.ts";

/**
 * A fake of the APIs that E2B's package (2.51.0) uses: sandboxes, and Connect with JSON to each of them.
 *
 * @example
 * ```ts
 * import { startFakeE2b } from "kit/testing";
 *
 * const fake = await startFakeE2b();
 * console.log(fake);
 * await fake.close();
 * ```
 */
export function startFakeE2b(): Promise<FakeVendor> {
  return startFakeVendor(createHandler);
}

function createHandler(state: FakeVendorState): FakeHandler {
  const programs = new Map<string, ChildProcess>();
  return (request, response) =>
    request.path.startsWith("/process.Process/")
      ? atMachine(state, programs, { request, response })
      : request.path === "/health"
        ? sendJson(response, machineOf(state, request)?.state === "running" ? 204 : 502)
        : atVendor(state, request, response);
}

function atVendor(state: FakeVendorState, request: FakeRequest, response: ServerResponse): true | undefined {
  const { method, path, query } = request;
  const { refuse } = state.trouble;
  const fail = (code: number, message: string): true => sendJson(response, code, { code, message });
  if (refuse !== undefined) return fail(refuse.status, refuse.message);
  if (request.headers["x-api-key"] !== "e2b_test") return fail(401, "Invalid API key");
  if (method === "POST" && path === "/v2/sandboxes") {
    const body = request.json();
    const machine = state.make({ labels: textsOf(body.metadata), env: textsOf(body.envVars) }, body);
    return sendJson(response, 201, viewOf(machine));
  }
  if (method === "GET" && path === "/v2/sandboxes") {
    const expected = [...new URLSearchParams(query.get("metadata") ?? "")].map(([name, value]) => [
      decodeURIComponent(name),
      decodeURIComponent(value),
    ]);
    const machines = [...state.machines.values()].filter(({ labels }) =>
      expected.every(([name = "", value]) => labels[name] === value),
    );
    // Two entries per page, so that callers need several pages.
    const from = Number(query.get("nextToken") ?? 0);
    if (from + 2 < machines.length) response.setHeader("x-next-token", String(from + 2));
    return sendJson(response, 200, machines.slice(from, from + 2).map(infoOf));
  }
  const [, id = "", action] = /^\/(?:v2\/)?sandboxes\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
  const machine = state.machines.get(id);
  if (id === "") return undefined;
  if (machine === undefined) return fail(404, `Sandbox "${id}" doesn't exist or you don't have access to it`);
  if (method === "DELETE") {
    machine.destroy();
    state.machines.delete(id);
    return sendJson(response, 204);
  }
  switch (`${method} ${action}`) {
    case "POST connect":
      machine.state = "running";
      return sendJson(response, 200, viewOf(machine));
    case "POST pause":
      if (machine.state === "paused") return fail(409, "Sandbox is already paused");
      machine.state = "paused";
      return sendJson(response, 204);
    case "POST timeout":
      return sendJson(response, 204);
    default:
      return undefined;
  }
}

const viewOf = (machine: FakeMachine) => ({
  sandboxID: machine.id,
  templateID: "base",
  clientID: "fake",
  envdVersion: "0.5.7",
  envdAccessToken: "token",
  domain: null,
});

const infoOf = (machine: FakeMachine) => ({
  ...viewOf(machine),
  metadata: machine.labels,
  state: machine.state,
  startedAt: machine.createdAt.toISOString(),
  endAt: machine.createdAt.toISOString(),
  cpuCount: 2,
  memoryMB: 512,
});

function machineOf(state: FakeVendorState, { headers }: FakeRequest): FakeMachine | undefined {
  return state.machines.get(String(headers["e2b-sandbox-id"]));
}

interface StartMessage {
  readonly process: {
    readonly cmd: string;
    readonly args?: readonly string[];
    readonly envs?: Readonly<Record<string, string>>;
  };
  readonly stdin?: boolean;
}

interface InputMessage {
  readonly process: { readonly pid: number };
  readonly input?: { readonly stdin?: string };
}

async function atMachine(
  state: FakeVendorState,
  programs: Map<string, ChildProcess>,
  { request, response }: { readonly request: FakeRequest; readonly response: ServerResponse },
): Promise<true | undefined> {
  const machine = machineOf(state, request);
  // The vendor's gateway answers so for a machine that does not run.
  if (machine?.state !== "running") return sendJson(response, 502, { message: "The sandbox was not found" });
  const call = request.path.slice("/process.Process/".length);
  if (call === "Start") {
    const message: StartMessage = JSON.parse(request.body.subarray(5).toString());
    return await streamProgram(state, { machine, message, programs, response });
  }
  const { process: chosen, input }: InputMessage = JSON.parse(request.body.toString());
  const program = programs.get(`${machine.id}:${chosen.pid}`);
  if (program === undefined)
    return sendJson(response, 404, { code: "not_found", message: "no such process" });
  if (call === "SendInput") program.stdin?.write(Buffer.from(input?.stdin ?? "", "base64"));
  else if (call === "CloseStdin") program.stdin?.end();
  else if (call === "SendSignal") program.kill("SIGKILL");
  else return undefined;
  return sendJson(response, 200, {});
}

interface Started {
  readonly machine: FakeMachine;
  readonly message: StartMessage;
  readonly programs: Map<string, ChildProcess>;
  readonly response: ServerResponse;
}

async function streamProgram(
  state: FakeVendorState,
  { machine, message, programs, response }: Started,
): Promise<true> {
  const { process: expected, stdin } = message;
  // The login shell of a real machine reads settings that tests do not have.
  const line = expected.args?.at(-1) ?? "";
  const program = machine.start({ words: ["/bin/sh", "-c", line], env: expected.envs ?? {} });
  const key = `${machine.id}:${program.pid}`;
  programs.set(key, program);
  if (stdin !== true) program.stdin?.end();
  response.writeHead(200, { "content-type": "application/connect+json" });
  const send = (value: unknown, flag = 0): void => void response.write(frame(value, flag));
  send({ event: { start: { pid: program.pid } } });
  if (state.trouble.cutNext === true) {
    state.trouble.cutNext = false;
    setTimeout(() => response.destroy(), 50);
  }
  for (const stream of ["stdout", "stderr"] as const) {
    program[stream]?.on("data", (chunk: Buffer) =>
      send({ event: { data: { [stream]: chunk.toString("base64") } } }),
    );
  }
  const [code, signal] = await new Promise<[number | null, string | null]>((ended) => {
    program.once("close", (...how) => ended(how));
  });
  programs.delete(key);
  const end = { exitCode: code ?? -1, exited: code !== null, status: signal ?? `exit status ${code}` };
  send({ event: { end } });
  send({}, 2);
  response.end();
  return true;
}

function frame(value: unknown, flag: number): Buffer {
  const body = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
