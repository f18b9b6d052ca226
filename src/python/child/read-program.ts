import { isPythonName, ownPrefix } from "../dataclass-registry.ts";
import type { KeptImport } from "../process/messages.ts";
import { boundNames } from "./bound-names.ts";
import { type ProgramFunction, toFunction } from "./kept-functions.ts";
import { toImports } from "./kept-imports.ts";
import { type RefusedCode, refusedCode } from "./refused-code.ts";
import { childrenOf, parsePython, type SyntaxNode, textOf } from "./syntax.ts";

/** The names and parts that kit finds in a program. Offsets are those of its text. */
export interface ProgramReading {
  /** Names that the program gives a value in its module, at some point or in some case. */
  readonly bound: readonly string[];
  /** The bound names that get their value by something else than an import. */
  readonly assigned: ReadonlySet<string>;
  /** Names that its functions speak of. */
  readonly mentioned: readonly string[];
  readonly functions: readonly ProgramFunction[];
  readonly imports: readonly KeptImport[];
  /** Where the expression that ends the program begins. */
  readonly result?: number | undefined;
  /** A name that is kit's own. */
  readonly reserved?: string | undefined;
  /** Code that the program may not hold, for Monty would answer it wrongly. */
  readonly refused?: RefusedCode | undefined;
}

/** Reads a program that Monty has compiled. What the grammar does not know is left out, never guessed. */
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
