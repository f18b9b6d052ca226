import type { KeptImport } from "../process/messages.ts";
import { childrenOf, type SyntaxNode, textOf } from "./syntax.ts";

/** One statement for each name that `import a.b as c, d` or `from e import f as g, h` binds. */
export function toImports(node: SyntaxNode, code: string): readonly KeptImport[] {
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
