import type { ChildProcess } from "node:child_process";
import type { FakeMachine } from "../../remote/testing/fake-machine.ts";
import {
  createFakeVendorState,
  type FakeVendor,
  type FakeVendorState,
} from "../../remote/testing/fake-vendor.ts";
import {
  Double,
  type GrpcCall,
  GrpcFailure,
  type GrpcHandler,
  type Message,
  type Received,
  startGrpcServer,
} from "./grpc-server.ts";

export interface FakeModal extends FakeVendor {
  /** More faults; each happens once, with the next command. */
  readonly mishaps: {
    /** The connection breaks while output is read; the vendor still knows the command. */
    breakOutput?: boolean;
    /** The command starts, but the answer is lost. */
    dropStart?: boolean;
    /** A repeated start request starts the command again, although the vendor promises otherwise. */
    startAgain?: boolean;
    /** A machine is created, but the answer is lost. */
    dropCreate?: boolean;
  };
}

interface Command {
  readonly task: string;
  readonly program: ChildProcess;
  readonly output: readonly [Buffer[], Buffer[]];
  readonly received: Set<() => void>;
  code?: number;
  signal?: number;
}

interface Fake {
  readonly state: FakeVendorState;
  readonly mishaps: FakeModal["mishaps"];
  readonly commands: Map<string, Command>;
  /** Machines by the key of the request that created them. */
  readonly machineOfRequest: Map<string, FakeMachine>;
  readonly ended: Set<string>;
  url: string;
}

const internal = 13;
const notFound = 5;
const unauthenticated = 16;
const token = [{ alg: "none" }, { exp: 4_102_444_800 }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .concat("x")
  .join(".");

/** A fake of the APIs that Modal's package (0.11.1) uses: the control plane and the command router, both over gRPC. */
export async function startFakeModal(): Promise<FakeModal> {
  const state = createFakeVendorState();
  const fake: Fake = {
    state,
    mishaps: {},
    commands: new Map(),
    machineOfRequest: new Map(),
    ended: new Set(),
    url: "",
  };
  const { url, close } = await startGrpcServer((call) => answer(fake, call));
  fake.url = url;
  return {
    ...state,
    url,
    mishaps: fake.mishaps,
    lose(id) {
      state.lose(id);
      fake.ended.add(id);
    },
    async close() {
      for (const machine of state.machines.values()) machine.destroy();
      await close();
    },
  };
}

const answer = async (fake: Fake, call: GrpcCall): Promise<Message | undefined> => {
  const { state } = fake;
  state.requests.push(call.name);
  await state.arrive();
  const handle = ofMachines[call.name] ?? ofVendor[call.name];
  if (handle === undefined) throw new GrpcFailure(12, `The fake knows no ${call.name}.`);
  if (call.name in ofVendor) {
    const { refuse } = state.trouble;
    if (refuse !== undefined) throw new GrpcFailure(refuse.status, refuse.message);
    if (call.headers["x-modal-token-id"] !== "ak-test" || call.headers["x-modal-token-secret"] !== "as-test")
      throw new GrpcFailure(unauthenticated, "Token ID is malformed");
  } else if (call.headers.authorization !== `Bearer ${token}`) {
    throw new GrpcFailure(unauthenticated, "no token");
  }
  return await handle(fake, call);
};

type Handler = (fake: Fake, call: GrpcCall) => ReturnType<GrpcHandler>;

const ofVendor: Readonly<Record<string, Handler>> = {
  AuthTokenGet: () => ({ 1: token }),
  AppGetOrCreate: () => ({ 1: "ap-fake" }),
  EnvironmentGetOrCreate: () => ({ 1: "en-fake", 2: { 1: "main", 2: { 1: "2025.06" } } }),
  ImageGetOrCreate(_, { request }) {
    const [from = ""] = request.message(2).texts(6);
    if (from.includes("missing"))
      return { 1: "im-fake", 2: { 1: 2, 2: "no such image: docker.io/library/missing" } };
    return { 1: "im-fake", 2: { 1: 1 } };
  },
  SandboxCreateV2(fake, { request, headers, cut }) {
    const key = String(headers["x-idempotency-key"]);
    const machine = fake.machineOfRequest.get(key) ?? make(fake.state, request);
    fake.machineOfRequest.set(key, machine);
    if (fake.mishaps.dropCreate === true) {
      fake.mishaps.dropCreate = false;
      cut();
    }
    const access = { 1: token, 2: fake.url.replace("http:", "https:") };
    return { 1: machine.id, 3: `ta-${machine.id}`, 5: access, 6: token };
  },
  SandboxListV2({ state }, { request }) {
    const expected = request.messages(5).map((tag) => [tag.text(1), tag.text(2)] as const);
    const before = request.double(2) ?? Number.POSITIVE_INFINITY;
    const machines = [...state.machines.values()]
      .filter(({ labels }) => expected.every(([name, value]) => labels[name] === value))
      .map((machine) => ({ machine, created: createdOf(state, machine) }))
      .filter(({ created }) => created < before)
      .sort((entry, other) => other.created - entry.created)
      // Two entries per page, so that callers need several pages.
      .slice(0, 2);
    return {
      1: machines.map(({ machine, created }) => ({
        1: machine.id,
        3: new Double(created),
        6: tagsOf(machine.labels),
      })),
    };
  },
  SandboxTagsGetV2: (fake, { request }) => ({ 1: tagsOf(machineOf(fake, request.text(1)).labels) }),
  SandboxWaitV2(fake, { request }) {
    // TERMINATED; the vendor still lists the machine.
    if (fake.ended.has(request.text(1))) return { 1: { 1: 3 } };
    machineOf(fake, request.text(1));
    return {};
  },
  SandboxTerminateV2(fake, { request }) {
    const { id } = machineOf(fake, request.text(1));
    fake.state.lose(id);
    fake.ended.add(id);
    return {};
  },
  SandboxGetTaskIdV2: (fake, { request }) => ({ 1: `ta-${machineOf(fake, request.text(1)).id}` }),
  SandboxGetCommandRouterAccess: (fake, { request }) => {
    machineOf(fake, request.text(1));
    return { 1: token, 2: fake.url.replace("http:", "https:") };
  },
};

const ofMachines: Readonly<Record<string, Handler>> = {
  TaskExecStart(fake, { request, cut }) {
    const machine = machineOf(fake, request.text(1).replace(/^ta-/, ""));
    const id = request.text(2);
    if (!fake.commands.has(id) || fake.mishaps.startAgain === true)
      fake.commands.set(id, start(machine, request));
    if (fake.mishaps.dropStart === true) {
      fake.mishaps.dropStart = false;
      setTimeout(cut, 100);
      return new Promise<undefined>(() => undefined);
    }
    return {};
  },
  async TaskExecStdioRead(fake, { request, send, cut }) {
    const id = request.text(2);
    const command = commandOf(fake, request);
    if (fake.mishaps.breakOutput === true || fake.state.trouble.cutNext === true) {
      if (fake.state.trouble.cutNext === true) setTimeout(() => fake.commands.delete(id), 40);
      fake.mishaps.breakOutput = false;
      fake.state.trouble.cutNext = false;
      setTimeout(cut, 50);
    }
    const chunks = command.output[request.number(4) === 0 ? 0 : 1];
    let skip = request.number(3);
    for (let next = 0; ; ) {
      for (; next < chunks.length; next += 1) {
        const chunk = chunks[next] ?? Buffer.alloc(0);
        if (skip < chunk.length) send({ 1: chunk.subarray(skip) });
        skip = Math.max(0, skip - chunk.length);
      }
      if (hasEnded(command)) return undefined;
      await change(command);
    }
  },
  async TaskExecWait(fake, { request }) {
    const command = commandOf(fake, request);
    while (!hasEnded(command)) await change(command);
    return command.signal === undefined ? { 1: command.code ?? 0 } : { 2: command.signal };
  },
  TaskExecStdinWrite(fake, { request }) {
    const { program } = commandOf(fake, request);
    const bytes = request.bytes(4);
    if (bytes.length > 0) program.stdin?.write(bytes);
    if (request.number(5) === 1) program.stdin?.end();
    return {};
  },
};

function make(state: FakeVendorState, request: Received): FakeMachine {
  const definition = request.message(2);
  const network = definition.message(22);
  const labels = Object.fromEntries(request.messages(4).map((tag) => [tag.text(1), tag.text(2)]));
  for (const value of Object.values(labels))
    if (!/^[A-Za-z0-9._-]{1,63}$/.test(value)) throw new GrpcFailure(3, `Invalid tag value: ${value}`);
  return state.make(
    { labels, env: variablesOf(request.messages(6)) },
    {
      timeoutSecs: definition.number(7),
      idleTimeoutSecs: definition.number(33),
      networkAccess: { type: network.number(1), domains: network.texts(3) },
    },
  );
}

function start(machine: FakeMachine, request: Received): Command {
  const words = request.texts(3);
  if (words.join("").length > 65_536) throw new GrpcFailure(3, "argument list too long");
  const program = machine.start({ words, env: variablesOf(request.messages(13)) });
  const command: Command = { task: machine.id, program, output: [[], []], received: new Set() };
  const notify = (): void => {
    for (const listener of command.received) listener();
  };
  for (const [index, stream] of [program.stdout, program.stderr].entries())
    stream?.on("data", (chunk: Buffer) => {
      command.output[index === 0 ? 0 : 1].push(chunk);
      notify();
    });
  program.once("close", (code, signal) => {
    if (signal === null) command.code = code ?? 0;
    else command.signal = signal === "SIGKILL" ? 9 : 15;
    notify();
  });
  return command;
}

const hasEnded = ({ code, signal }: Command): boolean => code !== undefined || signal !== undefined;

const change = ({ received }: Command): Promise<void> =>
  new Promise((resolve) => {
    const listener = (): void => {
      received.delete(listener);
      resolve();
    };
    received.add(listener);
  });

function commandOf(fake: Fake, request: Received): Command {
  const command = fake.commands.get(request.text(2));
  if (command === undefined) throw new GrpcFailure(notFound, "exec not found");
  if (!fake.state.machines.has(command.task)) throw new GrpcFailure(internal, "the machine has ended");
  return command;
}

function machineOf({ state }: Fake, id: string): FakeMachine {
  const machine = state.machines.get(id);
  if (machine === undefined) throw new GrpcFailure(notFound, `Sandbox with ID ${id} not found`);
  return machine;
}

/** Variables in the request itself. */
function variablesOf(sources: readonly Received[]): Readonly<Record<string, string>> {
  const entries = sources.flatMap((source) => source.message(2).messages(1));
  return Object.fromEntries(entries.map((entry) => [entry.text(1), entry.text(2)]));
}

const tagsOf = (labels: Readonly<Record<string, string>>): readonly Message[] =>
  Object.entries(labels).map(([name, value]) => ({ 1: name, 2: value }));

/** Runs calls one after the other. */
const createdOf = (state: FakeVendorState, machine: FakeMachine): number =>
  1_790_000_000 + [...state.machines.keys()].indexOf(machine.id);
