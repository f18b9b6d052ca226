import type { ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { dirname } from "node:path";
import { WebSocketServer } from "ws";
import type { FakeMachine } from "../../remote/testing/fake-machine.ts";
import {
  type FakeHandler,
  type FakeRequest,
  type FakeVendor,
  type FakeVendorState,
  type HttpFakeVendor,
  sendJson,
  startFakeVendor,
  textsOf,
} from "../../remote/testing/fake-vendor.ts";

interface FakeCommand {
  readonly program: ChildProcess;
  /** The vendor's frames: three bytes that name the stream, then output. */
  readonly frames: Buffer[];
  readonly received: Set<() => void>;
  exitCode?: number;
}

type Shells = Map<string, Map<string, FakeCommand>>;

const machinePrefix = "/toolbox/";

/** A fake of the APIs that Daytona's package (0.216.0) uses: sandboxes, and the toolbox of each of them. */
export async function startFakeDaytona(): Promise<FakeVendor> {
  const shells: Shells = new Map();
  let url = "";
  const vendor = await startFakeVendor((state) => createHandler(state, shells, () => url));
  url = vendor.url;
  listenForLogs(vendor, shells);
  return vendor;
}

function createHandler(state: FakeVendorState, shells: Shells, urlOf: () => string): FakeHandler {
  return (request, response) =>
    request.path.startsWith(machinePrefix)
      ? atMachine(state, shells, { request, response })
      : atVendor(state, { request, response, url: urlOf() });
}

interface VendorCall {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
  readonly url: string;
}

function atVendor(state: FakeVendorState, { request, response, url }: VendorCall): true | undefined {
  const { method, path, query, headers } = request;
  const { refuse } = state.trouble;
  const fail = (statusCode: number, message: string): true =>
    sendJson(response, statusCode, { statusCode, message });
  if (refuse !== undefined) return fail(refuse.status, refuse.message);
  if (headers.authorization !== "Bearer dtn_test") return fail(401, "Invalid credentials");
  if (method === "POST" && path === "/sandbox") {
    const body = request.json();
    return sendJson(
      response,
      200,
      viewOf(state.make({ labels: textsOf(body.labels), env: textsOf(body.env) }, body), url),
    );
  }
  if (method === "GET" && path === "/sandbox") {
    const expected = Object.entries(textsOf(JSON.parse(query.get("labels") ?? "{}")));
    const machines = [...state.machines.values()].filter(({ labels }) =>
      expected.every(([name, value]) => labels[name] === value),
    );
    const from = Number(query.get("cursor") ?? 0);
    const nextCursor = from + 2 < machines.length ? String(from + 2) : null;
    return sendJson(response, 200, {
      items: machines.slice(from, from + 2).map((one) => viewOf(one, url)),
      nextCursor,
    });
  }
  const [, id = "", action] = /^\/sandbox\/([^/]+)(?:\/([\w-]+))?$/.exec(path) ?? [];
  if (id === "") return undefined;
  const machine = state.machines.get(id);
  if (machine === undefined) return fail(404, `Sandbox with ID or name ${id} not found`);
  if (method === "DELETE") {
    machine.destroy();
    state.machines.delete(id);
    return sendJson(response, 200, { ...viewOf(machine, url), state: "destroyed" });
  }
  switch (`${method} ${action}`) {
    case "GET undefined":
    case "POST last-activity":
      break;
    case "POST start":
      machine.state = "running";
      break;
    case "POST stop":
      machine.state = "paused";
      machine.stop();
      break;
    default:
      return undefined;
  }
  return sendJson(response, 200, viewOf(machine, url));
}

const viewOf = (machine: FakeMachine, url: string) => ({
  id: machine.id,
  name: machine.id,
  organizationId: "fake",
  user: "daytona",
  env: {},
  labels: machine.labels,
  public: false,
  networkBlockAll: false,
  target: "us",
  cpu: 1,
  gpu: 0,
  memory: 1,
  disk: 3,
  state: machine.state === "running" ? "started" : "stopped",
  toolboxProxyUrl: `${url}/toolbox`,
  createdAt: machine.createdAt.toISOString(),
});

interface MachineCall {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
}

async function atMachine(
  state: FakeVendorState,
  shells: Shells,
  { request, response }: MachineCall,
): Promise<true | undefined> {
  const [id = "", ...names] = request.path.slice(machinePrefix.length).split("/");
  const machine = state.machines.get(id);
  const fail = (statusCode: number, message: string): true =>
    sendJson(response, statusCode, { statusCode, message });
  if (machine === undefined) return fail(404, "Sandbox not found");
  if (machine.state !== "running") return fail(400, "bad request: sandbox is not running");
  const call = `${request.method} ${names.join("/")}`;
  if (call === "POST process/execute") return await execute(state, machine, { request, response });
  if (call === "POST files/bulk-upload") return await receive(machine, { request, response });
  if (call === "POST process/session") {
    shells.set(String(request.json().sessionId), new Map());
    return sendJson(response, 201, {});
  }
  const [, , shell = "", action, command = ""] = names;
  const commands = shells.get(shell);
  if (commands === undefined) return fail(404, "session not found");
  if (request.method === "POST" && action === "exec") {
    const id = `c${commands.size + 1}`;
    commands.set(id, start(machine, String(request.json().command)));
    return sendJson(response, 202, { cmdId: id });
  }
  const stored = commands.get(command);
  if (request.method !== "GET" || action !== "command" || stored === undefined) return undefined;
  const { exitCode, frames } = stored;
  if (names.at(-1) === "logs") {
    const textOf = (stream: number): string =>
      Buffer.concat(
        frames.filter((frame) => frame[0] === stream).map((frame) => frame.subarray(3)),
      ).toString();
    return sendJson(response, 200, { output: "", stdout: textOf(1), stderr: textOf(2) });
  }
  return sendJson(response, 200, {
    id: command,
    command: "",
    ...(exitCode === undefined ? {} : { exitCode }),
  });
}

async function execute(
  state: FakeVendorState,
  machine: FakeMachine,
  { request, response }: MachineCall,
): Promise<true> {
  const { frames, program } = start(machine, String(request.json().command));
  const exitCode = await new Promise<number>((ended) => {
    program.once("close", (code) => ended(code ?? 137));
  });
  if (state.trouble.cutNext === true) {
    state.trouble.cutNext = false;
    response.destroy();
    return true;
  }
  // The vendor mixes both streams.
  const result = Buffer.concat(frames.map((frame) => frame.subarray(3))).toString();
  return sendJson(response, 200, { exitCode, result });
}

async function receive(machine: FakeMachine, { request, response }: MachineCall): Promise<true> {
  const type = String(request.headers["content-type"]);
  const form = await new Response(new Uint8Array(request.body), {
    headers: { "content-type": type },
  }).formData();
  for (let index = 0; form.has(`files[${index}].path`); index += 1) {
    const file = machine.placeOf(String(form.get(`files[${index}].path`)));
    const content = form.get(`files[${index}].file`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      typeof content === "string" || content === null ? "" : Buffer.from(await content.arrayBuffer()),
    );
  }
  return sendJson(response, 200, {});
}

function start(machine: FakeMachine, line: string): FakeCommand {
  const program = machine.start({ words: ["/bin/sh", "-c", line] });
  program.stdin?.end();
  const command: FakeCommand = { program, frames: [], received: new Set() };
  const notify = (): void => {
    for (const each of command.received) each();
  };
  for (const [index, stream] of [program.stdout, program.stderr].entries()) {
    stream?.on("data", (chunk: Buffer) => {
      command.frames.push(Buffer.concat([Buffer.alloc(3, index + 1), chunk]));
      notify();
    });
  }
  program.once("close", (code) => {
    command.exitCode = code ?? 137;
    notify();
  });
  return command;
}

/** Streams the output of a command. */
function listenForLogs(vendor: HttpFakeVendor, shells: Shells): void {
  const sockets = new WebSocketServer({ noServer: true });
  vendor.server.on("upgrade", (request, socket, head) => {
    const [, shell = "", id = ""] =
      /^\/toolbox\/[^/]+\/process\/session\/([^/]+)\/command\/(\w+)\/logs/.exec(request.url ?? "") ?? [];
    const command = shells.get(shell)?.get(id);
    if (command === undefined) {
      socket.destroy();
      return;
    }
    sockets.handleUpgrade(request, socket, head, (stream) => {
      if (vendor.trouble.cutNext === true) {
        vendor.trouble.cutNext = false;
        setTimeout(() => socket.destroy(), 50);
      }
      let sent = 0;
      const send = (): void => {
        for (; sent < command.frames.length; sent += 1) stream.send(command.frames[sent] ?? Buffer.alloc(0));
        if (command.exitCode !== undefined) stream.close(1000);
      };
      command.received.add(send);
      stream.once("close", () => command.received.delete(send));
      send();
    });
  });
}
