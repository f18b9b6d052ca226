import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  createProtocolConnection,
  type InitializeParams,
  type InitializeResult,
  type ProtocolConnection,
  type PublishDiagnosticsParams,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver/node";
import { startKit } from "../../testing/run-kit.ts";

/** An editor's client of `kit lsp`, over stdio. */
export interface LspClient {
  readonly connection: ProtocolConnection;
  readonly initialized: InitializeResult;
  readonly published: PublishDiagnosticsParams[];
  readonly log: string[];
  /** The process of the server. */
  readonly pid: number | undefined;
  uri(path: string): string;
  open(path: string, text: string): void;
  change(path: string, text: string): void;
  close(path: string): void;
  /** Asks about a place: the first occurrence of `word` in the text that is open. */
  ask<Answer>(
    method: string,
    at: readonly [path: string, word: string | number],
    more?: object,
  ): Promise<Answer>;
  /** The first message for the present version of a text that fulfils a condition. */
  problems(
    path: string,
    isExpected?: (params: PublishDiagnosticsParams) => boolean,
  ): Promise<PublishDiagnosticsParams["diagnostics"]>;
  stderr(): string;
  /** Leaves without a word, and returns the exit code. */
  leave(): Promise<number | null>;
  end(): Promise<number | null>;
}

export async function openClient(
  root: string,
  folders: readonly string[] = [root],
  { capabilities = {}, initializationOptions }: Partial<InitializeParams> = {},
): Promise<LspClient> {
  const child = startKit(["lsp"], { cwd: root, env: { KIT_TRUST: "" } });
  const ended = once(child, "close").then(([code]) => code as number | null);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  const connection = createProtocolConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin),
  );
  const published: PublishDiagnosticsParams[] = [];
  const log: string[] = [];
  const texts = new Map<string, { version: number; text: string }>();
  connection.onNotification("textDocument/publishDiagnostics", (params) => void published.push(params));
  connection.onNotification("window/logMessage", ({ message }) => void log.push(message));
  connection.listen();
  const uri = (path: string): string => (path.includes(":") ? path : pathToFileURL(join(root, path)).href);
  const initialized = await connection.sendRequest<InitializeResult>("initialize", {
    processId: process.pid,
    rootUri: null,
    capabilities: { ...capabilities, workspace: { ...capabilities.workspace, workspaceFolders: true } },
    initializationOptions,
    workspaceFolders: folders.map((folder) => ({ uri: uri(pathToFileURL(folder).href), name: folder })),
  });
  await connection.sendNotification("initialized", {});
  const notify = (method: string, params: object): void => void connection.sendNotification(method, params);
  return {
    connection,
    initialized,
    published,
    log,
    pid: child.pid,
    uri,
    open(path, text) {
      texts.set(path, { version: 1, text });
      const textDocument = { uri: uri(path), languageId: "markdown", version: 1, text };
      notify("textDocument/didOpen", { textDocument });
    },
    change(path, text) {
      const version = (texts.get(path)?.version ?? 0) + 1;
      texts.set(path, { version, text });
      notify("textDocument/didChange", {
        textDocument: { uri: uri(path), version },
        contentChanges: [{ text }],
      });
    },
    close: (path) => notify("textDocument/didClose", { textDocument: { uri: uri(path) } }),
    async ask(method, [path, word], more = {}) {
      const lines = (texts.get(path)?.text ?? "").split("\n");
      const line = typeof word === "number" ? word : lines.findIndex((each) => each.includes(word));
      const character = typeof word === "number" ? 0 : (lines[line]?.indexOf(word) ?? 0) + word.length;
      const params = { textDocument: { uri: uri(path) }, position: { line, character }, ...more };
      return await connection.sendRequest(`textDocument/${method}`, params);
    },
    async problems(path, isExpected = () => true) {
      const version = texts.get(path)?.version;
      for (;;) {
        const found = published.findLast((each) => each.uri === uri(path) && each.version === version);
        if (found !== undefined && isExpected(found)) return found.diagnostics;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    stderr: () => stderr,
    async leave() {
      child.stdin.end();
      return await ended;
    },
    async end() {
      await connection.sendRequest("shutdown");
      notify("exit", {});
      return await ended;
    },
  };
}
