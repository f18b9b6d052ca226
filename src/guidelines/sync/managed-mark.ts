import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type SyncFormat, syncFormats } from "../../protocol/sync.ts";

/** What stands at the start of text that a sync wrote: where it comes from, and what it was. */
export interface ManagedMark {
  readonly source: SyncFormat;
  /** `managedHash` of the text that was written. */
  readonly hash: string;
}

const pattern = /\bkit:sync source=([a-z_]+) sha256=([0-9a-f]{16})\b/;

/** What people call the files of a format. */
export const sourceLabels: Readonly<Record<SyncFormat, string>> = {
  agents: "AGENTS.md",
  fw_c: "CLAUDE.md and .claude/rules",
  fw_b: "Cursor's rules",
  steering: ".kiro/steering",
  copilot: "Copilot's instructions",
  gemini: "GEMINI.md",
  windsurf: "Windsurf's rules",
  cline: ".clinerules",
  zed: ".rules",
};

/** The words of a mark, for a comment of any syntax. */
export function toMarkText({ source, hash }: ManagedMark): string {
  return `kit:sync source=${source} sha256=${hash}; written from ${sourceLabels[source]}: edit there, then run "kit guidelines sync"`;
}

/** The mark in a comment, or nothing where it holds none. */
export function readMarkText(comment: string): ManagedMark | undefined {
  const [, written, hash = ""] = pattern.exec(comment) ?? [];
  const source = syncFormats.find((format) => format === written);
  return source && { source, hash };
}

/** The first 16 hex digits of SHA-256. Line ends do not count, because Git and editors change them. */
export function managedHash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text.replace(/\r\n?/g, "\n").toWellFormed())).subarray(0, 8));
}
