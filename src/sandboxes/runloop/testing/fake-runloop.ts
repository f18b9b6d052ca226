import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
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

interface FakeExecution {
  readonly id: string;
  readonly program: ChildProcess;
  readonly output: { stdout: Buffer; stderr: Buffer };
  readonly received: Set<() => void>;
  exitCode?: number;
}

interface FakeState {
  readonly state: FakeVendorState;
  readonly executions: Map<string, FakeExecution>;
  /** Network policies by name. */
  readonly policies: Map<string, unknown>;
}

interface Call {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
}

/** A fake of the API that Runloop's package (1.32.0) uses. */
export function startFakeRunloop(): Promise<FakeVendor> {
  return startFakeVendor(createHandler);
}

function createHandler(vendorState: FakeVendorState): FakeHandler {
  const state: FakeState = { state: vendorState, executions: new Map(), policies: new Map() };
  return (request, response) => {
    const [, id, action = ""] = /^\/v1\/devboxes\/([^/]+)(?:\/(.*))?$/.exec(request.path) ?? [];
    const isAtMachine = /^(?:execute|executions\/.*|upload_file)$/.test(action);
    const { refuse } = vendorState.trouble;
    if (refuse !== undefined && !isAtMachine) {
      response.setHeader("retry-after", "7");
      return fail(response, refuse.status, refuse.message);
    }
    if (request.headers.authorization !== "Bearer rl_test") return fail(response, 401, "Invalid API key");
    if (id === undefined) return atVendor(state, { request, response });
    const machine = vendorState.machines.get(id);
    if (machine === undefined) return fail(response, 404, "Devbox not found");
    if (!isAtMachine) return lifecycle(vendorState, machine, { action, response });
    if (machine.state !== "running") return fail(response, 400, "Devbox cannot take this in its state");
    return atMachine(state, machine, { action, request, response });
  };
}

const fail = (response: ServerResponse, code: number, message: string): true =>
  sendJson(response, code, { code, message });

const statusOf = ({ state }: FakeMachine): string => (state === "running" ? "running" : "suspended");

const viewOf = (machine: FakeMachine, status = statusOf(machine)) => ({
  id: machine.id,
  status,
  create_time_ms: machine.createdAt.getTime(),
  end_time_ms: null,
  capabilities: [],
  launch_parameters: {},
  metadata: machine.labels,
  state_transitions: [],
});

function atVendor({ state, policies }: FakeState, { request, response }: Call): true | undefined {
  const { query } = request;
  switch (`${request.method} ${request.path}`) {
    case "POST /v1/devboxes": {
      const body = request.json();
      const env = textsOf(body.environment_variables);
      const machine = state.make({ labels: textsOf(body.metadata), env }, body);
      return sendJson(response, 200, viewOf(machine, "provisioning"));
    }
    case "GET /v1/devboxes": {
      const machines = [...state.machines.values()].filter(
        (machine) => statusOf(machine) === query.get("status"),
      );
      // Two entries per page, so that callers need several pages.
      const from = machines.findIndex(({ id }) => id === query.get("starting_after")) + 1;
      const devboxes = machines.slice(from, from + 2).map((machine) => viewOf(machine));
      return sendJson(response, 200, { devboxes, has_more: from + 2 < machines.length });
    }
    case "POST /v1/network-policies": {
      const { name, allowed_hostnames, allow_all } = request.json();
      if (policies.has(String(name))) return fail(response, 400, "The name is taken");
      const egress = { allow_all, allow_devbox_to_devbox: false, allowed_cidrs: [], allowed_hostnames };
      const policy = { id: `npol_${policies.size + 1}`, name, egress };
      policies.set(String(name), policy);
      return sendJson(response, 200, policy);
    }
    case "GET /v1/network-policies": {
      const matching = [...policies].filter(([name]) => name.includes(query.get("name") ?? ""));
      return sendJson(response, 200, {
        network_policies: matching.map(([, policy]) => policy),
        has_more: false,
      });
    }
    default:
      return undefined;
  }
}

function lifecycle(
  vendorState: FakeVendorState,
  machine: FakeMachine,
  { action, response }: { readonly action: string; readonly response: ServerResponse },
): true | undefined {
  switch (action) {
    case "":
    case "wait_for_status":
      break;
    case "keep_alive":
      return sendJson(response, 200, {});
    case "suspend":
      machine.state = "paused";
      machine.stop();
      break;
    case "resume":
      machine.state = "running";
      return sendJson(response, 200, viewOf(machine, "resuming"));
    case "shutdown":
      machine.destroy();
      vendorState.machines.delete(machine.id);
      return sendJson(response, 200, viewOf(machine, "shutdown"));
    default:
      return undefined;
  }
  return sendJson(response, 200, viewOf(machine));
}

async function atMachine(
  { state, executions }: FakeState,
  machine: FakeMachine,
  { action, request, response }: Call & { readonly action: string },
): Promise<true | undefined> {
  if (action === "upload_file") return await receive(machine, { request, response });
  if (action === "execute") {
    const { command, optimistic_timeout } = request.json();
    const execution = start(machine, `ex_${executions.size + 1}`, String(command));
    executions.set(execution.id, execution);
    const isCut = state.trouble.cutNext === true;
    state.trouble.cutNext = false;
    await ended(execution, isCut ? 50 : Number(optimistic_timeout ?? 25) * 1_000);
    if (isCut) response.destroy();
    else sendJson(response, 200, detailOf(machine, execution, Number(request.query.get("last_n") ?? 100)));
    return true;
  }
  const [, id = "", what] = /^executions\/(\w+)(?:\/(\w+))?$/.exec(action) ?? [];
  const execution = executions.get(id);
  if (execution === undefined) return fail(response, 404, "Execution not found");
  if (what === undefined) return sendJson(response, 200, detailOf(machine, execution, 100));
  const [, stream] = /^stream_(stdout|stderr)_updates$/.exec(what) ?? [];
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const isCut = state.trouble.cutNext === true;
  state.trouble.cutNext = false;
  return await sendStream(execution, stream, { from: Number(request.query.get("offset")), isCut, response });
}

async function receive(machine: FakeMachine, { request, response }: Call): Promise<true> {
  const type = String(request.headers["content-type"]);
  const form = await new Response(new Uint8Array(request.body), {
    headers: { "content-type": type },
  }).formData();
  const file = form.get("file");
  const content = file instanceof File ? Buffer.from(await file.arrayBuffer()) : "";
  writeFileSync(join(machine.home, String(form.get("path"))), content);
  return sendJson(response, 200, {});
}

function start(machine: FakeMachine, id: string, line: string): FakeExecution {
  const program = machine.start({ words: ["/bin/bash", "-c", line] });
  program.stdin?.end();
  const output = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  const execution: FakeExecution = { id, program, output, received: new Set() };
  const notify = (): void => {
    for (const each of execution.received) each();
  };
  for (const stream of ["stdout", "stderr"] as const) {
    program[stream]?.on("data", (chunk: Buffer) => {
      output[stream] = Buffer.concat([output[stream], chunk]);
      notify();
    });
  }
  program.once("close", (code) => {
    execution.exitCode = code ?? 137;
    notify();
  });
  return execution;
}

function ended(execution: FakeExecution, withinMs: number): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, withinMs);
    const inspect = (): void => {
      if (execution.exitCode === undefined) return;
      clearTimeout(timer);
      execution.received.delete(inspect);
      done();
    };
    execution.received.add(inspect);
    inspect();
  });
}

/** Like the vendor, returns only the last lines. */
function detailOf(machine: FakeMachine, { id, output, exitCode }: FakeExecution, lastLines: number) {
  const isOver = exitCode !== undefined;
  const last = (bytes: Buffer): string => bytes.toString().split("\n").slice(-lastLines).join("\n");
  const texts = isOver ? { stdout: last(output.stdout), stderr: last(output.stderr) } : {};
  return {
    devbox_id: machine.id,
    execution_id: id,
    status: isOver ? "completed" : "running",
    ...texts,
    exit_status: exitCode ?? null,
    stdout_truncated: isOver && texts.stdout !== output.stdout.toString(),
    stderr_truncated: isOver && texts.stderr !== output.stderr.toString(),
  };
}

/** Server-sent events; output is split at character boundaries. */
async function sendStream(
  execution: FakeExecution,
  stream: "stdout" | "stderr",
  {
    from,
    isCut,
    response,
  }: { readonly from: number; readonly isCut: boolean; readonly response: ServerResponse },
): Promise<true> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  let at = from;
  await new Promise<void>((done) => {
    const send = (): void => {
      const output = execution.output[stream].subarray(at);
      if (output.length > 0)
        response.write(`data: ${JSON.stringify({ output: output.toString(), offset: at })}\n\n`);
      at += output.length;
      if (isCut && at > from) setTimeout(() => response.destroy(), 20);
      else if (execution.exitCode === undefined) return;
      execution.received.delete(send);
      done();
    };
    response.once("close", () => {
      execution.received.delete(send);
      done();
    });
    execution.received.add(send);
    send();
  });
  if (!isCut) response.end();
  return true;
}
