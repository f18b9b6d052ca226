import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type AnyMessage,
  type ClientContext,
  client,
  type McpServer,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import {
  type ProviderServer,
  startProviderServer,
} from "../../../testing/provider-server/provider-server.ts";
import { withoutKeys } from "../../testing/agents-project.ts";
import { startKit } from "../../testing/run-kit.ts";

/** A folder that an editor has open, whose `local/…` models a server of the test answers. */
export interface EditorFolder {
  readonly root: string;
  readonly provider: ProviderServer;
  read(path: string): string;
  write(path: string, text: string): void;
  close(): Promise<void>;
}

export async function createEditorFolder(
  files: Readonly<Record<string, string>> = {},
  agentTable = "",
): Promise<EditorFolder> {
  const provider = await startProviderServer();
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-acp-")));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const toml = `[agent]\nmodel = "local/m"\n${agentTable}\n[providers.local]\nbase_url = "${provider.providers.local?.base_url}"\n`;
  for (const [path, text] of Object.entries({ "kit.toml": toml, ...files })) write(path, text);
  return {
    root,
    provider,
    write,
    read: (path) => readFileSync(join(root, path), "utf8"),
    async close() {
      await provider.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** The environment of a person who trusts no folder, and has the address of the test's models in a variable. */
export function untrustedEnv({ root, provider }: EditorFolder): Readonly<Record<string, string>> {
  const LOCAL_BASE_URL = provider.providers.local?.base_url ?? "";
  return { KIT_TRUST: "", XDG_STATE_HOME: join(root, ".state"), LOCAL_BASE_URL };
}

/** The SDK's own client, which has started `kit acp` as an editor does. */
export interface Editor {
  readonly agent: ClientContext;
  /** The updates of all sessions so far. */
  readonly updates: { readonly sessionId: string; readonly update: SessionUpdate }[];
  readonly permissions: RequestPermissionRequest[];
  /** Every line that the process has written to stdout. */
  readonly lines: string[];
  /** How the person answers a permission request. */
  decide: (
    request: RequestPermissionRequest,
  ) => Promise<RequestPermissionResponse> | RequestPermissionResponse;
  /** The text that a session has said since the last call. */
  said(sessionId: string, kind?: "agent_message_chunk" | "user_message_chunk"): string;
  newSession(mcpServers?: McpServer[]): Promise<string>;
  prompt(sessionId: string, text: string): Promise<string>;
  stderr(): string;
  write(line: string): void;
  kill(): Promise<void>;
  /** Ends the process with SIGTERM, and returns its exit code. */
  end(): Promise<number | null>;
  /** Leaves, and returns the exit code. */
  leave(): Promise<number | null>;
}

export const choose = (optionId: string): RequestPermissionResponse => ({
  outcome: { outcome: "selected", optionId },
});

export async function openEditor(
  { root }: Pick<EditorFolder, "root">,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = { KIT_TRUST: "1" },
): Promise<Editor> {
  const child = startKit(["acp", ...args], { cwd: root, env: { ...withoutKeys, ...env } });
  const ended = once(child, "close").then(([code]) => code as number | null);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const lines: string[] = [];
  let rest = "";
  child.stdout.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString("latin1")).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  child.stdin.on("error", () => undefined);
  const { readable, writable } = ndJsonStream(
    Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
  );
  const updates: Editor["updates"] = [];
  const permissions: RequestPermissionRequest[] = [];
  const read = new Map<string, number>();
  const connection = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params))
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      permissions.push(params);
      return await editor.decide(params);
    })
    .connect({ readable: readable as ReadableStream<AnyMessage>, writable });
  const { agent } = connection;
  const editor: Editor = {
    agent,
    updates,
    permissions,
    lines,
    decide: () => choose("allow"),
    said(sessionId, kind = "agent_message_chunk") {
      const from = read.get(sessionId + kind) ?? 0;
      read.set(sessionId + kind, updates.length);
      return updates
        .slice(from)
        .flatMap(({ sessionId: id, update }) =>
          id === sessionId && update.sessionUpdate === kind && update.content.type === "text"
            ? [update.content.text]
            : [],
        )
        .join("");
    },
    newSession: async (mcpServers = []) =>
      (await agent.request(methods.agent.session.new, { cwd: root, mcpServers })).sessionId,
    prompt: async (sessionId, text) =>
      (await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }))
        .stopReason,
    stderr: () => stderr,
    write: (line) => void child.stdin.write(line),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async end() {
      child.kill("SIGTERM");
      return await ended;
    },
    async leave() {
      child.stdin.end();
      return await ended;
    },
  };
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  return editor;
}
