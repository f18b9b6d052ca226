import { childrenOf, type SyntaxNode, textOf } from "./syntax.ts";

/** Code for which Monty would return a wrong result without an error. */
export interface RefusedCode {
  /** The offsets of the refused code. */
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

/**
 * Refuses code that Monty 0.0.18 always gets wrong: decorators, which it ignores; comparing the order of lists and sets,
 * which is always False; and `re.split` with a group, which it drops from the result. Cases that depend on values (two
 * variables that hold lists) cannot be refused; docs/python.md lists them.
 */
export function refusedCode(node: SyntaxNode, code: string): RefusedCode | undefined {
  switch (node.name) {
    case "Decorator":
      return {
        from: node.from,
        to: node.to,
        message: "decorators are not supported; write name = decorator(name) below the function",
      };
    case "BinaryExpression":
      return unorderedComparison(node, code);
    case "CallExpression":
      return splitByGroup(node, code);
    default:
      return undefined;
  }
}

const makers: ReadonlySet<string> = new Set(["list", "set", "frozenset", "sorted"]);

function unorderedComparison(node: SyntaxNode, code: string): RefusedCode | undefined {
  const operator = node.getChild("CompareOp");
  const sign = operator === null ? "" : code.slice(operator.from, operator.to);
  if (!/^[<>]=?$/.test(sign) || !childrenOf(node).some((side) => isListOrSet(side, code))) return undefined;
  return {
    from: node.from,
    to: node.to,
    message: `'${sign}' of lists and sets is not supported; compare tuple(a) ${sign} tuple(b), or write a.issubset(b)`,
  };
}

function isListOrSet(node: SyntaxNode, code: string): boolean {
  if (/^(Array|Set)(Comprehension)?Expression$/.test(node.name)) return true;
  const maker = node.name === "CallExpression" ? node.firstChild : null;
  return maker?.name === "VariableName" && makers.has(textOf(maker, code));
}

function splitByGroup(node: SyntaxNode, code: string): RefusedCode | undefined {
  const callee = code.slice(node.firstChild?.from, node.firstChild?.to);
  if (callee !== "re.split" && callee !== "split") return undefined;
  const pattern = node.getChild("ArgList")?.getChild("String");
  if (pattern === null || pattern === undefined) return undefined;
  // A plain `split(…)` can only be the function of `re`, because that of strings is a method.
  if (!hasGroup(code.slice(pattern.from, pattern.to))) return undefined;
  return {
    from: node.from,
    to: node.to,
    message:
      "re.split() drops the text that groups match; write (?:…) for a group that only groups, or use re.findall()",
  };
}

/** Whether the source of a pattern has a capturing group. */
function hasGroup(pattern: string): boolean {
  const plain = pattern.replace(/\\./gs, "").replace(/\[\^?\]?[^\]]*\]/g, "");
  return /\((?!\?(?!P<))/.test(plain);
}
