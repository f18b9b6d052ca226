import { isPythonName, ownPrefix } from "../dataclass-registry.ts";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import { type RefusedCode, refusedCode } from "./refused-code.ts";
import { childrenOf, parsePython, type SyntaxNode, textOf } from "./syntax.ts";

/** The names and parts that kit finds in a program. Offsets refer to its text. */
export interface ProgramReading {
  /** Names that the program binds at module level, possibly only in some cases. */
  readonly bound: readonly string[];
  /** The bound names that are bound other than by an import. */
  readonly assigned: ReadonlySet<string>;
  /** Names that its functions use. */
  readonly mentioned: readonly string[];
  readonly functions: readonly ProgramFunction[];
  readonly imports: readonly KeptImport[];
  /** The offset of the expression that ends the program. */
  readonly result?: number | undefined;
  /** A used name that is reserved for kit. */
  readonly reserved?: string | undefined;
  /** Code of the program that Monty would get wrong. */
  readonly refused?: RefusedCode | undefined;
}

/** Analyses a program that Monty has compiled. Skips code that the grammar does not know. */
export function readProgram(code: string): ProgramReading {
  const top = parsePython(code);
  const functions: ProgramFunction[] = childrenOf(top).flatMap((node) => toFunction(node, code) ?? []);
  const imports: KeptImport[] = [];
  const bound = new Set<string>();
  const mentioned = new Set<string>();
  let reserved: string | undefined;
  let refused: RefusedCode | undefined;
  let functionDepth = 0;
  top.cursor().iterate(
    ({ node }) => {
      refused ??= refusedCode(node, code);
      if (functionDepth === 0) for (const name of boundNames(node)) bound.add(textOf(name, code));
      if (functionDepth === 0 && node.name === "ImportStatement") imports.push(...toImports(node, code));
      if (isFunction(node)) functionDepth += 1;
      if (node.name !== "VariableName") return;
      const name = textOf(node, code);
      if (name.startsWith(ownPrefix)) reserved = name;
      if (functionDepth > 0) mentioned.add(name);
      if (functionDepth > 0 && isDeclaredGlobal(node)) bound.add(name);
    },
    ({ node }) => {
      if (isFunction(node)) functionDepth -= 1;
    },
  );
  const assigned: ReadonlySet<string> = new Set(bound);
  for (const { name } of imports) bound.add(name);
  const result = resultOf(top);
  return {
    bound: [...bound].filter(isPythonName),
    assigned,
    mentioned: [...mentioned],
    functions,
    imports,
    result,
    reserved,
    refused,
  };
}

function isFunction(node: SyntaxNode): boolean {
  return node.name === "FunctionDefinition" || node.name === "LambdaExpression";
}

function isDeclaredGlobal(name: SyntaxNode): boolean {
  return name.parent?.name === "ScopeStatement" && name.parent.firstChild?.name === "global";
}

function resultOf(top: SyntaxNode): number | undefined {
  const lastOf = (node: SyntaxNode): SyntaxNode | undefined =>
    childrenOf(node).findLast(({ name }) => name !== "Comment" && name !== ";");
  const last = lastOf(top);
  const statement = last?.name === "StatementGroup" ? lastOf(last) : last;
  return statement?.name === "ExpressionStatement" ? statement.from : undefined;
}

/** The names that a statement or expression itself binds, without nested ones. */
function boundNames(node: SyntaxNode): readonly SyntaxNode[] {
  const children = childrenOf(node);
  switch (node.name) {
    case "FunctionDefinition":
      return node.getChildren("VariableName");
    case "NamedExpression":
    case "UpdateStatement":
      return children.slice(0, 1).flatMap(targetNames);
    case "AssignStatement": {
      const last = children.findLastIndex((child) => child.name === "AssignOp");
      return children.slice(0, Math.max(0, last)).flatMap(targetNames);
    }
    case "ForStatement": {
      const end = children.findIndex((child) => child.name === "in");
      return children.slice(0, end).flatMap(targetNames);
    }
    case "WithStatement":
    case "TryStatement":
      return children.flatMap((child, index) => {
        return children[index - 1]?.name === "as" ? targetNames(child) : [];
      });
    default:
      return [];
  }
}

/** The names in a target such as `a, (b, *c)`; a target that is an attribute or an item binds no name. */
function targetNames(target: SyntaxNode): readonly SyntaxNode[] {
  if (target.name === "VariableName") return [target];
  const isPattern = /^(Tuple|Array|Parenthesized)Expression$/.test(target.name);
  return isPattern ? childrenOf(target).flatMap(targetNames) : [];
}

/** One statement for each name that `import a.b as c, d` or `from e import f as g, h` binds. */
function toImports(node: SyntaxNode, code: string): readonly KeptImport[] {
  const children = childrenOf(node).filter(({ name }) => name !== "(" && name !== ")" && name !== "Comment");
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

/** A function of a program that can be saved, because its source alone recreates it. */
interface ProgramFunction extends KeptFunction {
  /** The offset of the line after the function. */
  readonly end: number;
}

/** Finds `def name(…)` and `name = lambda …` with constant defaults, whose source can be run again safely. */
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
    // The grammar names nodes of brackets, commas and colons after their characters.
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
