import { childrenOf, type SyntaxNode } from "./syntax.ts";

/** The names that a statement or expression itself gives a value, without those inside of it. */
export function boundNames(node: SyntaxNode): readonly SyntaxNode[] {
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

/** The names of a target such as `a, (b, *c)`; an attribute or an item of something gives no name a value. */
function targetNames(target: SyntaxNode): readonly SyntaxNode[] {
  if (target.name === "VariableName") return [target];
  const isPattern = /^(Tuple|Array|Parenthesized)Expression$/.test(target.name);
  return isPattern ? childrenOf(target).flatMap(targetNames) : [];
}
