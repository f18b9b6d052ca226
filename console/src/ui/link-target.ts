/** A place in a file of the repository. */
export interface FilePlace {
  /** POSIX, relative to the root of the project. */
  readonly path: string;
  readonly line?: number;
}

/**
 * Returns the file of the repository that a link in one of its texts leads to; `undefined` for a link to another site, by any scheme,
 * to a place above the root, or within the same text.
 */
export function fileOfLink(href: string, from: string): FilePlace | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers ignore control characters in addresses.
  if (/[\u0000-\u001f\u007f\\]/.test(href) || /^(?:[a-z][a-z\d+.-]*:|\/\/|#)/i.test(href.trim()))
    return undefined;
  const [, written = "", fragment] = /^([^?#]*)(?:\?[^#]*)?(?:#(.*))?$/.exec(href.trim()) ?? [];
  const decoded = decode(written);
  if (decoded === undefined || decoded === "") return undefined;
  const parts = decoded.startsWith("/") ? [] : from.split("/").slice(0, -1);
  for (const part of decoded.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  if (parts.length === 0) return undefined;
  const line = Number(/^L?(\d{1,7})\b/.exec(fragment ?? "")?.[1]);
  return { path: parts.join("/"), ...(line > 0 && { line }) };
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no linked path of a repository contains them.
    return /[\u0000-\u001f\\]/.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}
