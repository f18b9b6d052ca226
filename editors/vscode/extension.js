import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

let client;

/** VS Code calls it once it has found a spec or a rule in a folder that the person trusts. */
export async function activate(context) {
  // The manifest asks for trust. A fork of VS Code that does not know this starts nothing either.
  if (!vscode.workspace.isTrusted) return;
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient("kit", "kit", serverOf(root), {
    // Every file: rules apply to all of them, and tests of any language name criteria.
    documentSelector: [{ scheme: "file" }],
    initializationOptions: { show_places: "kit.showPlaces" },
  });
  context.subscriptions.push(
    client,
    vscode.commands.registerCommand("kit.showPlaces", showPlaces),
    vscode.commands.registerCommand("kit.restart", () => start(() => client.restart())),
  );
  await start(() => client.start());
}

/** The process of the server: the kit that a person has set, or that the folder has installed, or of the path. */
function serverOf(root) {
  const isWindows = process.platform === "win32";
  const own = root === undefined ? "" : join(root, "node_modules/.bin", isWindows ? "kit.cmd" : "kit");
  const set = vscode.workspace.getConfiguration("kit").get("path");
  const command = set || (existsSync(own) ? own : "kit");
  // Windows starts the scripts that npm writes only in a shell.
  const options = { cwd: root, shell: isWindows };
  return { command: isWindows ? `"${command}"` : command, args: ["lsp"], options };
}

/** Starts the server, or says why it does not start: VS Code shows such errors in its log only. */
async function start(begin) {
  try {
    await begin();
  } catch (error) {
    const show = "Show the log";
    const reason = error instanceof Error ? error.message : String(error);
    const message = `kit did not start: ${reason}. It needs the kit of this folder, or the setting kit.path, and Node 24.`;
    const choice = vscode.window.showErrorMessage(message, show);
    choice.then((chosen) => chosen === show && client.outputChannel.show());
  }
}

/** The command of a lens: goes to its only place, or lists several. The server sends plain data, and VS Code wants its own classes. */
async function showPlaces(uri, position, locations) {
  const { protocol2CodeConverter: converter } = client;
  await vscode.commands.executeCommand(
    "editor.action.goToLocations",
    vscode.Uri.parse(uri),
    converter.asPosition(position),
    locations.map((location) => converter.asLocation(location)),
    "gotoAndPeek",
    "",
  );
}

export async function deactivate() {
  await client?.stop();
}
