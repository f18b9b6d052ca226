import { parser } from "@lezer/python";

/** A node of the syntax tree of Lezer's Python grammar. */
export type SyntaxNode = ReturnType<typeof parser.parse>["topNode"];

export function parsePython(code: string): SyntaxNode {
  return parser.parse(code).topNode;
}

export function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

/** A name in Python's normal form of identifiers (PEP 3131). */
export function textOf(name: SyntaxNode, code: string): string {
  return code.slice(name.from, name.to).normalize("NFKC");
}
