import type { KeptFunction } from "../process/messages.ts";
import { type SyntaxNode, textOf } from "./syntax.ts";

/** A function of a program that can stay: its source alone makes it again. */
export interface ProgramFunction extends KeptFunction {
  /** Where the line after it begins. */
  readonly end: number;
}

/** `def name(…)` or `name = lambda …` whose defaults are constants: running its source again is harmless. */
export function toFunction(node: SyntaxNode, code: string): ProgramFunction | undefined {
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
