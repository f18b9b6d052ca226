import { parser } from "@lezer/python";

/** A node of the tree that Lezer's grammar of Python gives. */
export type SyntaxNode = ReturnType<typeof parser.parse>["topNode"];

export function parsePython(code: string): SyntaxNode {
  return parser.parse(code).topNode;
}

export function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

/** A name in the normal form that Python compares names in (PEP 3131). */
export function textOf(name: SyntaxNode, code: string): string {
  return code.slice(name.from, name.to).normalize("NFKC");
}
