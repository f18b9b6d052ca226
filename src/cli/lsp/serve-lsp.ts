import type * as lsp from "vscode-languageserver";
import {
  createConnection,
  createProtocolConnection,
  LSPErrorCodes,
  TextDocumentSyncKind,
} from "vscode-languageserver";
import { StreamMessageReader, StreamMessageWriter } from "vscode-languageserver/node";
import { onAbort } from "../../base/abort.ts";
import { version } from "../../base/own-package.ts";
import { takeStdout } from "../acp/take-stdout.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { EditorTexts, type LensAbilities, openCommand } from "./editor-texts.ts";

/** Speaks the Language Server Protocol on stdin and stdout until the editor leaves or the command is stopped. */
export async function serveLsp(context: CommandContext): Promise<ExitCode> {
  using stdout = takeStdout();
  const { stdin } = process;
  const { promise: ended, resolve: end } = Promise.withResolvers<ExitCode>();
  const connection = createConnection(
    (logger) =>
      createProtocolConnection(
        new StreamMessageReader(stdin),
        new StreamMessageWriter(stdout.writable),
        logger,
        {
          // A request that waits in the queue would run although the editor has cancelled it.
          cancelUndispatched: (message) => ({
            jsonrpc: "2.0",
            id: (message as { id?: number }).id ?? null,
            error: { code: LSPErrorCodes.RequestCancelled, message: "Cancelled" },
          }),
        },
      ),
    { shutdownReceived: false, initialize: () => undefined, exit: end },
  );
  const texts = new EditorTexts(context, connection);
  let folders: readonly string[] = [];
  let followsFolders = false;
  connection.onInitialize((params: lsp.InitializeParams): lsp.InitializeResult => {
    // Editors of before folders send one root.
    const root = (params as { rootUri?: string | null }).rootUri;
    folders = params.workspaceFolders?.map(({ uri }) => uri) ?? (root ? [root] : []);
    texts.abilities = lensAbilities(params);
    followsFolders = params.capabilities.workspace?.workspaceFolders === true;
    return {
      serverInfo: { name: "kit", version },
      capabilities: {
        positionEncoding: "utf-16",
        textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Full },
        hoverProvider: true,
        definitionProvider: true,
        referencesProvider: true,
        codeActionProvider: { codeActionKinds: ["quickfix"] },
        codeLensProvider: { resolveProvider: true },
        executeCommandProvider: { commands: [openCommand] },
        completionProvider: { triggerCharacters: ["#", ".", ":"] },
        workspace: { workspaceFolders: { supported: true, changeNotifications: true } },
      },
    };
  });
  connection.onInitialized(() => {
    if (followsFolders)
      connection.workspace.onDidChangeWorkspaceFolders(({ added, removed }) => {
        texts.changeFolders({ added: added.map(({ uri }) => uri), removed: removed.map(({ uri }) => uri) });
      });
    texts.changeFolders({ added: folders, removed: [] });
  });
  connection.onDidOpenTextDocument(({ textDocument }) => texts.open(textDocument));
  connection.onDidChangeTextDocument(({ textDocument, contentChanges }) => {
    const text = contentChanges.at(-1)?.text;
    if (text !== undefined) texts.open({ ...textDocument, text });
  });
  connection.onDidCloseTextDocument(({ textDocument }) => texts.close(textDocument.uri));
  connection.onHover((params) => texts.hover(params));
  connection.onDefinition((params) => texts.definition(params));
  connection.onReferences((params) => texts.references(params));
  connection.onCompletion((params) => texts.completion(params));
  connection.onCodeAction((params) => texts.codeActions(params));
  connection.onCodeLens((params) => texts.codeLenses(params));
  connection.onCodeLensResolve((lens) => texts.resolveLens(lens));
  connection.onExecuteCommand(({ command, arguments: args = [] }) =>
    command === openCommand ? texts.show(args) : null,
  );
  connection.onShutdown(() => undefined);
  for (const event of ["end", "close", "error"]) stdin.once(event, () => end(0));
  onAbort(context.signal, () => end(0));
  connection.listen();
  const code = await ended;
  stdin.destroy();
  connection.dispose();
  await texts.dispose();
  return code;
}

/** Reads how an editor follows lenses. `show_places` is a setting of kit: no capability names an editor's commands. */
function lensAbilities({ capabilities, initializationOptions }: lsp.InitializeParams): LensAbilities {
  const { workspace, window, textDocument } = capabilities;
  const showPlaces: unknown = initializationOptions?.show_places;
  const resolved = textDocument?.codeLens?.resolveSupport?.properties;
  return {
    ...(typeof showPlaces === "string" && showPlaces !== "" && { showPlaces }),
    showsDocuments: workspace?.executeCommand !== undefined && window?.showDocument?.support === true,
    needsTitles: resolved !== undefined && !resolved.includes("command"),
    refreshes: workspace?.codeLens?.refreshSupport === true,
  };
}
