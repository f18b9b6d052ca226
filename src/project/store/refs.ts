import type { DraftLink, DraftMention } from "../../specs/adapter.ts";

/** Targets of the table `refs`: what a block names, without doubles. */
export function refsOf(block: {
  readonly links: readonly DraftLink[];
  readonly mentions: readonly DraftMention[];
  readonly aliases?: readonly string[];
}): string[] {
  const { aliases = [] } = block;
  if (block.links.length + block.mentions.length + aliases.length === 0) return [];
  const targets = new Set<string>();
  for (const alias of aliases) targets.add(aliasRef(alias));
  for (const { target } of block.links) targets.add(blockRef(target));
  for (const { path } of block.mentions) targets.add(mentionRef(path));
  return [...targets];
}

/** The target of a link to a block with this base or declared id. */
export function blockRef(base: string): string {
  return `b${base}`;
}

/** The entry of a block that has an alias, by which links find it. */
export function aliasRef(alias: string): string {
  return `a${alias}`;
}

/** The target of a mention: the last part of its path, which every way of writing it has, then all. */
function mentionRef(path: string): string {
  return `${mentionRefsOf(path).from}${path}`;
}

/** The range of targets (first, and first behind it) that may mean the file at a path. */
export function mentionRefsOf(path: string): { readonly from: string; readonly to: string } {
  const name = `m${path.slice(path.lastIndexOf("/") + 1)}`;
  return { from: `${name}\n`, to: `${name}\v` };
}

/** The path as it is written in the block, from the target of a mention. */
export function writtenPathOf(target: string): string {
  return target.slice(target.indexOf("\n") + 1);
}
