/** An HTML block (CommonMark 0.31.2, section 4.6) by where it ends. */
export interface HtmlBlock {
  readonly kind: "comment" | "html";
  /** What the last line of the block holds; without it, the block runs to the next blank line. */
  readonly closer: RegExp | undefined;
  /** The offset behind the opener, from where the closer is looked for. */
  readonly searchFrom: number;
}

const rawTextTag = /^<(?:script|pre|style|textarea)(?:[\s>]|$)/i;
const rawTextEnd = /<\/(?:script|pre|style|textarea)>/i;
const blockTag =
  /^<\/?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:\s|\/?>|$)/i;

/**
 * The HTML block that the line from offset `at` to `end` opens, if it does (kinds 1 to 6: raw text,
 * comments, processing instructions, declarations, CDATA, block tags).
 */
export function htmlBlockAt(text: string, at: number, end: number): HtmlBlock | undefined {
  // `<!-->` and `<!--->` are comments that close at once.
  if (text.startsWith("<!--", at)) return { kind: "comment", closer: /-->/, searchFrom: at + 2 };
  const head = text.slice(at, Math.min(end, at + 24));
  if (rawTextTag.test(head)) return { kind: "html", closer: rawTextEnd, searchFrom: at };
  if (head.startsWith("<?")) return { kind: "html", closer: /\?>/, searchFrom: at + 2 };
  if (head.startsWith("<![CDATA[")) return { kind: "html", closer: /\]\]>/, searchFrom: at + 9 };
  if (/^<![a-z]/i.test(head)) return { kind: "html", closer: />/, searchFrom: at + 2 };
  return blockTag.test(head) ? { kind: "html", closer: undefined, searchFrom: at } : undefined;
}
