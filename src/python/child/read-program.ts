import { parser } from "@lezer/python";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import { isPythonName, ownPrefix } from "../values/identifier.ts";

type SyntaxNode = ReturnType<typeof parser.parse>["topNode"];

/** A function of a program that can stay: its source alone makes it again. */
export interface ProgramFunction extends KeptFunction {
  /** Where the line after it begins. */
  readonly end: number;
}

/** What a program says about itself. Offsets are those of its text. */
export interface ProgramReading {
  /** Names that may be variables of the module: every name outside of functions, and declared globals. */
  readonly names: readonly string[];
  readonly functions: readonly ProgramFunction[];
  readonly imports: readonly KeptImport[];
  /** Where the expression that ends the program begins. */
  readonly result?: number;
  /** A name that is kit's own. */
  readonly reserved?: string;
}

/** Reads a program that Monty has compiled. What the grammar does not know is left out, never guessed. */
export function readProgram(code: string): ProgramReading {
  const { topNode } = parser.parse(code);
  const functions: ProgramFunction[] = [];
  const imports: KeptImport[] = [];
  for (let node = topNode.firstChild; node !== null; node = node.nextSibling) {
    const kept = toFunction(node, code);
    if (kept !== undefined) functions.push(kept);
    if (node.name === "ImportStatement") imports.push(...toImports(node, code));
    if (node.name === "StatementGroup") {
      for (const part of node.getChildren("ImportStatement")) imports.push(...toImports(part, code));
    }
  }
  const result = resultOf(topNode);
  const { names, reserved } = namesOf(topNode, code);
  return {
    names,
    functions,
    imports,
    ...(result === undefined ? {} : { result }),
    ...(reserved === undefined ? {} : { reserved }),
  };
}

function namesOf(top: SyntaxNode, code: string): { readonly names: readonly string[]; reserved?: string } {
  const names = new Set<string>();
  const found: { reserved?: string } = {};
  let functionDepth = 0;
  top.cursor().iterate(
    (node) => {
      if (node.name === "FunctionDefinition" || node.name === "LambdaExpression") {
        const name = node.node.getChild("VariableName");
        if (name !== null && functionDepth === 0) names.add(textOf(name, code));
        functionDepth += 1;
      } else if (node.name === "VariableName") {
        const name = textOf(node.node, code);
        if (name.startsWith(ownPrefix)) found.reserved = name;
        if (functionDepth > 0 && !isDeclaredGlobal(node.node)) return;
        if (isPythonName(name) && !isKeyword(node.node)) names.add(name);
      }
    },
    (node) => {
      if (node.name === "FunctionDefinition" || node.name === "LambdaExpression") functionDepth -= 1;
    },
  );
  return { names: [...names], ...found };
}

function isDeclaredGlobal(name: SyntaxNode): boolean {
  return name.parent?.name === "ScopeStatement" && name.parent.firstChild?.name === "global";
}

/** `sep` in `print(x, sep="")`: no variable. */
function isKeyword(name: SyntaxNode): boolean {
  return name.parent?.name === "ArgList" && name.nextSibling?.name === "AssignOp";
}

function resultOf(top: SyntaxNode): number | undefined {
  let last = top.lastChild;
  while (last !== null && last.name === "Comment") last = last.prevSibling;
  if (last?.name === "StatementGroup") {
    last = last.lastChild;
    while (last !== null && last.name === ";") last = last.prevSibling;
  }
  return last?.name === "ExpressionStatement" ? last.from : undefined;
}

/** `def name(…)` or `name = lambda …` whose defaults are constants: running its source again is harmless. */
function toFunction(node: SyntaxNode, code: string): ProgramFunction | undefined {
  const definition = node.name === "FunctionDefinition" ? node : lambdaOf(node);
  const name = node.getChild("VariableName");
  const parameters = definition?.getChild("ParamList") ?? null;
  if (definition === undefined || name === null || parameters === null) return undefined;
  if (!hasConstantDefaults(parameters)) return undefined;
  const source = code.slice(node.from, node.to).trimEnd();
  const lineEnd = code.indexOf("\n", node.from + source.length);
  return {
    name: textOf(name, code),
    source,
    mentions: mentionsOf(node, code),
    end: lineEnd === -1 ? code.length : lineEnd + 1,
  };
}

function lambdaOf(node: SyntaxNode): SyntaxNode | undefined {
  const target = node.name === "AssignStatement" ? node.firstChild : null;
  const value = target?.nextSibling?.nextSibling ?? null;
  const isPlain = target?.name === "VariableName" && value?.nextSibling === null;
  return isPlain && value?.name === "LambdaExpression" ? value : undefined;
}

const constants: ReadonlySet<string> = new Set([
  "Number",
  "String",
  "ContinuedString",
  "None",
  "Boolean",
  "UnaryExpression",
  "ArithOp",
  "TupleExpression",
  "ArrayExpression",
  "DictionaryExpression",
  "ParenthesizedExpression",
]);

function hasConstantDefaults(parameters: SyntaxNode): boolean {
  let inDefault = false;
  for (let node = parameters.firstChild; node !== null; node = node.nextSibling) {
    if (node.name === "AssignOp") inDefault = true;
    else if (node.name === "," || node.name === ")") inDefault = false;
    else if (inDefault && !isConstant(node)) return false;
  }
  return true;
}

function isConstant(node: SyntaxNode): boolean {
  let constant = true;
  node.cursor().iterate((part) => {
    // Brackets, commas and colons are nodes named after themselves.
    if (/^\w/.test(part.name) && !constants.has(part.name)) constant = false;
  });
  return constant;
}

function mentionsOf(node: SyntaxNode, code: string): readonly string[] {
  const names = new Set<string>();
  node.cursor().iterate((part) => {
    if (part.name === "VariableName") names.add(textOf(part.node, code));
  });
  return [...names];
}

/** One statement for each name that `import a.b as c, d` or `from e import f as g, h` binds. */
function toImports(node: SyntaxNode, code: string): readonly KeptImport[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (child.name !== "(" && child.name !== ")" && child.name !== "Comment") children.push(child);
  }
  const start = children.findIndex((child) => child.name === "import");
  const from = children[0]?.name === "from" ? code.slice(node.from, children[start]?.from) : "";
  const items: SyntaxNode[][] = [[]];
  for (const child of children.slice(start + 1)) {
    if (child.name === ",") items.push([]);
    else items.at(-1)?.push(child);
  }
  return items.flatMap((item) => {
    const alias = item.findIndex((part) => part.name === "as");
    const bound = alias === -1 ? item[0] : item[alias + 1];
    const last = item.at(-1);
    if (bound?.name !== "VariableName" || item[0] === undefined || last === undefined) return [];
    const source = `${from}import ${code.slice(item[0].from, last.to)}`.replace(/\s+/g, " ");
    return [{ name: textOf(bound, code), source }];
  });
}

/** A name in the normal form that Python compares names in (PEP 3131). */
function textOf(name: SyntaxNode, code: string): string {
  return code.slice(name.from, name.to).normalize("NFKC");
}
