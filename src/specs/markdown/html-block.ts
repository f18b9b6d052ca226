/** An HTML block (CommonMark 0.31.2, section 4.6) that starts on a line, and where it ends. */
export interface HtmlBlock {
  readonly kind: "comment" | "html";
  /** Whether the block ends with the line from offset `from` to `to`. */
  endsOn(text: string, from: number, to: number): boolean;
}

const rawTextTag = /^<(script|pre|style|textarea)(?:[\s>]|$)/i;
const blockTag =
  /^<\/?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:[\s/>]|$)/i;

/**
 * The HTML block that opens at offset `at` of the line ending at `end`, if one does.
 *
 * Block tags (kind 6) run to the next blank line; comments, raw text, declarations and processing
 * instructions to their own closer.
 */
export function htmlBlockAt(text: string, at: number, end: number, canOpen: boolean): HtmlBlock | undefined {
  if (text.startsWith("<!--", at)) return closedBy("comment", "-->", at + 4);
  const head = text.slice(at, Math.min(end, at + 24));
  const raw = rawTextTag.exec(head)?.[1];
  if (raw !== undefined) return closedBy("html", `</${raw.toLowerCase()}>`, at);
  if (head.startsWith("<?")) return closedBy("html", "?>", at + 2);
  if (head.startsWith("<![CDATA[")) return closedBy("html", "]]>", at + 9);
  if (/^<![a-z]/i.test(head)) return closedBy("html", ">", at + 2);
  if (canOpen && blockTag.test(head)) return untilBlank;
  return undefined;
}

const untilBlank: HtmlBlock = {
  kind: "html",
  endsOn(text, _from, to) {
    // The block ends before the next blank line: look at the line that follows this one.
    let at = to;
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    if (at >= text.length) return true;
    while (at < text.length && (text[at] === " " || text[at] === "\t")) at += 1;
    return at >= text.length || text[at] === "\n" || text[at] === "\r";
  },
};

function closedBy(kind: "comment" | "html", closer: string, openedTo: number): HtmlBlock {
  return {
    kind,
    endsOn(text, from, to) {
      const line = text.slice(Math.max(from, Math.min(openedTo, to)), to);
      return line.toLowerCase().includes(closer);
    },
  };
}
