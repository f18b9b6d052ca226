// Runs inside the extension host, in Node; the host only asks for `run`.
const assert = require("node:assert/strict");
const { writeFileSync } = require("node:fs");
const vscode = require("vscode");

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(what, ask, holds) {
  const end = Date.now() + 40_000;
  for (;;) {
    const got = await ask();
    if (holds(got)) return got;
    if (Date.now() > end) throw new Error(`Never: ${what}. Last: ${JSON.stringify(got)?.slice(0, 600)}`);
    await sleep(50);
  }
}
const ask = (name, ...args) => vscode.commands.executeCommand(`vscode.execute${name}Provider`, ...args);
const file = (path) => vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, path);
async function open(path) {
  const document = await vscode.workspace.openTextDocument(file(path));
  return { document, editor: await vscode.window.showTextDocument(document) };
}
const revert = () => vscode.commands.executeCommand("workbench.action.files.revert");
const onDisk = async (path) => Buffer.from(await vscode.workspace.fs.readFile(file(path))).toString();
const problems = ({ uri }) => vscode.languages.getDiagnostics(uri).filter(({ source }) => source === "kit");
const textOf = (hovers) =>
  hovers.flatMap(({ contents }) => contents.map((each) => each.value ?? each)).join("\n");
const pathOf = (place) => (place.targetUri ?? place.uri).path;
const lineOf = (place) => (place.targetRange ?? place.range).start.line;
const at = (document, text, into = 0) => document.positionAt(document.getText().indexOf(text) + into);

const checks = {
  async "the extension is found and starts by itself"() {
    const own = vscode.extensions.getExtension("kit.kit");
    assert.ok(own, "not found");
    assert.equal(own.extensionKind, vscode.ExtensionKind.Workspace);
    await until("active without a call", () => own.isActive, Boolean);
    // An extension whose start has failed is "active" too; only this says so.
    await own.activate();
  },
  async "a problem of a rule file shows, at the glob"() {
    const { document } = await open(".kiro/steering/storefront.md");
    const [found] = await until(
      "a problem",
      () => problems(document),
      ({ length }) => length > 0,
    );
    assert.equal(document.getText(found.range), "src/storefront/**/*.tsx");
    assert.equal(found.severity, vscode.DiagnosticSeverity.Warning);
  },
  async "it goes with an edit that is not saved, and comes back with undo"() {
    const path = ".kiro/steering/storefront.md";
    const { document, editor } = await open(path);
    const before = await onDisk(path);
    await editor.edit((edit) => edit.replace(document.lineAt(2).range, 'fileMatchPattern: "src/**/*.ts"'));
    await until(
      "no problem",
      () => problems(document),
      ({ length }) => length === 0,
    );
    assert.ok(document.isDirty, "the text was saved");
    assert.equal(await onDisk(path), before);
    await vscode.commands.executeCommand("undo");
    await until(
      "the problem again",
      () => problems(document),
      ({ length }) => length > 0,
    );
    await revert();
  },
  async "hover on a source file names its rules"() {
    const { document } = await open("src/checkout/checkout.ts");
    const hovers = await until(
      "a hover",
      () => ask("Hover", document.uri, new vscode.Position(0, 0)),
      (all) => /rules apply to/.test(textOf(all)),
    );
    assert.match(textOf(hovers), /\d+ rules apply to src/);
    assert.match(textOf(hovers).replaceAll("\\", ""), /src\/checkout\/CLAUDE\.md/);
  },
  async "definition of checkout#1.2 in a test is the criterion"() {
    const { document, editor } = await open("src/checkout/checkout.test.ts");
    const place = at(document, "checkout#1.2", 10);
    const isSpec = (each) => pathOf(each).endsWith("/.kiro/specs/checkout/requirements.md");
    const places = await until(
      "the criterion",
      () => ask("Definition", document.uri, place),
      (all) => all.some(isSpec),
    );
    const criterion = places.find(isSpec);
    const spec = await vscode.workspace.openTextDocument(criterion.targetUri ?? criterion.uri);
    assert.match(spec.lineAt(lineOf(criterion)).text, /payment provider declines/);
    // What F12 does.
    editor.selection = new vscode.Selection(place, place);
    await vscode.commands.executeCommand("editor.action.revealDefinition");
    const shown = await until(
      "the spec in front",
      () => vscode.window.activeTextEditor,
      (each) => each?.document.uri.path === spec.uri.path,
    );
    assert.match(spec.lineAt(shown.selection.active.line).text, /payment provider declines/);
  },
  async "definition of a criterion is its test"() {
    const { document } = await open(".kiro/specs/checkout/requirements.md");
    const places = await until(
      "a test",
      () => ask("Definition", document.uri, at(document, "payment provider declines")),
      ({ length }) => length > 0,
    );
    const test = await vscode.workspace.openTextDocument(places[0].targetUri ?? places[0].uri);
    assert.match(test.lineAt(lineOf(places[0])).text, /^test\("checkout#1\.2 /);
  },
  async "a lens goes to the test when it is clicked"() {
    const { document } = await open(".kiro/specs/checkout/requirements.md");
    const isOfTest = ({ command }) => /^\d+ tests?: /.test(command?.title ?? "");
    const lenses = await until(
      "lenses",
      () => ask("CodeLens", document.uri, 50),
      (all) => all.filter(isOfTest).length > 2,
    );
    const { command } = lenses.find(({ command: { title } }) => /^1 test: /.test(title));
    await vscode.commands.executeCommand(command.command, ...command.arguments);
    const { document: shown, selection } = vscode.window.activeTextEditor;
    assert.match(shown.uri.path, /\.test\.ts$/);
    assert.match(shown.lineAt(selection.active.line).text, /checkout#1\.|Requirement|requirement/);
  },
  async "the lens of a source file says how many rules apply"() {
    const { document } = await open("src/checkout/checkout.ts");
    const [lens] = await until(
      "a lens",
      () => ask("CodeLens", document.uri, 5),
      ({ length }) => length > 0,
    );
    assert.match(lens.command.title, /^\d+ rules apply$/);
    await vscode.commands.executeCommand(lens.command.command, ...lens.command.arguments);
  },
  async "completion after # replaces the whole key"() {
    const { document, editor } = await open("src/checkout/checkout.test.ts");
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "// checkout#\n"));
    const labelOf = ({ label }) => label.label ?? label;
    const list = await until(
      "an id",
      () => ask("CompletionItem", document.uri, new vscode.Position(0, 12), "#"),
      ({ items }) => items.some((each) => labelOf(each) === "checkout#1.1"),
    );
    const { range } = list.items.find((each) => labelOf(each) === "checkout#1.1");
    assert.equal((range.replacing ?? range).start.character, 3);
    await revert();
  },
  async "completion offers the keys of a rule file"() {
    const { document, editor } = await open(".cursor/rules/style.mdc");
    await editor.edit((edit) =>
      edit.replace(new vscode.Range(0, 0, document.lineCount, 0), "---\nglobs: src\n\n---\nRound.\n"),
    );
    const isKey = ({ label }) => (label.label ?? label) === "alwaysApply";
    await until(
      "a key",
      () => ask("CompletionItem", document.uri, new vscode.Position(2, 0)),
      ({ items }) => items.some(isKey),
    );
    await revert();
  },
  async "a quick fix mends a list of globs that Kiro takes for one glob"() {
    const { document, editor } = await open(".kiro/steering/storefront.md");
    await editor.edit((edit) =>
      edit.replace(document.lineAt(2).range, "fileMatchPattern: src/**/*.ts, lib/**"),
    );
    const isFix = ({ title }) => title.startsWith("Use [");
    const actionsThere = () => ask("CodeAction", document.uri, new vscode.Range(2, 25, 2, 25));
    const actions = await until("a fix", actionsThere, (all) => all.some(isFix));
    await vscode.workspace.applyEdit(actions.find(isFix).edit);
    assert.equal(document.lineAt(2).text, 'fileMatchPattern: ["src/**/*.ts", "lib/**"]');
    await revert();
  },
  async "kit.restart starts the server again"() {
    const { document } = await open(".kiro/steering/storefront.md");
    await vscode.commands.executeCommand("kit.restart");
    await until(
      "the problem of the new server",
      () => problems(document),
      ({ length }) => length > 0,
    );
  },
};

exports.run = async () => {
  const results = [];
  for (const [name, check] of Object.entries(checks)) {
    const start = Date.now();
    const error = await check().then(
      () => undefined,
      ({ message }) => message,
    );
    results.push({ name, ms: Date.now() - start, ...(error !== undefined && { error }) });
    // After each check: what hangs can be seen.
    writeFileSync(process.env.KIT_TEST_RESULTS, JSON.stringify(results));
    // Nothing else can hold without the first.
    if (error !== undefined && results.length === 1) break;
  }
  if (results.some(({ error }) => error !== undefined)) throw new Error("Checks failed.");
};
