import type {
  CodeAction,
  CodeActionParams,
  CodeLens,
  CodeLensParams,
  Command,
  CompletionItem,
  Connection,
  Hover,
  Location,
  Position,
  ReferenceParams,
  TextDocumentPositionParams,
} from "vscode-languageserver";
import type { LinePlace } from "../../project/features/open-criteria.ts";
import type { OpenText } from "../../project/features/text-layer.ts";
import type { Criterion } from "../../specs/coverage/list-criteria.ts";
import type { CommandContext } from "../command.ts";
import { describeError } from "../report-error.ts";
import { completionsAt } from "./completions.ts";
import { blockText, criterionText, rulesText } from "./hover-text.ts";
import { blockFactsAt, type LensSubject, lensesOf, lensFactsAt } from "./lenses.ts";
import { keyAt, numberAt, type Span } from "./line-words.ts";
import { filePathOf, OpenFolder } from "./open-folder.ts";
import { toCodeActions, toEditorDiagnostic, toLocation } from "./problems.ts";

/** Problems appear this long after the last key, in ms: a half-written word is no mistake. */
const pauseMs = 200;

interface EditorText {
  readonly uri: string;
  readonly version: number;
  readonly text: string;
}

/** An open text with the folder that it belongs to. */
interface PlacedText {
  readonly folder: OpenFolder;
  readonly opened: OpenText;
  readonly lines: readonly string[];
}

/** How an editor can follow a lens. */
export interface LensAbilities {
  /** A command of the editor that takes an address, a position and locations, as `editor.action.showReferences` does. */
  readonly showPlaces?: string;
  /** The editor runs commands of the server, and shows a document when the server asks for it. */
  readonly showsDocuments?: boolean;
  /** The editor does not ask for the title of a lens later. */
  readonly needsTitles?: boolean;
  /** The editor reads the lenses again when the server asks for it. */
  readonly refreshes?: boolean;
}

/** The command of the server that opens a line: `[uri, line]`, from 0. */
export const openCommand = "kit.open";

/** The folders and texts of one editor, and the answers about them. */
export class EditorTexts {
  readonly #context: CommandContext;
  readonly #connection: Connection;
  readonly #folders = new Map<string, OpenFolder>();
  readonly #texts = new Map<string, EditorText & { placed?: PlacedText }>();
  #abilities: LensAbilities = {};
  readonly #pauses = new Map<string, NodeJS.Timeout>();
  /** Folders open and close one after the other. */
  #ready: Promise<void> = Promise.resolve();

  constructor(context: CommandContext, connection: Connection) {
    this.#context = context;
    this.#connection = connection;
  }

  /** Set once, before the first text. */
  set abilities(abilities: LensAbilities) {
    this.#abilities = abilities;
  }

  changeFolders(change: { readonly added: readonly string[]; readonly removed: readonly string[] }): void {
    this.#ready = this.#ready.then(async () => {
      for (const uri of change.removed) {
        await this.#folders.get(uri)?.close();
        this.#folders.delete(uri);
      }
      for (const uri of change.added) await this.#openFolder(uri);
      for (const text of this.#texts.values()) this.#place(text);
      this.#refresh();
    });
  }

  /** Takes a text over, or its next version; at once, because the next question can be about another file that leads here. */
  open({ uri, version, text }: EditorText): void {
    const opened = { uri, version, text };
    this.#texts.set(uri, opened);
    this.#place(opened);
    clearTimeout(this.#pauses.get(uri));
    this.#pauses.set(
      uri,
      setTimeout(() => {
        this.#pauses.delete(uri);
        this.#publish(uri);
      }, pauseMs),
    );
  }

  close(uri: string): void {
    const placed = this.#texts.get(uri)?.placed;
    clearTimeout(this.#pauses.get(uri));
    this.#pauses.delete(uri);
    this.#texts.delete(uri);
    if (placed === undefined) return;
    placed.folder.layer.close(placed.opened.path);
    void this.#connection.sendDiagnostics({ uri, diagnostics: [] });
    // The other texts lose what was not saved.
    this.#refresh();
  }

  async hover({ textDocument: { uri }, position }: TextDocumentPositionParams): Promise<Hover | null> {
    const placed = await this.#placedAt(uri);
    if (placed === undefined) return null;
    const { folder, opened } = placed;
    const { criteria, span } = criteriaAt(placed, position);
    const parts = await Promise.all(
      criteria.map(async (criterion) => criterionText(criterion, await folder.testsOf(criterion))),
    );
    const block = await blockFactsAt(placed, position.line + 1);
    if (block !== undefined) parts.push(blockText(block));
    // A hover that always speaks is noise, so the rules of a file are on its first line.
    if (position.line === 0)
      parts.push(rulesText(folder.layer.explain(opened.path), (id) => folder.toolOf(id)));
    const value = parts.filter((part) => part !== "").join("\n\n---\n\n");
    if (value === "") return null;
    const { line } = position;
    const range = span && { start: { line, character: span.from }, end: { line, character: span.to } };
    return { contents: { kind: "markdown", value }, ...(range && { range }) };
  }

  /** From a key or number to the criterion; from a criterion to its tests. */
  async definition({ textDocument: { uri }, position }: TextDocumentPositionParams): Promise<Location[]> {
    const placed = await this.#placedAt(uri);
    if (placed === undefined) return [];
    const { criteria, isOwn } = criteriaAt(placed, position);
    const [first] = criteria;
    if (first === undefined) return [];
    return this.#locations(placed.folder, isOwn ? await placed.folder.testsOf(first) : [first]);
  }

  async references({ textDocument: { uri }, position, context }: ReferenceParams): Promise<Location[]> {
    const placed = await this.#placedAt(uri);
    if (placed === undefined) return [];
    const { folder } = placed;
    const found = await Promise.all(
      criteriaAt(placed, position).criteria.map(async (criterion) => [
        ...(context.includeDeclaration ? [criterion] : []),
        ...(await folder.testsOf(criterion)),
        ...folder.criteria.links(criterion),
      ]),
    );
    return this.#locations(folder, found.flat());
  }

  async completion({
    textDocument: { uri },
    position,
  }: TextDocumentPositionParams): Promise<CompletionItem[]> {
    const placed = await this.#placedAt(uri);
    if (placed === undefined) return [];
    const { folder, opened, lines } = placed;
    const { line, character } = position;
    const before = (lines[line] ?? "").slice(0, character);
    return completionsAt(folder.criteria, opened, { lines, line, before });
  }

  async codeActions({ textDocument: { uri }, range, context }: CodeActionParams): Promise<CodeAction[]> {
    const placed = await this.#placedAt(uri);
    const isAsked = context.only?.every((kind) => !"quickfix".startsWith(kind)) !== true;
    if (placed === undefined || !isAsked) return [];
    const { folder, opened, lines } = placed;
    const id = { uri, version: this.#texts.get(uri)?.version ?? null };
    const uriOf = (path: string): string => this.#uriOf(folder, path);
    return toCodeActions(folder.layer.problems(opened), range, { id, lines, uriOf });
  }

  async codeLenses({ textDocument: { uri } }: CodeLensParams): Promise<CodeLens[]> {
    // An editor that cannot be asked to read them again would keep those of a folder that is not read yet.
    if (!this.#abilities.refreshes) await (await this.#placedAt(uri))?.folder.read();
    const placed = await this.#placedAt(uri);
    if (placed === undefined) return [];
    const lenses = await lensesOf(placed, uri);
    return this.#abilities.needsTitles
      ? await Promise.all(lenses.map((lens) => this.resolveLens(lens)))
      : lenses;
  }

  /** Adds the title of a lens, and a command only if the editor can run it. */
  async resolveLens(lens: CodeLens): Promise<CodeLens> {
    const { uri, kind } = lens.data as LensSubject;
    const placed = await this.#placedAt(uri);
    const facts = placed && (await lensFactsAt(placed, { kind, line: lens.range.start.line + 1 }));
    if (placed === undefined || facts === undefined) return { ...lens, command: { title: "", command: "" } };
    const { title, targets } = facts;
    const locations = this.#locations(placed.folder, targets);
    const { showPlaces, showsDocuments } = this.#abilities;
    const [first] = locations;
    let command: Command = { title, command: "" };
    if (first !== undefined && showPlaces !== undefined)
      command = { title, command: showPlaces, arguments: [uri, lens.range.start, locations] };
    else if (first !== undefined && showsDocuments && (kind === "criterion" || targets.length === 1))
      command = { title, command: openCommand, arguments: [first.uri, first.range.start.line] };
    return { ...lens, command };
  }

  /** Shows a line in the editor, if it is one of an open folder. */
  async show([uri, line]: readonly unknown[]): Promise<null> {
    await this.#ready;
    const isOurs = typeof uri === "string" && this.#placeOf(uri) !== undefined;
    if (!isOurs || typeof line !== "number") return null;
    const { range } = toLocation(uri, line + 1);
    await this.#connection.window.showDocument({ uri, takeFocus: true, selection: range });
    return null;
  }

  async dispose(): Promise<void> {
    for (const pause of this.#pauses.values()) clearTimeout(pause);
    this.#texts.clear();
    await this.#ready;
    await Promise.all(Array.from(this.#folders.values(), (folder) => folder.close()));
  }

  async #openFolder(uri: string): Promise<void> {
    const folder = filePathOf(uri);
    if (folder === undefined || this.#folders.has(uri)) return;
    const note = (text: string): void => this.#connection.console.warn(`kit: ${text}`);
    try {
      const options = { context: this.#context, onChange: () => this.#refresh(), note };
      this.#folders.set(uri, await OpenFolder.open(folder, options));
    } catch (error) {
      note(describeError(error));
    }
  }

  /** Puts a text into the innermost folder that has its file. */
  #place(text: EditorText & { placed?: PlacedText }): void {
    const place = this.#placeOf(text.uri);
    if (place === undefined) {
      delete text.placed;
      return;
    }
    const opened = place.folder.layer.open(place.path, text.text);
    text.placed = { folder: place.folder, opened, lines: text.text.split(/\r\n|\n|\r/) };
  }

  #placeOf(uri: string): { readonly folder: OpenFolder; readonly path: string } | undefined {
    const owners = [...this.#folders.values()].flatMap((folder) => {
      const path = folder.pathOf(uri);
      return path === undefined ? [] : [{ folder, path }];
    });
    return owners.sort((a, b) => b.folder.folder.length - a.folder.folder.length)[0];
  }

  /** The open text of an address, once the folders are open; undefined for other schemes and files outside. */
  async #placedAt(uri: string): Promise<PlacedText | undefined> {
    await this.#ready;
    return this.#texts.get(uri)?.placed;
  }

  /** Sends the problems of the texts that the person does not type in at the moment. */
  #refresh(): void {
    for (const uri of this.#texts.keys()) if (!this.#pauses.has(uri)) this.#publish(uri);
    // An editor that refuses keeps its lenses until the next key.
    if (this.#abilities.refreshes)
      this.#connection.sendRequest("workspace/codeLens/refresh").catch(() => undefined);
  }

  #publish(uri: string): void {
    const { version, placed } = this.#texts.get(uri) ?? {};
    if (version === undefined || placed === undefined) return;
    const { folder, opened, lines } = placed;
    try {
      const diagnostics = folder.layer
        .problems(opened)
        .map((problem) => toEditorDiagnostic(problem, lines, (path) => this.#uriOf(folder, path)));
      void this.#connection.sendDiagnostics({ uri, version, diagnostics });
    } catch (error) {
      this.#connection.console.error(`kit: ${describeError(error)}`);
    }
  }

  #locations(folder: OpenFolder, lines: readonly LinePlace[]): Location[] {
    return lines.map(({ path, line }) => toLocation(this.#uriOf(folder, path), line));
  }

  /** The address as the editor writes it, which need not be kit's. */
  #uriOf(folder: OpenFolder, path: string): string {
    const open = [...this.#texts.values()].find(
      ({ placed }) => placed?.folder === folder && placed.opened.path === path,
    );
    return open?.uri ?? folder.uriOf(path);
  }
}

/** The criteria that the word at a position names, or the one that its line states. */
function criteriaAt(
  { folder, opened, lines }: PlacedText,
  { line: row, character }: Position,
): { readonly criteria: readonly Criterion[]; readonly isOwn?: true; readonly span?: Span } {
  const { criteria } = folder;
  const text = lines[row] ?? "";
  const line = row + 1;
  const key = keyAt(text, character);
  if (key !== undefined) return { criteria: criteria.byKey(key.name, key.number), span: key };
  const own = criteria.atLine({ path: opened.path, line });
  if (own !== undefined) return { criteria: [own], isOwn: true };
  const number = numberAt(text, character);
  if (number === undefined) return { criteria: [] };
  const isLink = opened.source().specs?.drafts.some(({ links }) => links.some((link) => link.line === line));
  if (isLink === true) return { criteria: criteria.numbered(opened.path, number.number), span: number };
  const written = criteria
    .atTestLine(opened, line)
    .filter((each) => text.slice(number.from).startsWith(each.number));
  return { criteria: written, span: number };
}
